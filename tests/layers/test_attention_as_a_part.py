"""Another attention in a block and in a backbone: a subclass of `SelfAttention`, and a layer that shares nothing."""

import re

import keras
import numpy as np
import pytest
from keras import ops
from rematerialized_step import assert_equal_steps

from keras_bert_layers import BertBackbone, BertClassifier, BertConfig, BertSentenceEncoder, save_huggingface, save_peft
from keras_bert_layers.layers import EncoderParts, LocalAttention, Positions, SelfAttention, TransformerEncoderBlock
from keras_bert_layers.tasks import distill, reduce_layers

# Float32 products and a softmax, against float64.
FLOAT32 = 1e-5
# A text's tokens beside others in the same row; the project's promise for packed rows.
PACKED = 1e-5
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]], "int32")
CONFIG = BertConfig(
    vocabulary_size=29, hidden_dim=12, num_layers=2, num_heads=3, intermediate_dim=20, max_sequence_length=11,
    initializer_range=0.3, dropout=0.0, attention_dropout=0.0,
)  # fmt: skip


@keras.saving.register_keras_serializable("tests")
class Distances(Positions):
    """A vector for each distance from -2 to 2, for all blocks; nothing is added to the embeddings."""

    def build(self, input_shape):
        _, num_heads, _, head_dim = input_shape
        self.vectors = self.add_weight(name="vectors", shape=(5, num_heads * head_dim), initializer="random_normal")


@keras.saving.register_keras_serializable("tests")
class Disentangled(SelfAttention):
    """Adds the product of each query with a key of the distance, as in DeBERTa."""

    def build(self, input_shape):
        super().build(input_shape)
        self.position_key = keras.layers.Dense(
            input_shape[-1], use_bias=False, dtype=self.dtype_policy, name="position_key"
        )
        self.position_key.build((5, input_shape[-1]))

    def scores(self, query, key, bias=None):
        scores = super().scores(query, key, bias)
        _, num_heads, num_queries, width = ops.shape(query)
        keys = ops.reshape(self.position_key(self.positions.vectors), (5, num_heads, width))
        by_distance = ops.cast(ops.einsum("bnqd,pnd->bnqp", query, keys), scores.dtype)
        distances = ops.arange(ops.shape(key)[2])[None] - ops.arange(num_queries)[:, None]  # [Q, S]
        chosen = ops.one_hot(ops.clip(distances, -2, 2) + 2, 5, dtype=scores.dtype)
        return scores + ops.einsum("bnqp,qsp->bnqs", by_distance, chosen)


@keras.saving.register_keras_serializable("tests")
class Mean(keras.layers.Layer):
    """Each token attends equally to all tokens of its text, through one dense layer."""

    def build(self, input_shape):
        self.dense = keras.layers.Dense(input_shape[-1], name="dense", dtype=self.dtype_policy)
        self.dense.build(input_shape)

    def call(
        self,
        hidden,
        padding_mask=None,
        *,
        real_tokens=None,
        packed_rows=False,
        first_token_only=False,
        return_attention_scores=False,
        training=None,
    ):
        padded = hidden if real_tokens is None else real_tokens.pad(hidden)
        mask = ops.ones(ops.shape(padded)[:2], "int32") if padding_mask is None else ops.cast(padding_mask, "int32")
        mask = mask if packed_rows else ops.cast(mask > 0, "int32")
        seen = ops.cast((mask[:, :, None] == mask[:, None]) & (mask[:, None] > 0), padded.dtype)  # [B, S, S]
        scores = seen / ops.maximum(ops.sum(seen, -1, keepdims=True), 1)
        if first_token_only:
            scores = scores[:, :1]
        output = ops.matmul(scores, self.dense(padded))
        if first_token_only:
            output = output[:, 0]
        elif real_tokens is not None:
            output = real_tokens.select(output)
        return (output, scores[:, None]) if return_attention_scores else output


def disentangled(**options):
    positions = Distances(name="positions", **{name: options[name] for name in ("dtype",) if name in options})
    return Disentangled(3, positions=positions, initializer_range=0.4, name="attention", **options)


def mean(**options):
    return Mean(name="attention", **options)


ATTENTIONS = {"disentangled": (disentangled, 14), "mean": (mean, 10)}
# The parts of an encoder.
PARTS = {
    "disentangled": lambda **parts: EncoderParts(attention=Disentangled(3), positions=Distances(), **parts),
    "mean": lambda **parts: EncoderParts(attention=Mean(), **parts),
}
both = pytest.mark.parametrize("name", list(ATTENTIONS))


def make_block(kind, **options):
    attention = ATTENTIONS[kind][0](**{key: options[key] for key in ("dtype",) if key in options})
    return TransformerEncoderBlock(3, 11, attention=attention, dropout=0.0, initializer_range=0.4, **options)


def make_backbone(name, **options):
    keras.utils.set_random_seed(7)
    return BertBackbone(CONFIG, parts=PARTS[name](), **options)


@pytest.fixture
def inputs():
    generator = np.random.default_rng(4)
    ids = {"token_ids": generator.integers(0, 29, (3, 5)), "segment_ids": generator.integers(0, 2, (3, 5))}
    return {**{name: values.astype("int32") for name, values in ids.items()}, "padding_mask": MASK}


@both
def test_contract(name, check_layer, draw, tmp_path):
    check_layer(
        lambda **options: make_block(name, **options),
        {"hidden": draw(3, 5, 12), "padding_mask": MASK},
        output_shape=(3, 5, 12),
        num_weights=ATTENTIONS[name][1],
        places=MASK.astype(bool),
        tmp_path=tmp_path,
    )


def test_scores_of_a_subclass(draw):
    layer, hidden = disentangled(), draw(2, 4, 12)
    _, found = layer(hidden, return_attention_scores=True)
    weights = {weight.path.split("attention/")[-1]: np.asarray(weight) for weight in layer.weights}
    merged = hidden @ weights["query_key_value/kernel"] + weights["query_key_value/bias"]
    query, key, _ = np.moveaxis(merged.reshape(2, 4, 3, 3, 4), 2, 0)  # [B, S, N, D]
    keys = (np.asarray(layer.positions.vectors) @ weights["position_key/kernel"]).reshape(5, 3, 4)
    for b, n, i in np.ndindex(2, 3, 4):
        of_distances = [keys[np.clip(j - i, -2, 2) + 2, n] for j in range(4)]
        logits = [query[b, i, n] @ (key[b, j, n] / 2 + of_distances[j]) for j in range(4)]
        expected = np.exp(logits) / np.exp(logits).sum()
        np.testing.assert_allclose(np.asarray(found)[b, n, i], expected, atol=FLOAT32)


@pytest.mark.parametrize("options", [{}, {"window": 4}, {"causal": True}], ids=str)
def test_a_subclass_without_scores_of_its_own_adds_nothing(options, draw):
    class Same(SelfAttention):
        """All scores are in one tensor here, and are not in `SelfAttention`."""

        def scores(self, query, key, bias=None):
            return super().scores(query, key, bias)

    hidden, mask = draw(2, 9, 12), (np.arange(9) < np.array([[9], [6]])).astype("int32")
    one, other = SelfAttention(3, **options), Same(3, **options)
    expected = np.asarray(one(hidden, mask))
    other.build(hidden.shape)
    other.set_weights(one.get_weights())
    other.reads_long_rows = True
    np.testing.assert_allclose(np.asarray(other(hidden, mask))[mask > 0], expected[mask > 0], atol=FLOAT32)


@both
def test_backbone_in_graphs_and_files(name, inputs, tmp_path):
    backbone = make_backbone(name)
    expected = {key: np.asarray(value) for key, value in backbone(inputs).items()}
    found = backbone.predict(inputs, verbose=0)
    real = MASK > 0
    np.testing.assert_allclose(found["sequence_output"][real], expected["sequence_output"][real], atol=FLOAT32)
    np.testing.assert_allclose(found["pooled_output"], expected["pooled_output"], atol=FLOAT32)
    backbone.save(tmp_path / "backbone.keras")
    loaded = keras.models.load_model(tmp_path / "backbone.keras")
    assert loaded.get_config() == backbone.get_config()
    for key, value in loaded(inputs).items():
        np.testing.assert_array_equal(np.asarray(value), expected[key])


@both
def test_packed_rows(name, inputs):
    backbone = make_backbone(name)
    numbers = np.array([[1, 1, 1, 2, 2], [1, 2, 2, 0, 0], [1, 1, 1, 1, 1]], "int32")
    backbone.packed_rows = True
    packed = {**inputs, "padding_mask": numbers}
    for found in (np.asarray(backbone(packed)["sequence_output"]), backbone.predict(packed)["sequence_output"]):
        for row, columns in ((0, slice(0, 3)), (0, slice(3, 5)), (1, slice(1, 3)), (2, slice(0, 5))):
            text = {key: value[row : row + 1, columns] for key, value in inputs.items()}
            alone = np.asarray(backbone({**text, "padding_mask": 0 * text["token_ids"] + 1})["sequence_output"])
            np.testing.assert_allclose(found[row, columns], alone[0], atol=PACKED)


@both
def test_a_task_trains_every_weight_and_rematerialized_so_too(name, inputs):
    def make_task():
        return BertClassifier(make_backbone(name), num_classes=2)

    assert_equal_steps(make_task, inputs, run_eagerly=True, atol=FLOAT32)


def test_an_encoder_gives_its_other_parts_to_each_attention():
    local = LocalAttention(4, global_every=2)
    parts = EncoderParts(
        attention=Disentangled(3, dropout=0.2), positions=Distances(), causal=True, local_attention=local
    )
    backbone = BertBackbone(CONFIG, parts=parts)
    blocks = [backbone.get_layer(f"encoder_block_{index}") for index in range(2)]
    one, other = (block.attention for block in blocks)
    assert one is not other
    assert one is not parts.attention
    assert not parts.attention.built
    assert (one.name, one.causal, one.window, one.dropout) == ("attention", True, None, 0.2)
    assert other.window == 4
    assert one.positions is other.positions
    assert [weight.path for weight in backbone.weights].count("positions/vectors") == 1
    assert [(block.attention_dropout, block.causal, block.window) for block in blocks] == [
        (0.2, True, None),
        (0.2, True, 4),
    ]
    assert "encoder_block_1/attention/position_key/kernel" in {weight.path for weight in backbone.weights}


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"attention": Mean(), "causal": True}, "`attention` must take `causal`, and leave it to the other parts."),
        ({"attention": Mean(), "local_attention": LocalAttention(3)}, "`attention` must take `window`, and leave it"),
        ({"attention": Mean(), "positions": Distances()}, "`attention` must take `positions`, and leave it"),
        ({"attention": disentangled(), "positions": Distances()}, "`attention` must take `positions`, and leave it"),
        (
            {"attention": Mean(), "local_attention": LocalAttention(3, positions=Distances())},
            "`attention` must take `positions`, and leave it",
        ),
    ],
)
def test_parts_that_an_attention_does_not_take(parts, text):
    with pytest.raises(ValueError, match=re.escape(f"`EncoderParts`: {text}")):
        EncoderParts(**parts)


def test_an_attention_that_is_no_layer():
    with pytest.raises(TypeError, match="`EncoderParts`: `attention` must be a Layer. Received: attention='linear'"):
        EncoderParts(attention="linear")


def test_another_number_of_heads():
    text = "`TransformerEncoderBlock`: `num_heads` must be that of `attention` (2). Received: num_heads=3."
    with pytest.raises(ValueError, match=re.escape(text)):
        BertBackbone(CONFIG, parts=EncoderParts(attention=Disentangled(2), positions=Distances()))


@both
def test_lora(name):
    backbone = make_backbone(name)
    backbone.enable_lora(2)
    dense = {"disentangled": 3, "mean": 1}[name]
    assert len(backbone.trainable_weights) == 2 * (dense + 2) * 2  # blocks, dense layers, matrices


@both
def test_fewer_layers(name, inputs):
    backbone = make_backbone(name)
    smaller = reduce_layers(backbone, 1)
    hidden = backbone.get_layer("embedding")(inputs["token_ids"], inputs["segment_ids"])
    expected = np.asarray(backbone.get_layer("encoder_block_0")(hidden, MASK))
    np.testing.assert_array_equal(np.asarray(smaller(inputs)["sequence_output"]), expected)


@both
@pytest.mark.parametrize("save", [save_huggingface, save_peft])
def test_checkpoints_have_no_place_for_it(name, save, tmp_path):
    backbone = make_backbone(name)
    backbone.enable_lora(2)
    with pytest.raises(ValueError, match="`model.parts` must be BERT's own"):
        save(backbone, tmp_path / "model")


@both
def test_an_onnx_file_has_no_place_for_it(name, preprocessor, tmp_path):
    pytest.importorskip("onnx")
    task = BertSentenceEncoder(make_backbone(name), preprocessor=preprocessor)
    with pytest.raises(
        ValueError, match=r"`export`: `attention` must be a SelfAttention in an ONNX file\. .*SavedModel"
    ):
        task.export(tmp_path / "model.onnx", format="onnx")


def test_relations_of_another_attention(preprocessor):
    teacher, student = (BertClassifier(make_backbone("mean"), 2, preprocessor=preprocessor) for _ in range(2))
    with pytest.raises(ValueError, match="`distill`: `relations` must be None for encoders with another attention"):
        distill(teacher, student, ["a film"], relations={-1: -1})
