"""Documents and pairs of texts for pretraining, without a model."""

import numpy as np
import pytest

from keras_bert_layers._internal import lazy, numpy_tensorflow
from keras_bert_layers.preprocessing import Masking
from keras_bert_layers.tasks.inputs import DocumentInputs
from keras_bert_layers.tasks.inputs.documents import DocumentsInMemory

DOCUMENTS = [["a good film", "bad night"], ["good !", "a film", "night"], ["bad"]] * 3


@pytest.fixture
def inputs(preprocessor):
    return DocumentInputs("Owner", preprocessor, Masking(seed=5))


def test_epochs_have_equally_many_pairs_and_differ(preprocessor):
    source = DocumentsInMemory("Owner", DOCUMENTS, preprocessor, 3)
    epochs = [[row["token_ids"].tolist() for row in source.dataset(n).as_numpy_iterator()] for n in (0, 1, 0)]
    assert [len(epoch) for epoch in epochs] == list(source.num_rows) * 3
    assert epochs[0] == epochs[2] != epochs[1]


def test_documents_without_a_token(preprocessor):
    with pytest.raises(ValueError, match="`Owner`: `documents` must hold at least one token"):
        DocumentsInMemory("Owner", [[""]], preprocessor, 0)


def test_pairs_with_labels(inputs):
    (batch,) = inputs.batches((["a", "good"], ["film", "night"]), [1, 0], [2.0, 1.0])
    _, labels, weights = batch
    assert labels["next_sentence"].numpy().tolist() == [1, 0]
    assert weights["next_sentence"].numpy().tolist() == [2, 1]


def test_split_of_documents(inputs):
    (first, *_), (last, *_) = inputs.split(DOCUMENTS, None, None, 0.4)
    assert (first, last) == (DOCUMENTS[:5], DOCUMENTS[5:])


def test_wrong_labels(inputs):
    assert inputs.labels(None, [[0], [1]]).tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"every label must be 0 .* Received: 2 in row 1"):
        inputs.labels(None, [0, 2])
    with pytest.raises(ValueError, match=r"Received: shape=\(1, 2\). Give one label per row"):
        inputs.labels(None, np.zeros((1, 2)))
    with pytest.raises(ValueError, match="`y` must be given for pairs of texts"):
        next(iter(inputs.batches((["a"], ["film"]))))


def test_documents_without_tensorflow(inputs, monkeypatch):
    monkeypatch.setattr(lazy, "tf", numpy_tensorflow)
    monkeypatch.setattr(DocumentsInMemory, "__init__", None)  # they are refused before they are read
    with pytest.raises(
        ModuleNotFoundError, match="pretraining from documents needs TensorFlow, which is not installed"
    ):
        inputs.batches(DOCUMENTS)
