"""An encoder with one block for all layers, as ALBERT: what it computes, and what walks over its blocks."""

import dataclasses

import keras
import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers import optimizers, tasks, visualization
from keras_bert_layers.checkpoints import save_google, save_kerashub
from keras_bert_layers.checkpoints.files.keras_file import read_keras_file
from keras_bert_layers.cli.commands import train
from keras_bert_layers.layers import EncoderParts, LocalAttention
from keras_bert_layers.tasks.recipes import distillation

# The sums of float32 in another order.
TOLERANCE = 2e-6
CONFIG = kbl.BertConfig(
    vocabulary_size=12,
    hidden_dim=12,
    num_layers=3,
    num_heads=3,
    intermediate_dim=20,
    max_sequence_length=9,
    embedding_dim=5,
    dropout=0.0,
    attention_dropout=0.0,
    initializer_range=0.3,
)
TOKENIZER = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefg"])
SHARED = EncoderParts(shares_block=True)
IDS = {
    "token_ids": np.array([[2, 5, 6, 7, 3, 0], [2, 8, 3, 0, 0, 0]], "int32"),
    "segment_ids": np.array([[0, 0, 0, 1, 1, 0], [0] * 6], "int32"),
    "padding_mask": np.array([[1, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0]], "int32"),
}


def make(seed=7, parts=SHARED, config=CONFIG, **options):
    keras.utils.set_random_seed(seed)
    backbone = kbl.BertBackbone(config, parts=parts, **options)
    rng = np.random.default_rng(seed)
    for weight in backbone.weights:
        weight.assign(np.asarray(weight) + rng.normal(scale=0.3, size=weight.shape))
    return backbone


def make_equal(shared, **options):
    """An encoder whose blocks all hold the weights of the one block."""
    backbone = kbl.BertBackbone(CONFIG, **options)
    for layer in backbone.layers:
        name = "encoder_block_0" if layer.name.startswith("encoder_block_") else layer.name
        layer.set_weights(shared.get_layer(name).get_weights())
    return backbone


def classifier(backbone, **options):
    return kbl.BertClassifier(backbone, 2, preprocessor=kbl.BertPreprocessor(TOKENIZER, 9), dropout=0.0, **options)


def assert_close(first, second):
    """Equal where the tokens of both rows are real."""
    for one, other in zip(keras.tree.flatten(first), keras.tree.flatten(second), strict=True):
        pair = [keras.ops.convert_to_numpy(value) for value in (one, other)]
        if pair[0].ndim > 2:
            pair = [value[..., :3, :] for value in pair]
        np.testing.assert_allclose(*pair, rtol=0, atol=TOLERANCE)


def test_outputs_and_files(tmp_path):
    """Each call has its own hidden state and scores, and a file holds the block once."""
    options = {"return_hidden_states": True, "return_attention_scores": True}
    backbone = make(**options)
    outputs = backbone(IDS)
    assert len(outputs["hidden_states"]) == 4
    assert_close(outputs, make_equal(backbone, **options)(IDS))
    assert [layer.name for layer in backbone.layers if layer.weights] == ["embedding", "encoder_block_0", "pooler"]
    assert len(backbone.weights) == 5 + 2 + 12 + 2
    backbone.save(tmp_path / "x.keras")
    again = read_keras_file(tmp_path / "x.keras")
    assert again.parts == SHARED
    assert_close(again(IDS), outputs)
    features = tasks.Features(backbone, kbl.BertPreprocessor(TOKENIZER, 9), layers="all", combine="stack")
    stacked = keras.ops.convert_to_numpy(features.network(IDS))  # [B, S, layers, H]
    assert_close([stacked[:, :, index] for index in range(4)], outputs["hidden_states"])


@pytest.mark.parametrize(
    "setting",
    [
        "eager",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("padding_free", "rematerialize", "packed_rows")),
    ],
)
def test_the_gradient_is_the_sum(setting):
    """One step of SGD moves the block by the sum of the steps of equal blocks."""
    shared = make()
    before = [np.asarray(weight) for weight in shared.get_layer("encoder_block_0").weights]
    models = shared, make_equal(shared)
    head = np.random.default_rng(3).normal(size=(12, 2))
    for backbone in models:
        backbone.rematerialize = setting == "rematerialize"
        backbone.packed_rows = setting == "packed_rows"
        task = classifier(backbone)
        task.get_layer("classification_head").set_weights([head, np.zeros(2)])
        task.compile(keras.optimizers.SGD(0.1), metrics=[], run_eagerly=setting == "eager")
        task.train_on_batch(IDS, np.array([0, 1]))
    sums = [0.0] * len(before)
    for block in models[1].blocks:
        steps = (np.asarray(weight) - old for weight, old in zip(block.weights, before, strict=True))
        sums = [total + step for total, step in zip(sums, steps, strict=True)]
    for weight, old, total in zip(shared.get_layer("encoder_block_0").weights, before, sums, strict=True):
        np.testing.assert_allclose(np.asarray(weight) - old, total, rtol=0, atol=TOLERANCE)


def lora(model):
    model.backbone.enable_lora(2)
    assert len(model.backbone.trainable_weights) == 8


def reinitialized(model):
    kbl.tasks.reinitialize_layers(model, 0)
    kbl.tasks.reinitialize_layers(model, 3)


def frozen(model):
    train._freeze(model.backbone, "3")
    assert {weight.path.split("/")[0] for weight in model.backbone.trainable_weights} == {"pooler"}


def rates(model):
    assert optimizers.layer_wise_rates(model, 0.5) == {"encoder_block_0/": 0.5, "^embedding/": 0.25}


def pictures(model):
    parts = visualization.Architecture(model.backbone).parts
    assert [part.count for part in parts if part.name.startswith("encoder_block")] == [1]
    weights = visualization.AttentionGrid.from_model(model, "a b").weights
    assert weights.shape == (3, 3, 4, 4)
    assert np.abs(weights[0] - weights[1]).max() > 0.01


def unfrozen(model):
    if keras.backend.backend() != "jax":
        callback = tasks.GradualUnfreezing()
        callback.set_model(model)
        callback.on_train_begin()
        assert [layer.name for layer in callback._layers] == ["encoder_block_0", "embedding"]


def combined(model):
    """All layers or none: of equal encoders, and of those of another depth."""
    both = tasks.CombinedTasks({"one": model, "two": classifier(make())})
    assert both.num_shared_blocks == 3
    assert_close(both(IDS)["one"], model(IDS))
    deeper = make(config=dataclasses.replace(CONFIG, num_layers=4))
    for other in (classifier(deeper), classifier(make_equal(model.backbone))):
        both = tasks.CombinedTasks({"one": model, "two": other})
        assert both.num_shared_blocks == 0
        assert_close(both(IDS), {"one": model(IDS), "two": other(IDS)})


def distilled(model):
    """States and relations are those of the layers of equal blocks."""
    found = []
    for backbone in (model.backbone, make_equal(model.backbone)):
        view = distillation._view(backbone, backbone.output["pooled_output"], [1, 3], [0, 2], 3)
        *_, states, relations = view(IDS)
        found.append([states, relations[..., :3, :3]])
    assert_close(*found)


def attributed(model):
    """The scores add up, through all calls of the block."""
    if keras.backend.backend() == "tensorflow":
        found = model.attribute("a b", target=1)
        assert abs(found.scores.sum() - found.difference) <= found.error + 1e-5


WALKS = {
    "attribution": (attributed, None),
    "lora": (lora, None),
    "lora_blocks": (lambda model: model.backbone.enable_lora(2, lora_blocks=1), "lora_blocks.*one block is shared"),
    "reduce_layers": (lambda model: tasks.reduce_layers(model, 2), "a block for each layer.*`distill`"),
    "reinitialize_all": (reinitialized, None),
    "reinitialize_some": (lambda model: tasks.reinitialize_layers(model, 1), "num_layers.*one block is shared"),
    "freeze_all": (frozen, None),
    "freeze_some": (lambda model: train._freeze(model.backbone, "1"), "--freeze.*one block is shared"),
    "layer_wise_rates": (rates, None),
    "gradual_unfreezing": (unfrozen, None),
    "combined": (combined, None),
    "combined_some": (
        lambda model: tasks.CombinedTasks({"one": model, "two": classifier(make())}, num_shared_blocks=2),
        "num_shared_blocks.*one block is shared",
    ),
    "distillation": (distilled, None),
    "pictures": (pictures, None),
    "google": (lambda model: save_google(model.backbone, "x"), "parts.*no place for other parts"),
    "kerashub": (lambda model: save_kerashub(model.backbone, "x"), "parts.*no place for other parts"),
    "local_attention": (
        lambda model: EncoderParts(shares_block=True, local_attention=LocalAttention(4)),
        "shares_block.*make blocks differ",
    ),
}


@pytest.mark.parametrize(
    "walk", [pytest.param(name, marks=pytest.mark.slow) if name == "attribution" else name for name in WALKS]
)
def test_what_walks_over_blocks(walk):
    """Each is right with one block, or refused by name with a cure."""
    function, error = WALKS[walk]
    model = classifier(make())
    if error is None:
        function(model)
    else:
        with pytest.raises(ValueError, match=error):
            function(model)
