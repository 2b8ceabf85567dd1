import json
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers import load_backbone, load_preprocessor, load_task, load_tokenizer
from keras_bert_layers.checkpoints import CheckpointError, load_report
from keras_bert_layers.checkpoints.google.directory import GoogleDirectory


@pytest.fixture
def directory(google, tmp_path):
    """A pretrained checkpoint."""
    shapes = {**google.encoder(), **google.masked_lm(), **google.next_sentence()}
    return google.write(tmp_path / "uncased_L-2_H-15_A-3", shapes)[0]


def weights(model):
    return {weight.path: keras.ops.convert_to_numpy(weight) for weight in model.weights}


def assert_weights(model, expected):
    found = weights(model)
    assert len(found) == len(expected)
    for path, array in expected.items():
        (name,) = (name for name in found if f"/{name}".endswith(f"/{path}"))
        np.testing.assert_array_equal(found[name], array, err_msg=path)


def change_config(directory, **changes):
    path = directory / "bert_config.json"
    values = {**json.loads(path.read_text(encoding="utf-8")), **changes}
    path.write_text(json.dumps({key: value for key, value in values.items() if value is not None}), encoding="utf-8")


def test_describes(directory):
    assert GoogleDirectory.describes(directory)
    (directory / "bert_config.json").unlink()
    assert GoogleDirectory.describes(directory)
    (directory / "config.json").write_text("{}", encoding="utf-8")
    assert not GoogleDirectory.describes(directory)
    assert not GoogleDirectory.describes(directory.parent)


def test_every_weight_and_the_config(directory, google):
    shapes = {**google.encoder(), **google.masked_lm(), **google.next_sentence()}
    backbone = load_backbone(directory)
    assert_weights(backbone, google.expected_weights(google.random_arrays(shapes)))
    config = backbone.config
    assert (config.vocabulary_size, config.hidden_dim, config.num_layers, config.num_heads) == (23, 15, 2, 3)
    assert (config.intermediate_dim, config.max_sequence_length, config.num_segments) == (22, 17, 4)
    assert (config.activation, config.layer_norm_epsilon, config.embedding_dim) == ("gelu_tanh", 1e-12, None)
    assert (config.dropout, config.attention_dropout, config.initializer_range) == (0.1, 0.2, 0.03)
    report = load_report(backbone)
    assert set(report.loaded) == set(google.encoder())
    assert set(report.ignored) == set(google.masked_lm()) | set(google.next_sentence())
    assert set(report.ignored.values()) == {"a pretraining head"}


def test_slots_of_the_optimizer(google, tmp_path):
    shapes = google.encoder()
    path, arrays = google.write(tmp_path / "a", {**shapes, **google.slots(shapes)}, prefix="model.ckpt-1000")
    backbone = load_backbone(path)
    assert_weights(backbone, google.expected_weights(arrays))
    assert len(load_report(backbone).ignored) == 2 * len(shapes) + 1
    assert set(load_report(backbone).ignored.values()) == {"an optimizer's state"}


def test_narrower_embedding(google, tmp_path):
    shapes = {
        **{
            name: (*shape[:-1], 7) if name.startswith("bert/embeddings") else shape
            for name, shape in google.encoder().items()
        },
        "bert/encoder/embedding_hidden_mapping_in/kernel": (7, 15),
        "bert/encoder/embedding_hidden_mapping_in/bias": (15,),
    }
    path, arrays = google.write(tmp_path / "a", shapes, config={**google.CONFIG, "embedding_size": 7})
    backbone = load_backbone(path)
    assert backbone.config.embedding_dim == 7
    assert_weights(backbone, google.expected_weights(arrays))


def test_a_pretrainer(directory, google):
    shapes = {**google.encoder(), **google.masked_lm(), **google.next_sentence()}
    arrays = google.random_arrays(shapes)
    model = load_task(directory)
    assert type(model).__name__ == "BertPretrainer"
    head = {
        "masked_lm_head/dense/kernel": arrays["cls/predictions/transform/dense/kernel"],
        "masked_lm_head/dense/bias": arrays["cls/predictions/transform/dense/bias"],
        "masked_lm_head/layer_norm/gamma": arrays["cls/predictions/transform/LayerNorm/gamma"],
        "masked_lm_head/layer_norm/beta": arrays["cls/predictions/transform/LayerNorm/beta"],
        "masked_lm_head/bias": arrays["cls/predictions/output_bias"],
        "next_sentence_head/dense/kernel": arrays["cls/seq_relationship/output_weights"].T,
        "next_sentence_head/dense/bias": arrays["cls/seq_relationship/output_bias"],
    }
    assert_weights(model, {**google.expected_weights(arrays), **head})
    masked_lm = load_task(directory, task="masked_lm")
    head = {path: array for path, array in head.items() if path.startswith("masked_lm_head")}
    assert_weights(masked_lm, {**google.expected_weights(arrays), **head})


def test_a_classifier(google, tmp_path):
    shapes = {**google.encoder(), **google.classifier(5)}
    path, arrays = google.write(tmp_path / "mrpc_output", shapes, prefix="model.ckpt-343")
    model = load_task(path)
    assert (type(model).__name__, model.num_classes, model.class_names, model.dropout) == (
        "BertClassifier",
        5,
        None,
        0.1,
    )
    head = {
        "classification_head/dense/kernel": arrays["output_weights"].T,
        "classification_head/dense/bias": arrays["output_bias"],
    }
    assert_weights(model, {**google.expected_weights(arrays), **head})
    assert load_task(path, class_names=list("abcde")).class_names == list("abcde")
    encoder = load_task(path, task="sentence_encoder")
    assert encoder(encoder.preprocessor(["a good film"])).shape == (1, 15)


def test_one_output(google, tmp_path):
    path, _ = google.write(tmp_path / "stsb", {**google.encoder(), **google.classifier(1)})
    assert load_task(path).problem_type == "regression"
    assert type(load_task(path, task="cross_encoder")).__name__ == "BertCrossEncoder"


def test_a_question_answerer(google, tmp_path):
    path, arrays = google.write(tmp_path / "squad", {**google.encoder(), **google.question_answerer()})
    model = load_task(path)
    assert type(model).__name__ == "BertQuestionAnswerer"
    head = {
        "span_head/dense/kernel": arrays["cls/squad/output_weights"].T,
        "span_head/dense/bias": arrays["cls/squad/output_bias"],
    }
    assert_weights(model, {**google.expected_weights(arrays), **head})


def test_no_head(google, tmp_path):
    path, _ = google.write(tmp_path / "a")
    with pytest.raises(CheckpointError, match=r"does not state its task"):
        load_task(path)
    assert load_task(path, task="classifier", num_classes=2).num_classes == 2


def test_tokenizer_and_preprocessor(directory):
    tokenizer = load_tokenizer(directory)
    assert (tokenizer.lowercase, tokenizer.reference) == (True, "google")
    assert tokenizer.tokenize(["A good\u0301 FILM 中a"]).to_list() == [[5, 6, 8, 14, 5]]
    preprocessor = load_preprocessor(directory)
    assert preprocessor.max_length == 17
    for name in ("bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001"):
        (directory / name).unlink()
    assert load_preprocessor(directory).max_length == 17  # weights are not needed


def test_empty_line_in_the_vocabulary(google, tmp_path):
    vocabulary = [*google.VOCABULARY[:7], "", *google.VOCABULARY[7:]]
    path, _ = google.write(tmp_path / "uncased", vocabulary=vocabulary)
    tokenizer = load_tokenizer(path)
    assert tokenizer.tokenize(["good bad"]).to_list() == [[6, 8]]
    assert tokenizer.id_to_token(7) == "[empty line 8]"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bert_config.json", "must hold bert_config.json. Found: bert_model.ckpt.data-00000-of-00001, bert_model"),
        ("bert_model.ckpt.index", "must hold a TensorFlow checkpoint: files such as bert_model.ckpt.index and"),
        ("bert_model.ckpt.data-00000-of-00001", "bert_model.ckpt.data-00000-of-00001: the file is missing"),
    ],
)
def test_missing_file(directory, name, text):
    (directory / name).unlink()
    with pytest.raises(CheckpointError, match=re.escape(text)):
        load_backbone(directory)


def test_missing_vocabulary(directory):
    (directory / "vocab.txt").unlink()
    with pytest.raises(
        CheckpointError, match=r"must hold vocab\.txt\. Found: .* Copy it from the checkpoint from which"
    ):
        load_tokenizer(directory)
    load_backbone(directory)


def test_more_tokens_than_embeddings(directory):
    with (directory / "vocab.txt").open("a", encoding="utf-8") as file:
        file.writelines(f"token{number}\n" for number in range(6))
    with pytest.raises(CheckpointError, match=r"vocab\.txt: must not hold more tokens than .* of 23\. Received: 24"):
        load_tokenizer(directory)


@pytest.mark.parametrize("content", [b"[PAD]\n[UNK]\n[CLS]\n", b"[PAD]\n\xff\n", b"[PAD]\n\n\xff\n"])
def test_broken_vocabulary(directory, content):
    (directory / "vocab.txt").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"vocab\.txt: "):
        load_tokenizer(directory)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"hidden_act": "swish"}, "`hidden_act` must be one of ['gelu', 'relu', 'tanh', 'linear']"),
        ({"num_hidden_groups": 1}, "every key must be known. Received: num_hidden_groups=1"),
        ({"directionality": "left"}, "`directionality` must be 'bidi'"),
        ({"hidden_size": None}, "`values` must have the keys ['hidden_size']"),
        ({"num_attention_heads": 4}, "`num_heads` must divide `hidden_dim` (15)"),
    ],
)
def test_config_that_is_not_read(directory, changes, text):
    change_config(directory, **changes)
    with pytest.raises(CheckpointError, match=rf"bert_config\.json: .*{re.escape(text)}"):
        load_backbone(directory)


def test_config_that_is_not_json(directory):
    (directory / "bert_config.json").write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"bert_config\.json: must be valid JSON"):
        load_backbone(directory)


def test_config_of_other_weights(directory):
    change_config(directory, num_hidden_layers=3)
    with pytest.raises(CheckpointError, match=r"needs 16 tensors .* lacks: bert/encoder/layer_2/attention/self/query"):
        load_backbone(directory)
    change_config(directory, num_hidden_layers=1)
    with pytest.raises(CheckpointError, match=r"holds 16 tensors that .* no weight for: bert/encoder/layer_1/"):
        load_backbone(directory)
    change_config(directory, num_hidden_layers=2, vocab_size=24)
    with pytest.raises(
        CheckpointError, match=r"word_embeddings' must have shape \(24, 15\)\. Received: shape=\(23, 15\)"
    ):
        load_backbone(directory)


def test_unknown_variable(google, tmp_path):
    path, _ = google.write(tmp_path / "a", {**google.encoder(), "bert/adapter/kernel": (3,)})
    with pytest.raises(CheckpointError, match=r"holds 1 tensors that .* no weight for: bert/adapter/kernel"):
        load_backbone(path)


def test_objects_of_tensorflow_2(google, tmp_path):
    path, _ = google.write(tmp_path / "a")
    for file in path.glob("bert_model*"):
        file.unlink()
    tf.train.Checkpoint(kernel=tf.Variable([1.0])).write(str(path / "bert_model.ckpt"))
    with pytest.raises(CheckpointError, match=r"bert_model\.ckpt\.index: must have variables with Google's names"):
        load_backbone(path)


def test_weights_that_are_not_finite(google, tmp_path):
    arrays = google.random_arrays(google.encoder())
    arrays["bert/pooler/dense/bias"][3] = np.nan
    path, _ = google.write(tmp_path / "a", arrays=arrays)
    with pytest.raises(CheckpointError, match=r"tensor 'bert/pooler/dense/bias' holds NaN or infinity"):
        load_backbone(path)
