"""A classifier that reads columns beside its text, in a process without Python, beside Keras."""

import keras
import numpy as np
import pytest
from c_api.comparison import TOLERANCE
from c_api.server_process import INVALID_ARGUMENT

import keras_bert_layers as kbl

CONFIG = {"hidden_dim": 21, "num_layers": 1, "num_heads": 3, "intermediate_dim": 35, "max_sequence_length": 41}
KINDS = {"price": "float_normalized", "the country": "string_categorical", "stars": "integer_categorical"}


@pytest.mark.slow
def test_equals_keras(minilm, start, texts, tmp_path):
    preprocessor = kbl.load_preprocessor(minilm, max_length=37)
    config = kbl.BertConfig(vocabulary_size=preprocessor.tokenizer.vocabulary_size(), initializer_range=0.3, **CONFIG)
    space = keras.utils.FeatureSpace(KINDS, output_mode="concat", crosses=[("the country", "stars")])
    options = {"class_names": ["no", "yes"], "preprocessor": preprocessor, "columns": space}
    task = kbl.BertClassifier(kbl.BertBackbone(config), **options)
    places = np.arange(len(texts))
    table = {
        "text": texts,
        "price": np.where(places % 4, places, np.nan).astype("float32"),
        "the country": np.array([b"us", b"", "\u4e2d".encode()], object)[places % 3],
        "stars": (places % 5 - 1).astype("int32"),
    }
    with task.pipeline.fitting(task.pipeline.columns(tuple(values[:15] for values in table.values()))):
        model = task.export(tmp_path / "model")
    request = {name.replace(" ", "_"): values for name, values in table.items()}
    with start(model, older=True) as server:  # the operations of an older one
        found = server.ask("serving_default", request)
        ids = server.ask("tokenize", request)
        logits = server.ask("token_ids", ids.outputs)
        refused = server.ask("serving_default", {**request, "price": texts})
    assert (found.message, ids.message, logits.message) == ("", "", "")
    expected = task.answer(table)
    assert np.ptp(expected["probabilities"][:, 0]) > 0.01
    assert [label.decode() for label in found.outputs["label"]] == expected["label"].tolist()
    for probabilities in (found.outputs["probabilities"], keras.ops.softmax(logits.outputs["logits"])):
        np.testing.assert_allclose(probabilities, expected["probabilities"], atol=TOLERANCE)
    assert refused.code == INVALID_ARGUMENT
