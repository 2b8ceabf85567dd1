"""A model with a SentencePiece tokenizer in a process without Python, beside Keras."""

import base64
import functools

import pytest
from c_api.cases import MAX_LENGTH, ServedTask

import keras_bert_layers as kbl
from keras_bert_layers.preprocessing import SentencePieceTokenizer

models = pytest.importorskip("sentence_piece_models", reason="the extra `test` brings sentencepiece")
pytestmark = pytest.mark.slow
# The strictest server in the table of differences.
OLDER = "C, operations of 2.12"


@pytest.fixture(scope="module")
def preprocessor():
    proto = models.train("unigram", "nmt_nfkc")
    vocabulary, scores = map(list, zip(*models.pieces_of(proto), strict=True))
    character_map = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    return kbl.BertPreprocessor(SentencePieceTokenizer(vocabulary, scores, character_map=character_map), MAX_LENGTH)


@pytest.fixture(scope="module")
def served(preprocessor, tmp_path_factory):
    """`served(name)`: a task of `c_api.cases` with its SavedModel, made once."""
    return functools.cache(lambda name: ServedTask(name, preprocessor, tmp_path_factory.mktemp("served")))


@pytest.mark.parametrize("name", ["token_classifier", "pair_classifier"])
@pytest.mark.usefixtures("traces_nothing")
def test_equals_keras(name, served, start, asked_as_keras):
    """The server makes the model's pieces on its own: of one text with their places, and of two."""
    task = served(name)
    with start(task.model, older=True) as server:
        asked_as_keras(task, server, OLDER)


@pytest.mark.usefixtures("traces_nothing")
def test_tokens_in_c(preprocessor, start, served):
    texts = [text.encode() for text in models.hard_texts(300, seed=3)]
    import numpy as np

    with start(served("token_classifier").model, older=True) as server:
        found = server.ask("tokenize", {"text": np.array(texts, object)}).outputs
    expected = preprocessor(texts)["token_ids"].numpy()
    assert found["token_ids"].tolist() == expected.tolist()
