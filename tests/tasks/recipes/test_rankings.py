"""BM25 and rank fusion, beside computations from their formulas."""

import math
import sys

import numpy as np
import pytest

from keras_bert_layers.tasks import bm25_search, reciprocal_rank_fusion
from keras_bert_layers.tasks.recipes.rankings import ranked, ranked_rows

DOCUMENTS = {"b": "A cat sleeps.", "a": "The cat and the dog, the dog!", "d": "It rains", "c": "a cat  SLEEPS", "e": ""}
TOLERANCE = 1e-6


@pytest.fixture(scope="module")
def bm25s():
    return pytest.importorskip("bm25s", reason="the extra `bm25` brings it")


def bm25(query, document):
    """Lucene's variant of the formula, which leaves out the constant factor of 1 + k1."""
    texts = {
        name: "".join(letter if letter.isalnum() else " " for letter in text).lower().split()
        for name, text in DOCUMENTS.items()
    }
    mean_length = sum(map(len, texts.values())) / len(texts)
    score = 0.0
    for word in query.split():
        holders = sum(word in words for words in texts.values())
        count = texts[document].count(word)
        length = 1.5 * (1 - 0.75 + 0.75 * len(texts[document]) / mean_length)
        score += math.log(1 + (len(texts) - holders + 0.5) / (holders + 0.5)) * count / (count + length)
    return score


@pytest.mark.usefixtures("bm25s")
def test_scores_of_bm25():
    found = bm25_search({"q": "the dog sleeps", "none": "snow", "empty": ""}, DOCUMENTS)
    assert list(found) == ["q", "none", "empty"]
    assert list(found["q"]) == ["a", "b", "c"]
    assert found["q"] == pytest.approx({name: bm25("the dog sleeps", name) for name in "abc"}, abs=TOLERANCE)
    assert found["none"] == found["empty"] == {}
    assert list(bm25_search({"q": "sleeps dog"}, DOCUMENTS, top_k=2)["q"]) == ["a", "b"]


@pytest.mark.usefixtures("bm25s")
def test_words_of_any_script_are_whole():
    documents = {1: "मुंबई में समुद्र है", 2: "दिल मेरा है"}
    assert list(bm25_search({"q": "मुंबई", "part": "बई"}, documents)["q"]) == [1]
    assert bm25_search({"part": "बई"}, documents)["part"] == {}
    assert list(bm25_search({"q": "ab"}, {1: "xabx", 2: "yy"}, tokenize=list)["q"]) == [1]


@pytest.mark.usefixtures("bm25s")
def test_errors_of_bm25(monkeypatch):
    with pytest.raises(ValueError, match="`bm25_search`: `documents` must hold a document with a word"):
        bm25_search({"q": "a"}, {"a": "!"})
    with pytest.raises(ValueError, match="`bm25_search`: `top_k` must be at least 1"):
        bm25_search({"q": "a"}, DOCUMENTS, top_k=0)
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs bm25s, .*: `pip install keras-bert-layers\[bm25\]`"):
        bm25_search({"q": "a"}, DOCUMENTS)


def test_fused_ranks():
    first, second = {"q": {"a": 7.0, "b": 5.0, "c": 1.0}, "r": {"z": 1.0}}, {"q": {"c": 0.9, "b": 0.8}, "s": {}}
    fused = reciprocal_rank_fusion(first, second)
    expected = {"c": 1 / 63 + 1 / 61, "b": 1 / 62 + 1 / 62, "a": 1 / 61}
    assert fused == {"q": pytest.approx(expected), "r": {"z": 1 / 61}, "s": {}}
    assert list(fused["q"]) == list(expected)
    assert list(reciprocal_rank_fusion(first, second, top_k=1, k=1)["q"]) == ["c"]
    assert list(reciprocal_rank_fusion({"q": {"b": 1.0}}, {"q": {"a": 1.0}})["q"]) == ["a", "b"]
    with pytest.raises(ValueError, match="`reciprocal_rank_fusion`: `k` must be at least 1"):
        reciprocal_rank_fusion(first, k=0)


def test_equal_scores():
    scores = {"d": 0.5, "c": 0.5 - 4e-6, "b": 0.5 - 8e-6, "a": 0.5 - 12e-6, "z": 1.0}
    assert ranked(scores, 9) == {"z": 1.0, "b": 0.5, "c": 0.5, "d": 0.5, "a": 0.5 - 12e-6}, "no chain ties its ends"
    assert ranked(ranked(scores, 4), 4) == ranked(scores, 4), "ranked again, nothing changes"
    assert list(ranked({10: 1.0, 9: 1.0, "1": 1.0}, 3)) == ["1", 10, 9]
    assert list(ranked({"a": 0.0, "b": 0.0, "c": -1e-9}, 3)) == ["a", "b", "c"]
    assert ranked({}, 3) == {}
    with pytest.raises(ValueError, match="`scores` must be finite"):
        ranked({"a": float("nan")}, 3)


@pytest.mark.parametrize("largest", [0.0, 0.5, -0.5, 3e38])
def test_rows_of_many_queries_are_ranked_as_those_of_one(largest):
    draws = np.random.default_rng(3)
    rows = draws.permuted(np.tile(np.arange(14), (50, 1)), axis=1)
    scores = np.float32(largest) * (1 - 4e-6 * draws.integers(0, 20, rows.shape)).astype(np.float32)
    is_row = draws.random(rows.shape) < draws.random((50, 1))
    found, values = ranked_rows(np.where(is_row, rows, -1), np.where(is_row, scores, np.nan))
    for query, is_own in enumerate(is_row):
        names = [f"{row:02}" for row in rows[query, is_own]]
        wanted = ranked(dict(zip(names, scores[query, is_own].tolist(), strict=True)), 14)
        count = len(wanted)
        assert found[query].tolist() == [*map(int, wanted), *[-1] * (14 - count)]
        assert values[query, :count].tolist() == list(wanted.values())


def test_scores_of_rows_that_are_not_finite():
    with pytest.raises(ValueError, match=r"`scores` must be finite. Received: scores=\[2.0, inf\]"):
        ranked_rows(np.array([[0, -1], [3, 1]]), np.array([[1, np.nan], [2, np.inf]]))
