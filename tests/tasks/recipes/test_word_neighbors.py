"""`nearest_words` beside cosines in NumPy, and its errors."""

import numpy as np
import pytest
from vocabulary_models import array, make_backbone

from keras_bert_layers import BertMaskedLM, BertPreprocessor, BertTokenizer
from keras_bert_layers.preprocessing import SentencePieceTokenizer
from keras_bert_layers.tasks import nearest_words

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TOKENS = [*SPECIAL, "[unused1]", "a", "king", "man", "woman", "queen", "##s", ".", "5", "été", "नमस्ते"]
WHOLE = {"a", "king", "man", "woman", "queen", "5", "été", "नमस्ते"}
TOLERANCE = 1e-6  # float32 in two orders of operations

pytestmark = pytest.mark.usefixtures("traces_nothing")


@pytest.fixture(scope="module")
def task():
    """A task with more rows than tokens, and rows of different lengths."""
    tokenizer = BertTokenizer(TOKENS, strip_accents=False)
    task = BertMaskedLM(make_backbone(len(TOKENS) + 3), BertPreprocessor(tokenizer, max_length=5))
    rows = np.random.default_rng(3).normal(size=(len(TOKENS) + 3, 8)) * np.arange(1, len(TOKENS) + 4)[:, None]
    rows[TOKENS.index("5")] = 0  # what has no direction is an answer with cosine 0
    task.backbone.get_layer("embedding").token_embedding.assign(rows)
    return task


def expected(task, positive, negative):
    """3CosAdd in float64."""
    rows = array(task.backbone.get_layer("embedding").token_embedding).astype(np.float64)[: len(TOKENS)]
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    query = sum(rows[TOKENS.index(word)] for word in positive) - sum(rows[TOKENS.index(word)] for word in negative)
    cosines = rows @ query / np.linalg.norm(query)
    words = WHOLE - {*positive, *negative}
    return sorted(((word, cosines[TOKENS.index(word)]) for word in words), key=lambda pair: -pair[1])


@pytest.mark.parametrize(
    ("positive", "negative"), [(["king"], []), (["king", "woman"], ["man"]), (["été"], ["queen", "a"])]
)
def test_values(task, positive, negative):
    found = nearest_words(task, positive, negative)
    wanted = expected(task, positive, negative)
    assert [word for word, _ in found] == [word for word, _ in wanted]
    assert [cosine for _, cosine in found] == pytest.approx([cosine for _, cosine in wanted], abs=TOLERANCE)


def test_one_word_top_k_and_a_backbone(task):
    found = nearest_words(task.backbone, "King", tokenizer=task.preprocessor.tokenizer, top_k=2)
    assert found == nearest_words(task, ["king"])[:2]
    assert all(type(cosine) is float for _, cosine in found)


def test_words_of_sentence_piece_have_no_marker():
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "▁cat", "▁dog", "s", "▁cats", "▁", "<mask>"]
    tokenizer = SentencePieceTokenizer(tokens, scores=[0, 0, 0, 0, -2, -2, -4, -1, -5, 0])
    assert {word for word, _ in nearest_words(make_backbone(len(tokens)), "cat", tokenizer=tokenizer)} == {
        "dog",
        "cats",
    }


@pytest.mark.parametrize(
    ("words", "options", "error", "message"),
    [
        (["kings"], {}, ValueError, r"`positive` must hold words that are one token each.*'kings'.*: king ##s\."),
        (["zebra"], {}, ValueError, r"`positive` must .*'zebra'.*Its tokens are: \[UNK\]"),
        (["king"], {"negative": "a king"}, ValueError, r"`negative` must .*Its tokens are: a king"),
        ([""], {}, ValueError, "`positive` must hold words that are one token each"),
        ([], {}, ValueError, "`positive` must hold at least one word"),
        ([5], {}, TypeError, "`positive` must be a str"),
        (["king"], {"top_k": 0}, ValueError, "`top_k` must be"),
        (["king"], {"tokenizer": "bert"}, TypeError, "`tokenizer` must be a BertTokenizer"),
    ],
)
def test_errors(task, words, options, error, message):
    with pytest.raises(error, match=f"`nearest_words`: {message}"):
        nearest_words(task, words, **options)


def test_other_models():
    with pytest.raises(TypeError, match="`model` must be a BertBackbone or a task"):
        nearest_words("bert", "king")
    with pytest.raises(TypeError, match="`tokenizer` must be a BertTokenizer"):
        nearest_words(make_backbone(), "king")
