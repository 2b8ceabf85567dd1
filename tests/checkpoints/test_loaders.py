import importlib
import logging
import shutil

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert_layers import BertBackbone, load_backbone, load_preprocessor, load_tokenizer
from keras_bert_layers.checkpoints import CheckpointError, load_report


def expected_weights(tensors, num_layers=2):
    """Our weights by path, put together by hand from a file's tensors."""
    weights = {
        "embedding/token_embedding": tensors["embeddings.word_embeddings.weight"],
        "embedding/position_embedding": tensors["embeddings.position_embeddings.weight"],
        "embedding/segment_embedding": tensors["embeddings.token_type_embeddings.weight"],
    }
    norms = {"embedding/layer_norm": "embeddings.LayerNorm"}
    denses = {"pooler/dense": "pooler.dense"}
    for layer in range(num_layers):
        ours, theirs = f"encoder_block_{layer}", f"encoder.layer.{layer}"
        parts = [f"{theirs}.attention.self.{part}" for part in ("query", "key", "value")]
        merged = f"{ours}/attention/query_key_value"
        weights[f"{merged}/kernel"] = np.concatenate([tensors[f"{part}.weight"].T for part in parts], axis=1)
        weights[f"{merged}/bias"] = np.concatenate([tensors[f"{part}.bias"] for part in parts])
        denses[f"{ours}/attention/output"] = f"{theirs}.attention.output.dense"
        denses[f"{ours}/feed_forward/intermediate"] = f"{theirs}.intermediate.dense"
        denses[f"{ours}/feed_forward/output"] = f"{theirs}.output.dense"
        norms[f"{ours}/attention_layer_norm"] = f"{theirs}.attention.output.LayerNorm"
        norms[f"{ours}/feed_forward_layer_norm"] = f"{theirs}.output.LayerNorm"
    for ours, theirs in denses.items():
        weights |= {f"{ours}/kernel": tensors[f"{theirs}.weight"].T, f"{ours}/bias": tensors[f"{theirs}.bias"]}
    for ours, theirs in norms.items():
        weights |= {f"{ours}/gamma": tensors[f"{theirs}.weight"], f"{ours}/beta": tensors[f"{theirs}.bias"]}
    return weights


def assert_weights(backbone, tensors):
    expected = expected_weights({name: tensor.astype("float32") for name, tensor in tensors.items()})
    assert len(backbone.weights) == len(expected)
    for weight in backbone.weights:
        (path,) = (path for path in expected if f"/{weight.path}".endswith(f"/{path}"))
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(weight), expected[path], err_msg=path)


def with_tensors(checkpoint, **changes):
    """Changes tensors of a checkpoint's file; None takes one away."""
    tensors = load_file(checkpoint / "model.safetensors")
    for name, tensor in changes.items():
        if tensor is None:
            del tensors[name.replace("__", ".")]
        else:
            tensors[name.replace("__", ".")] = tensor
    save_file(tensors, checkpoint / "model.safetensors")
    return checkpoint


@pytest.fixture
def no_assignment(monkeypatch):
    """Fails if any weight of any model is assigned: errors come before the first."""

    def refuse(self, value):
        raise AssertionError(f"{self.path} was assigned before the check")

    monkeypatch.setattr(keras.Variable, "assign", refuse)


def test_every_weight_and_the_config(checkpoint, huggingface):
    backbone = load_backbone(checkpoint)
    assert isinstance(backbone, BertBackbone)
    assert_weights(backbone, huggingface.random_tensors())
    config = backbone.config
    assert (config.num_heads, config.num_segments, config.max_sequence_length) == (3, 4, 17)
    assert (config.activation, config.layer_norm_epsilon, config.attention_dropout) == ("gelu_erf", 1e-7, 0.2)


def test_options_reach_the_backbone(checkpoint):
    backbone = load_backbone(checkpoint, name="encoder", return_hidden_states=True, dtype="mixed_bfloat16")
    assert (backbone.name, backbone.return_hidden_states) == ("encoder", True)
    assert backbone.get_layer("embedding").compute_dtype == "bfloat16"


def test_report(checkpoint, huggingface, caplog):
    huggingface.write(
        checkpoint, tensors={**huggingface.random_tensors(), "embeddings.position_ids": np.arange(17)[None]}
    )
    with caplog.at_level(logging.INFO, logger="keras_bert_layers.checkpoints"):
        report = load_report(load_backbone(checkpoint))
    assert set(report.loaded) == set(huggingface.shapes(huggingface.CONFIG))
    assert report.fresh == ()
    assert report.ignored == {"embeddings.position_ids": "a buffer: the integers 0, 1, 2, ..."}
    assert caplog.messages == [str(report)]
    assert str(report).startswith(f"{checkpoint}: 39 tensors loaded, 0 weights newly initialized, 1 tensor ignored")


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_number_formats(checkpoint, huggingface, dtype):
    tensors = huggingface.random_tensors(dtype=dtype)
    huggingface.write(checkpoint, tensors=tensors)
    assert_weights(load_backbone(checkpoint), tensors)


def test_bfloat16(checkpoint, huggingface):
    ml_dtypes = importlib.import_module("ml_dtypes")  # Keras brings it
    tensors = huggingface.random_tensors(dtype=ml_dtypes.bfloat16)
    huggingface.write(checkpoint, tensors=tensors)
    assert_weights(load_backbone(checkpoint), tensors)


def test_prefix_and_head(checkpoint, huggingface):
    tensors = huggingface.random_tensors(prefix="bert.", head=3)
    huggingface.write(checkpoint, tensors={**tensors, "cls.predictions.bias": np.zeros(23, "float32")})
    backbone = load_backbone(checkpoint)
    assert_weights(backbone, {name.removeprefix("bert."): tensor for name, tensor in tensors.items()})
    assert load_report(backbone).ignored == {
        "classifier.bias": "a classification head",
        "classifier.weight": "a classification head",
        "cls.predictions.bias": "a pretraining head",
    }


def test_gamma_and_beta(checkpoint, huggingface):
    tensors = huggingface.random_tensors()
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in tensors.items()
    }
    assert old.keys() != tensors.keys()
    huggingface.write(checkpoint, tensors=old)
    assert_weights(load_backbone(checkpoint), tensors)


def test_shards(checkpoint, huggingface):
    tensors = huggingface.random_tensors()
    names, files = list(tensors), ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    halves = names[:20], names[20:]
    for half, file in zip(halves, files, strict=True):
        save_file({name: tensors[name] for name in half}, checkpoint / file)
    weight_map = {name: file for half, file in zip(halves, files, strict=True) for name in half}
    huggingface.write_json(checkpoint / "model.safetensors.index.json", {"weight_map": weight_map})
    (checkpoint / "model.safetensors").unlink()
    assert_weights(load_backbone(checkpoint), tensors)


def test_no_pooler(checkpoint, huggingface):
    huggingface.write(checkpoint, tensors=huggingface.random_tensors(pooler=False))
    with pytest.warns(UserWarning, match=r"has no pooler, so the pooler's weights are random"):
        backbone = load_backbone(checkpoint)
    assert load_report(backbone).fresh == ("pooler/dense/kernel", "pooler/dense/bias")


def test_half_a_pooler(checkpoint, no_assignment):
    with_tensors(checkpoint, pooler__dense__bias=None)
    with pytest.raises(CheckpointError, match=r"needs 1 tensors that the weights file lacks: pooler\.dense\.bias\."):
        load_backbone(checkpoint)


def test_missing_tensor(checkpoint, no_assignment):
    with_tensors(checkpoint, **{"encoder__layer__1__output__dense__bias": None})
    with pytest.raises(CheckpointError, match=r"lacks: encoder\.layer\.1\.output\.dense\.bias\..*belong together"):
        load_backbone(checkpoint)


def test_many_missing_tensors(checkpoint, huggingface, no_assignment):
    huggingface.write_json(checkpoint / "config.json", {**huggingface.CONFIG, "num_hidden_layers": 3})
    with pytest.raises(CheckpointError, match=r"needs 16 tensors .*encoder\.layer\.2\.attention.* and 11 more"):
        load_backbone(checkpoint)


def test_unexpected_tensor(checkpoint, no_assignment):
    with_tensors(checkpoint, encoder__layer__0__adapter__weight=np.ones(3, "float32"))
    with pytest.raises(
        CheckpointError, match=r"holds 1 tensors that .*no weight for: encoder\.layer\.0\.adapter\.weight"
    ):
        load_backbone(checkpoint)


def test_wrong_shape(checkpoint, no_assignment):
    with_tensors(checkpoint, encoder__layer__0__intermediate__dense__weight=np.ones((15, 22), "float32"))
    with pytest.raises(
        CheckpointError,
        match=r"'encoder\.layer\.0\.intermediate\.dense\.weight' must have shape \(22, 15\)\. .*shape=\(15, 22\)",
    ):
        load_backbone(checkpoint)


def test_wrong_shape_of_a_part(checkpoint, no_assignment):
    with_tensors(checkpoint, encoder__layer__1__attention__self__key__bias=np.ones(45, "float32"))
    with pytest.raises(CheckpointError, match=r"self\.key\.bias' must have shape \(15,\)\. Received: shape=\(45,\)"):
        load_backbone(checkpoint)


def test_vocabulary_size_unlike_the_embedding(checkpoint, huggingface, no_assignment):
    huggingface.write_json(checkpoint / "config.json", {**huggingface.CONFIG, "vocab_size": 24})
    with pytest.raises(CheckpointError, match=r"The config's vocabulary size must equal the embedding's 23 rows"):
        load_backbone(checkpoint)


def test_weights_of_integers(checkpoint, no_assignment):
    with_tensors(checkpoint, pooler__dense__weight=np.ones((15, 15), "int8"))
    with pytest.raises(CheckpointError, match=r"'pooler\.dense\.weight' must hold floats, .*Received: I8.*Quantised"):
        load_backbone(checkpoint)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite(checkpoint, value):
    bias = np.ones(15, "float32")
    bias[7] = value
    with_tensors(checkpoint, pooler__dense__bias=bias)
    with pytest.raises(CheckpointError, match=r"tensor 'pooler\.dense\.bias' holds NaN or infinity"):
        load_backbone(checkpoint)


def test_truncated_weights(checkpoint, no_assignment):
    path = checkpoint / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=r"not a complete safetensors file"):
        load_backbone(checkpoint)


def test_oldest_sentence_transformers_layout(checkpoint, huggingface, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    shutil.move(checkpoint, root / "0_BERT")
    huggingface.write_json(
        root / "modules.json", [{"type": "sentence_transformers.models.Transformer", "path": "0_BERT"}]
    )
    assert_weights(load_backbone(root), huggingface.random_tensors())


def test_relu_and_the_tanh_form_are_read(checkpoint, huggingface):
    for theirs, ours in (("relu", "relu"), ("gelu_new", "gelu_tanh")):
        huggingface.write_json(checkpoint / "config.json", {**huggingface.CONFIG, "hidden_act": theirs})
        assert load_backbone(checkpoint).config.activation == ours


@pytest.mark.slow
def test_loading_twice_gives_two_equal_models(checkpoint):
    first, second = load_backbone(checkpoint), load_backbone(checkpoint)
    ids = np.array([[2, 5, 6, 7, 3, 0]])
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": (ids > 0).astype("int32")}
    one, two = (model.predict(inputs, verbose=0)["sequence_output"] for model in (first, second))
    np.testing.assert_array_equal(one, two)


def ids(huggingface, *tokens):
    return [[huggingface.VOCABULARY.index(token) for token in tokens]]


def test_arguments_of_the_tokenizer(checkpoint, huggingface):
    huggingface.write_json(
        checkpoint / "tokenizer_config.json", {"do_lower_case": False, "tokenize_chinese_chars": False}
    )
    assert load_tokenizer(checkpoint).get_config() == {
        "vocabulary": huggingface.VOCABULARY,
        "lowercase": False,
        "strip_accents": None,
        "split_chinese": False,
        "num_pair_separators": 1,
        "reference": "huggingface",
        "added_tokens": [],
        "special_tokens": None,
    }


def test_uncased(checkpoint, huggingface):
    tokens = load_tokenizer(checkpoint).tokenize(["A GOODness中 films"]).to_list()
    assert tokens == ids(huggingface, "a", "good", "##ness", "中", "film", "##s")


def test_cased(checkpoint, huggingface):
    huggingface.write_json(checkpoint / "tokenizer_config.json", {"do_lower_case": False})
    assert load_tokenizer(checkpoint).tokenize(["É A é"]).to_list() == ids(huggingface, "É", "[UNK]", "é")


def test_tokenizer_json_goes_before_vocab_txt(checkpoint, huggingface):
    vocabulary = [*huggingface.VOCABULARY, "more"]
    huggingface.write_json(checkpoint / "tokenizer.json", huggingface.tokenizer_json(vocabulary))
    assert load_tokenizer(checkpoint).tokenize(["more"]).to_list() == [[18]]


def test_needs_neither_weights_nor_config(checkpoint):
    (checkpoint / "model.safetensors").unlink()
    (checkpoint / "config.json").unlink()
    assert load_tokenizer(checkpoint).tokenize(["good"]).to_list() == [[6]]


def test_fewer_tokens_than_embeddings_are_allowed(checkpoint, huggingface):
    assert len(huggingface.VOCABULARY) < huggingface.CONFIG["vocab_size"]
    load_tokenizer(checkpoint)


def test_more_tokens_than_embeddings(checkpoint, huggingface):
    huggingface.write_json(checkpoint / "config.json", {**huggingface.CONFIG, "vocab_size": 17})
    with pytest.raises(
        CheckpointError, match=r"must not hold more tokens than config.json's vocab_size of 17. Received: 18"
    ):
        load_tokenizer(checkpoint)


def test_no_such_directory():
    with pytest.raises(CheckpointError, match=r"`load_tokenizer`: `source` must be an existing directory"):
        load_tokenizer("nowhere")


def test_longest_text_of_the_checkpoint(checkpoint, huggingface):
    assert load_preprocessor(checkpoint).max_length == 17
    huggingface.write_json(checkpoint / "tokenizer_config.json", {"model_max_length": 11})
    assert load_preprocessor(checkpoint).max_length == 11


def test_options_reach_the_preprocessor(checkpoint):
    preprocessor = load_preprocessor(checkpoint, max_length=5, padding="max_length", truncation="only_first")
    assert (preprocessor.max_length, preprocessor.padding, preprocessor.truncation) == (5, "max_length", "only_first")
    assert preprocessor(["good bad film night"])["token_ids"].numpy().tolist() == [[2, 6, 7, 8, 3]]


def test_tokenizer_of_the_checkpoint(checkpoint):
    assert load_preprocessor(checkpoint).tokenizer.reference == "huggingface"


def test_errors_name_the_function():
    with pytest.raises(CheckpointError, match=r"`load_preprocessor`: `source` must be an existing directory"):
        load_preprocessor("nowhere")
