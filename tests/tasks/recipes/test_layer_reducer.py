"""`reduce_layers` keeps chosen blocks: beside a model whose other blocks are left out by hand."""

import keras
import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertClassifier, BertConfig, BertDualEncoder
from keras_bert_layers.layers import EncoderParts, LocalAttention, RelativePositionBias
from keras_bert_layers.tasks import reduce_layers, reinitialize_layers

CONFIG = BertConfig(
    vocabulary_size=18, hidden_dim=8, num_layers=5, num_heads=2, intermediate_dim=7, max_sequence_length=9,
    initializer_range=0.3,
)  # fmt: skip
IDS = np.random.default_rng(3).integers(3, 18, (2, 6)).astype("int32")
INPUTS = {"token_ids": IDS, "segment_ids": 0 * IDS, "padding_mask": 0 * IDS + 1}


@pytest.fixture(scope="module")
def backbone():
    keras.utils.set_random_seed(5)
    return BertBackbone(CONFIG)


def by_hand(backbone, keep):
    hidden = backbone.get_layer("embedding")(INPUTS["token_ids"], INPUTS["segment_ids"])
    for index in keep:
        hidden = backbone.get_layer(f"encoder_block_{index}")(hidden, INPUTS["padding_mask"])
    return np.asarray(hidden)


@pytest.mark.parametrize(
    ("keep", "expected"), [(3, [0, 2, 4]), (2, [0, 4]), (1, [0]), ([1, 2, 3], [1, 2, 3]), (5, range(5))]
)
def test_outputs_are_those_of_the_kept_blocks(backbone, keep, expected):
    smaller = reduce_layers(backbone, keep)
    assert smaller.config.num_layers == len(expected)
    np.testing.assert_array_equal(np.asarray(smaller(INPUTS)["sequence_output"]), by_hand(backbone, expected))
    assert backbone.config.num_layers == 5


@pytest.mark.usefixtures("traces_nothing")
def test_a_task_keeps_its_head_and_text(new_backbone, preprocessor):
    task = BertClassifier(new_backbone(num_layers=3), class_names=["a", "b"], preprocessor=preprocessor)
    task.get_layer("classification_head").dense.bias.assign([0.5, -0.25])
    student = reduce_layers(task, [0, 1])
    assert student.predict(["a good man"], verbose=0).shape == (1, 2)
    for name in ("kernel", "bias"):
        ours, theirs = (getattr(model.get_layer("classification_head").dense, name) for model in (student, task))
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
    student.fit(["a good man"], ["a"], verbose=0)


def test_both_encoders_of_two(new_backbone):
    task = BertDualEncoder(new_backbone(num_layers=3), new_backbone(num_layers=3, seed=2))
    smaller = reduce_layers(task, 2)
    assert [smaller.backbone.config.num_layers, smaller.document_backbone.config.num_layers] == [2, 2]


def test_positions_that_blocks_share_stay():
    keras.utils.set_random_seed(5)
    backbone = BertBackbone(CONFIG, parts=EncoderParts(positions=RelativePositionBias(num_buckets=4, max_distance=8)))
    np.testing.assert_array_equal(
        np.asarray(reduce_layers(backbone, [2, 4])(INPUTS)["sequence_output"]), by_hand(backbone, [2, 4])
    )


LOCAL = {"normalize_first": True, "normalizes_first_attention": False, "local_attention": LocalAttention(2)}


@pytest.fixture(scope="module")
def local_backbone():
    keras.utils.set_random_seed(5)
    return BertBackbone(CONFIG, parts=EncoderParts(**LOCAL))


@pytest.mark.parametrize(("keep", "expected"), [(4, [0, 1, 2, 3]), (3, [0, 2, 4]), (2, [0, 4]), ([0, 2, 4], [0, 2, 4])])
def test_local_blocks_take_the_places_of_local_ones(local_backbone, keep, expected):
    """Of five blocks, 0 and 3 attend to all tokens, and the first begins without a norm."""
    smaller = reduce_layers(local_backbone, keep)
    hidden = local_backbone.get_layer("final_layer_norm")(by_hand(local_backbone, expected))
    np.testing.assert_array_equal(np.asarray(smaller(INPUTS)["sequence_output"]), np.asarray(hidden))


@pytest.mark.parametrize("num_layers", [0, 2])
def test_the_last_blocks_and_the_pooler_get_new_weights(num_layers):
    keras.utils.set_random_seed(5)
    backbone = BertBackbone(CONFIG)
    before = {weight.path: np.asarray(weight) for weight in backbone.weights}
    reinitialize_layers(backbone, num_layers)
    changed = {
        weight.path for weight in backbone.weights if not np.array_equal(np.asarray(weight), before[weight.path])
    }
    names = ["pooler", *(f"encoder_block_{index}" for index in range(5 - num_layers, 5))]
    kernels = {path for path in before if path.split("/")[0] in names and path.endswith("kernel")}
    assert changed == kernels  # biases and LayerNorm are initial ones already


class TestErrors:
    @pytest.mark.parametrize("keep", [6, [], [0, 5], [1, 0], [1, 1]])
    def test_blocks(self, backbone, keep):
        with pytest.raises(ValueError, match="`keep` must be at most 5 blocks, or ascending indices below 5"):
            reduce_layers(backbone, keep)

    @pytest.mark.parametrize("keep", [[1, 2], [0, 3], [0, 1, 3]])
    def test_blocks_of_other_attention(self, local_backbone, keep):
        with pytest.raises(ValueError, match="`keep` must give each place a block with its attention, local or global"):
            reduce_layers(local_backbone, keep)

    def test_reinitialized_blocks(self, backbone):
        with pytest.raises(ValueError, match="`num_layers` must be at most 5"):
            reinitialize_layers(backbone, 6)
        with pytest.raises(TypeError, match="`model` must be a task of a BertBackbone, or a BertBackbone"):
            reinitialize_layers(keras.Sequential(), 1)

    def test_model(self):
        with pytest.raises(TypeError, match="`model` must be a task of a BertBackbone, or a BertBackbone"):
            reduce_layers(keras.Sequential(), 1)

    def test_quantized(self):
        backbone = BertBackbone(CONFIG)
        backbone.quantize("int8")
        with pytest.raises(ValueError, match=r"`model` must not be quantized.*Change the model first"):
            reduce_layers(backbone, 2)
