import functools
import inspect
import json
import re

import keras
import numpy as np
import pytest

from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.config import BertConfig

# Two blocks of float32 products and LayerNorms, against float64.
FLOAT32 = 1e-5
# What padding and batch company may change: sums of float32 in another order.
COMPANY = 1e-5
# bfloat16 keeps 8 bits, float16 11; LayerNorm holds the values near 1.
HALF_PRECISION = {"mixed_bfloat16": 0.15, "mixed_float16": 0.02}

CONFIG = BertConfig(
    vocabulary_size=29,
    hidden_dim=12,
    num_layers=2,
    num_heads=3,
    intermediate_dim=20,
    max_sequence_length=11,
    num_segments=4,
    layer_norm_epsilon=1e-6,
    initializer_range=0.3,
)
FACTORISED = BertConfig.from_dict({**CONFIG.to_dict(), "embedding_dim": 5, "activation": "gelu_tanh"})
DISTILBERT = BertConfig.from_dict({**CONFIG.to_dict(), "num_segments": 0, "pooler_activation": "relu"})
ROBERTA = BertConfig.from_dict({**CONFIG.to_dict(), "position_offset": 2})
ELECTRA = BertConfig.from_dict({**FACTORISED.to_dict(), "pooler_activation": "gelu_erf"})
RELATIVES = {"distilbert": DISTILBERT, "roberta": ROBERTA, "electra": ELECTRA}
MASK = np.array([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]], "int32")


@pytest.fixture
def inputs():
    generator = np.random.default_rng(4)
    return {
        "token_ids": generator.integers(0, 29, (3, 7)).astype("int32"),
        "segment_ids": generator.integers(0, 4, (3, 7)).astype("int32"),
        "padding_mask": MASK.copy(),
    }


def make(config=CONFIG, **kwargs):
    keras.utils.set_random_seed(6)
    backbone = BertBackbone(config, **kwargs)
    generator = np.random.default_rng(8)
    for weight in backbone.weights:
        if weight.path.endswith(("bias", "beta", "gamma")):  # fresh ones are 0 and 1 and would hide mistakes
            weight.assign(np.asarray(weight.value) + generator.normal(scale=0.3, size=weight.shape))
    return backbone


# For tests that only look at one and call it.
plain = functools.cache(make)


def flat(outputs):
    return [np.asarray(keras.ops.cast(output, "float32")) for output in keras.tree.flatten(outputs)]


@pytest.mark.parametrize("config", [CONFIG, FACTORISED, *RELATIVES.values()], ids=["plain", "factorised", *RELATIVES])
def test_values(config, inputs, numpy_bert):
    backbone = make(config, return_hidden_states=True, return_attention_scores=True)
    weights = {weight.path: np.asarray(weight.value) for weight in backbone.weights}
    names = ("num_layers", "num_heads", "activation", "position_offset", "pooler_activation")
    settings = {name: getattr(config, name) for name in names}
    expected = numpy_bert.bert(weights, inputs, epsilon=config.layer_norm_epsilon, **settings)
    outputs = backbone(inputs)
    assert set(outputs) == set(expected)
    assert len(outputs["hidden_states"]) == 3
    assert len(outputs["attention_scores"]) == 2
    for key, value in expected.items():
        for ours, reference in zip(keras.tree.flatten(outputs[key]), keras.tree.flatten(value), strict=True):
            np.testing.assert_allclose(np.asarray(ours), reference, atol=FLOAT32, err_msg=key)


def test_outputs_are_as_asked(inputs):
    backbone = plain()
    outputs = backbone(inputs)
    assert {key: tuple(value.shape) for key, value in outputs.items()} == {
        "sequence_output": (3, 7, 12),
        "pooled_output": (3, 12),
    }
    more = plain(return_hidden_states=True, return_attention_scores=True)(inputs)
    np.testing.assert_allclose(
        np.asarray(more["sequence_output"]), np.asarray(outputs["sequence_output"]), atol=FLOAT32
    )
    np.testing.assert_array_equal(np.asarray(more["hidden_states"][-1]), np.asarray(more["sequence_output"]))
    assert [tuple(scores.shape) for scores in more["attention_scores"]] == [(3, 3, 7, 7)] * 2


def test_inputs_are_named_and_open_in_batch_and_sequence():
    backbone = plain()
    assert list(backbone.input) == ["token_ids", "segment_ids", "padding_mask"]
    assert {(value.shape, value.dtype) for value in backbone.input.values()} == {((None, None), "int32")}
    assert backbone.output["sequence_output"].shape == (None, None, 12)


def test_predict_equals_a_call(inputs):
    backbone = make(return_hidden_states=True)
    has_text = inputs["padding_mask"].any(axis=1)
    for ours, eager in zip(flat(backbone.predict(inputs, verbose=0)), flat(backbone(inputs)), strict=True):
        places = has_text if ours.ndim == 2 else inputs["padding_mask"] == 1
        np.testing.assert_allclose(ours[places], np.asarray(eager)[places], atol=FLOAT32)


@pytest.mark.parametrize("dtype", list(HALF_PRECISION))
def test_dtype_policies(dtype, inputs):
    expected = make(return_hidden_states=True)
    half = make(return_hidden_states=True, dtype=dtype)
    half.set_weights(expected.get_weights())
    outputs = half(inputs)
    compute_dtype = dtype.removeprefix("mixed_")
    assert {keras.backend.standardize_dtype(v.dtype) for v in keras.tree.flatten(outputs)} == {compute_dtype}
    assert {weight.dtype for weight in half.weights} == {"float32"}
    for ours, reference in zip(flat(outputs), flat(expected(inputs)), strict=True):
        np.testing.assert_allclose(ours, reference, atol=HALF_PRECISION[dtype])
    assert half.dtype_policy.name == dtype


@pytest.mark.parametrize(
    ("config", "dtype"),
    [
        *[(config, dtype) for config in (CONFIG, FACTORISED) for dtype in ("float32", "mixed_bfloat16")],
        *[(config, "mixed_bfloat16") for config in RELATIVES.values()],
    ],
)
def test_saving(config, dtype, inputs, tmp_path):
    if dtype != "float32":  # whose files have two blocks
        config = BertConfig.from_dict({**config.to_dict(), "num_layers": 1})
    backbone = make(config, dtype=dtype, return_attention_scores=True, name="encoder")
    backbone.save(tmp_path / "backbone.keras")
    loaded = keras.models.load_model(tmp_path / "backbone.keras")
    assert type(loaded) is BertBackbone
    assert loaded.config == config
    assert loaded.get_config() == backbone.get_config()
    for ours, reference in zip(flat(loaded(inputs)), flat(backbone(inputs)), strict=True):
        np.testing.assert_array_equal(ours, reference)


def test_weights_file(inputs, tmp_path):
    backbone, other = make(), BertBackbone(CONFIG)
    backbone.save_weights(tmp_path / "backbone.weights.h5")
    other.load_weights(tmp_path / "backbone.weights.h5")
    np.testing.assert_array_equal(flat(other(inputs))[0], flat(backbone(inputs))[0])


def test_config_round_trip():
    backbone = make(FACTORISED, return_hidden_states=True, dtype="mixed_float16", name="encoder", trainable=False)
    config = backbone.get_config()
    assert json.loads(json.dumps(config)) == config
    signature = inspect.signature(BertBackbone.__init__).parameters
    arguments = {n for n, p in signature.items() if n != "self" and p.kind is not inspect.Parameter.VAR_KEYWORD}
    assert arguments <= set(config)
    again = BertBackbone.from_config(config)
    assert again.get_config() == config
    assert not again.trainable_weights


def test_cloning(inputs):
    backbone = plain()
    clone = keras.models.clone_model(backbone)
    clone.set_weights(backbone.get_weights())
    np.testing.assert_allclose(flat(clone(inputs))[0], flat(backbone(inputs))[0], atol=FLOAT32)


def test_weight_paths():
    """Checkpoint readers rely on these names; a change breaks what people saved."""
    block = [
        "attention/query_key_value/kernel",
        "attention/query_key_value/bias",
        "attention/output/kernel",
        "attention/output/bias",
        "attention_layer_norm/gamma",
        "attention_layer_norm/beta",
        "feed_forward/intermediate/kernel",
        "feed_forward/intermediate/bias",
        "feed_forward/output/kernel",
        "feed_forward/output/bias",
        "feed_forward_layer_norm/gamma",
        "feed_forward_layer_norm/beta",
    ]
    expected = [
        "embedding/token_embedding",
        "embedding/segment_embedding",
        "embedding/position_embedding",
        "embedding/layer_norm/gamma",
        "embedding/layer_norm/beta",
        "embedding/projection/kernel",
        "embedding/projection/bias",
        *[f"encoder_block_{index}/{path}" for index in range(2) for path in block],
        "pooler/dense/kernel",
        "pooler/dense/bias",
    ]
    assert sorted(weight.path for weight in make(FACTORISED).weights) == sorted(expected)
    plain = sorted(path for path in expected if "projection" not in path)
    assert sorted(weight.path for weight in make(CONFIG, name="other").weights) == plain
    shapes = {weight.path: tuple(weight.shape) for weight in make(FACTORISED).weights}
    assert shapes["embedding/token_embedding"] == (29, 5)
    assert shapes["embedding/segment_embedding"] == (4, 5)
    assert shapes["embedding/position_embedding"] == (11, 5)
    assert shapes["encoder_block_0/attention/query_key_value/kernel"] == (12, 36)


def test_no_two_fresh_matrices_are_equal():
    keras.utils.set_random_seed(1)
    matrices = [np.asarray(weight.value) for weight in BertBackbone(CONFIG).weights if len(weight.shape) == 2]
    for index, matrix in enumerate(matrices):
        assert abs(matrix.mean()) < 0.15
        assert not any(np.array_equal(matrix, other) for other in matrices[:index])


def test_the_same_seed_gives_the_same_weights():
    for ours, again in zip(make().get_weights(), make().get_weights(), strict=True):
        np.testing.assert_array_equal(ours, again)


def test_padding_content_changes_nothing(inputs):
    backbone = plain()
    before = backbone(inputs)
    changed = {**inputs, "token_ids": np.where(MASK == 1, inputs["token_ids"], 28).astype("int32")}
    changed["segment_ids"] = np.where(MASK == 1, inputs["segment_ids"], 3).astype("int32")
    after = backbone(changed)
    real = MASK == 1
    np.testing.assert_array_equal(flat(after["sequence_output"])[0][real], flat(before["sequence_output"])[0][real])
    np.testing.assert_array_equal(flat(after["pooled_output"])[0][:2], flat(before["pooled_output"])[0][:2])


def test_company_and_more_padding_change_nothing(inputs):
    backbone = plain()
    together = flat(backbone(inputs)["sequence_output"])[0]
    longer = {key: np.pad(value, ((0, 0), (0, 4)), constant_values=key == "token_ids") for key, value in inputs.items()}
    padded = flat(backbone(longer)["sequence_output"])[0]
    for row in range(3):
        real = MASK[row].sum()
        alone = flat(backbone({key: value[row : row + 1, : max(real, 1)] for key, value in inputs.items()}))[1][0]
        np.testing.assert_allclose(alone[:real], together[row, :real], atol=COMPANY)
        np.testing.assert_allclose(padded[row, :real], together[row, :real], atol=COMPANY)


@pytest.mark.parametrize("dtype", ["float32", *HALF_PRECISION])
def test_a_row_of_padding_is_finite(dtype, inputs):
    outputs = plain(dtype=dtype, return_hidden_states=True, return_attention_scores=True)(inputs)
    assert all(np.isfinite(output).all() for output in flat(outputs))


def test_permuting_the_batch_permutes_the_output(inputs):
    backbone = plain()
    order = [2, 0, 1]
    shuffled = backbone({key: value[order] for key, value in inputs.items()})
    np.testing.assert_allclose(
        flat(shuffled["sequence_output"])[0], flat(backbone(inputs)["sequence_output"])[0][order], atol=COMPANY
    )


def test_dropout_only_in_training(inputs):
    backbone = plain()
    quiet, noisy = flat(backbone(inputs)), flat(backbone(inputs, training=True))
    assert np.abs(noisy[1] - quiet[1]).max() > 0.01
    np.testing.assert_array_equal(flat(backbone(inputs, training=False))[1], quiet[1])


@pytest.mark.slow
def test_every_weight_learns(inputs):
    backbone = make(FACTORISED)
    before = [np.array(value) for value in backbone.get_weights()]
    pooled, sequence = backbone.output["pooled_output"], backbone.output["sequence_output"]
    model = keras.Model(backbone.input, [pooled, sequence])
    model.compile("sgd", ["mse", "mse"])
    targets = np.random.default_rng(1).normal(size=(3, 7, 12)).astype("float32")
    model.fit(inputs, [targets[:, 0], targets], epochs=1, verbose=0)
    for weight, old in zip(backbone.weights, before, strict=True):
        assert np.abs(np.asarray(weight.value) - old).max() > 0, weight.path


def test_layers_are_found_by_name():
    backbone = plain()
    assert backbone.get_layer("embedding").token_embedding.shape == (29, 12)
    assert backbone.get_layer("encoder_block_1").attention.num_heads == 3
    assert backbone.get_layer("pooler") is not None


def test_too_long_a_sequence(inputs):
    longer = {key: np.ones((2, 12), "int32") for key in inputs}
    text = "`token_ids.shape` must have at most `max_sequence_length` (11) tokens per row. "
    text += "Received: token_ids.shape=(2, 12)"
    with pytest.raises(ValueError, match=re.escape(text)):
        plain()(longer)
    with pytest.raises(Exception, match=re.escape("(11) tokens per row") + r"|[Ss]lice|size\[0\]"):
        plain().predict(longer, verbose=0)


@pytest.mark.parametrize("config", [CONFIG.to_dict(), None, 7, "bert_base_uncased"])
def test_only_a_config_is_accepted(config):
    with pytest.raises(TypeError, match=r"`BertBackbone`: `config` must be a BertConfig\. Received: config="):
        BertBackbone(config)


def test_flags_are_checked():
    with pytest.raises(TypeError, match="`BertBackbone`: `return_hidden_states` must be True or False"):
        BertBackbone(CONFIG, return_hidden_states=1)
    with pytest.raises(TypeError, match="`BertBackbone`: `return_attention_scores` must be True or False"):
        BertBackbone(CONFIG, return_attention_scores="yes")


def test_not_trainable_freezes_every_layer():
    config = BertConfig(vocabulary_size=17, hidden_dim=6, num_layers=1, num_heads=3, intermediate_dim=10)
    backbone = BertBackbone(config, trainable=False)
    assert not any(layer.trainable for layer in backbone._flatten_layers())
    again = BertBackbone.from_config(backbone.get_config())
    assert again.trainable_weights == []
    assert len(again.non_trainable_weights) == len(backbone.weights) == 19
