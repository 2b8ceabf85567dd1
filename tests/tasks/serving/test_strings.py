"""What can be exported where there is no tensorflow-text."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers import BertClassifier, BertPreprocessor, BertTokenizer
from keras_bert_layers.export import Signature, write_saved_model

TEXTS = ["a good film", "unhappy, bad!"]


@pytest.fixture
def task(backbone, vocabulary, host_engine):
    preprocessor = BertPreprocessor(BertTokenizer(vocabulary), max_length=9)
    return BertClassifier(backbone, class_names=["bad", "good"], preprocessor=preprocessor)


def test_strings_are_refused_before_anything_is_written(task, tmp_path):
    message = (
        "`export`: signatures of strings need tensorflow-text, whose operations read text inside the SavedModel. "
        "Received: tensorflow-text is not installed; there is none for Windows. Export the ids alone: "
        '`write_saved_model(path, [s for s in task.signatures() if s.name == "token_ids"])`. Or save the task with '
        '`task.save("model.keras")`, and load and export it on Linux or a Mac.'
    )
    with pytest.raises(RuntimeError, match=re.escape(message)):
        task.export(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_ids_are_exported(task, tmp_path):
    """By the way out that the message names."""
    write_saved_model(tmp_path / "model", [s for s in task.signatures() if s.name == "token_ids"])
    inputs = {name: tf.cast(ids, tf.int32) for name, ids in task.preprocessor(TEXTS).items()}
    found = tf.saved_model.load(tmp_path / "model").signatures["token_ids"](**inputs)["logits"]
    np.testing.assert_allclose(found, task(inputs), atol=1e-5)  # float32, in another order


def test_a_tokenizer_in_another_signature(task, tmp_path):
    signature = Signature("count", lambda text: {"x": task.preprocessor(text)["token_ids"]}, {"text": ((2,), "string")})
    with pytest.raises(ValueError, match=r"'PyFuncStateless' in .* Tokenizers need tensorflow-text for that\."):
        write_saved_model(tmp_path / "model", [signature])
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_was_saved_elsewhere(backbone, preprocessor, vocabulary, tmp_path, request):
    """A `.keras` file holds no engine: both ways, the ids are the same."""
    made_elsewhere = BertClassifier(backbone, 2, preprocessor=preprocessor)
    made_elsewhere.save(tmp_path / "model.keras")
    host = request.getfixturevalue("host_engine")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert isinstance(loaded.preprocessor.tokenizer._encoder._word_pieces._model, host.WordPieceModel)
    for name, ids in preprocessor(TEXTS).items():
        np.testing.assert_array_equal(loaded.preprocessor(TEXTS)[name], ids)
