"""`quantize`, and `.keras` files of quantized models."""

import gc

import keras
import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers.preprocessing import SpanPreprocessor

TAGS = ["O", "B-place", "I-place"]
# Eight bits hold a weight to 1/254 of its column's largest. Measured on these models: 0.02 of the largest output.
TOLERANCE = 0.1

MODELS = {
    "backbone": lambda b, p: b,
    "classifier": lambda b, p: kbl.BertClassifier(b, 3, preprocessor=p),
    "field": lambda b, p: kbl.BertTokenClassifier(b, TAGS, crf=True, preprocessor=p),
    "answers": lambda b, p: kbl.BertQuestionAnswerer(b, SpanPreprocessor(p.tokenizer, 9, stride=2)),
    "choices": lambda b, p: kbl.BertMultipleChoice(b, preprocessor=p),
    "masks": kbl.BertMaskedLM,
    "pretrainer": kbl.BertPretrainer,
    "vectors": lambda b, p: kbl.BertSentenceEncoder(b, projection_dim=7, preprocessor=p),
    "search": lambda b, p: kbl.BertDualEncoder(b, document_backbone=kbl.BertBackbone(b.config), preprocessor=p),
    "ranking": kbl.BertCrossEncoder,
}


@pytest.fixture(autouse=True)
def no_collection(monkeypatch):
    """Keras collects garbage after each layer that it quantizes, 0.3 s in a process that has loaded TensorFlow."""
    monkeypatch.setattr(gc, "collect", lambda *_: 0)


@pytest.fixture
def small_backbone(vocabulary):
    keras.utils.set_random_seed(11)
    sizes = {"hidden_dim": 15, "num_layers": 1, "num_heads": 3, "intermediate_dim": 21, "initializer_range": 0.3}
    return kbl.BertBackbone(kbl.BertConfig(vocabulary_size=len(vocabulary), max_sequence_length=13, **sizes))


def outputs(model):
    """All outputs for ids that are 1, real tokens."""
    ids = keras.tree.map_structure(
        lambda tensor: np.ones([2 if size is None else size for size in tensor.shape], "int32"), model.input
    )
    return [np.asarray(output) for output in keras.tree.flatten(model(ids))]


def quantized(model):
    return [layer.quantization_mode for layer in model._flatten_layers() if isinstance(layer, keras.layers.Dense)]


@pytest.mark.parametrize("name", MODELS)
def test_a_file_of_int8_weights(name, small_backbone, preprocessor, tmp_path):
    model = MODELS[name](small_backbone, preprocessor)
    before = outputs(model)
    model.quantize("int8")
    after = outputs(model)
    assert set(quantized(model)) == {"int8"}
    for exact, found in zip(before, after, strict=True):
        scale = np.abs(exact[np.abs(exact) < 1e6]).max()  # without the logits of positions that cannot be an answer
        assert 0 < np.abs(found - exact).max() < TOLERANCE * scale
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert quantized(loaded) == quantized(model)
    for found, expected in zip(outputs(loaded), after, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("mode", "config"),
    [
        ("int4", keras.quantizers.Int4QuantizationConfig(block_size=8)),
        ("float8", None),
        (None, keras.quantizers.Int8QuantizationConfig(activation_quantizer=None)),
    ],
)
def test_other_modes_and_some_layers(mode, config, small_backbone, tmp_path):
    small_backbone.quantize(mode, config, filters="intermediate")
    assert len({*quantized(small_backbone)}) == 2
    small_backbone.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert quantized(loaded) == quantized(small_backbone)
    for found, expected in zip(outputs(loaded), outputs(small_backbone), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_mode_that_calibrates_is_refused_before_it_quantizes(small_backbone):
    config = keras.quantizers.GPTQConfig(dataset=["a"], tokenizer=str)
    for model in (small_backbone, kbl.BertClassifier(small_backbone, 2)):
        with pytest.raises(ValueError, match=r"`mode` must be one of .*'gptq'.* `.keras` file does not hold"):
            model.quantize("gptq", config)
    assert set(quantized(small_backbone)) == {None}


def test_a_config_without_quantized_layers_does_not_mention_them(small_backbone):
    assert "quantized_layers" not in small_backbone.get_config()
