"""`bm25_search`: the search by words that others are measured against; and `reciprocal_rank_fusion` of two rankings."""

from __future__ import annotations

import functools
import math
import re
import sys
import unicodedata
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np

from keras_bert_layers._internal import checks

_EQUAL = 1e-5  # of the largest score; see `ranked`

Name = TypeVar("Name", bound=Hashable)
#: Query id -> document id -> score.
Ranking: TypeAlias = Mapping[Hashable, Mapping[Hashable, float]]


def bm25_search(
    queries: Mapping[Hashable, str],
    documents: Mapping[Hashable, str],
    *,
    top_k: int = 100,
    tokenize: Callable[[str], Sequence[str]] | None = None,
) -> dict[Hashable, dict[Hashable, float]]:
    """Searches by words with BM25, the baseline of every search by vectors.

    The package bm25s computes the scores, in the variant of Lucene with `k1=1.5` and `b=0.75`. Pass the result to a
    `RetrievalEvaluator`, or combine it with that of an encoder by `reciprocal_rank_fusion`.

    Args:
        queries: query id -> text.
        documents: document id -> text.
        top_k: how many documents to return for each query, at most.
        tokenize: a function from a text to its words. None takes runs of letters, digits and marks, in lower case,
            without stop words and stems.

    Returns:
        Query id -> document id -> score, the highest score first, without documents that share no word with the query.
        Of equal scores the lower id, as a string, comes first.

    Raises:
        ModuleNotFoundError: bm25s is not installed.
        ValueError: there is no document with a word, or `top_k` is below 1.

    Examples:
        >>> found = bm25_search({"q": "the cat"}, {"a": "A cat sleeps.", "b": "It rains.", "c": "The cat and the dog"})
        >>> list(found["q"])
        ['c', 'a']

    References:
        Robertson and Zaragoza 2009, The probabilistic relevance framework; Lù 2024, BM25S, arXiv:2407.03618.
    """
    try:
        import bm25s
    except ModuleNotFoundError as error:
        message = "`bm25_search` needs bm25s, which is not installed here: `pip install keras-bert-layers[bm25]`."
        raise ModuleNotFoundError(message, name="bm25s") from error
    checks.positive_integer("bm25_search", "top_k", top_k)
    tokenize = tokenize or _words
    ids = sorted(documents, key=str)
    index = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    corpus = [list(tokenize(documents[name])) for name in ids]
    if not any(corpus):
        raise ValueError(checks.message("bm25_search", "documents", "hold a document with a word", dict(documents)))
    index.index(corpus, show_progress=False)
    found: dict[Hashable, dict[Hashable, float]] = {}
    for query, text in queries.items():
        known = [word for word in tokenize(text) if word in index.vocab_dict]
        scores = index.get_scores(known) if known else np.zeros(len(ids), np.float32)
        best = np.argsort(-scores, kind="stable")[: 2 * top_k].tolist()  # more, to see what is equal
        found[query] = ranked({ids[row]: float(scores[row]) for row in best if scores[row] > 0}, top_k)
    return found


def reciprocal_rank_fusion(*rankings: Ranking, top_k: int = 100, k: int = 60) -> dict[Hashable, dict[Hashable, float]]:
    """Combines rankings, such as those of words and of vectors (hybrid search), by the ranks of their documents.

    The score of a document is the sum of `1 / (k + rank)` over the rankings that have it, with ranks from 1.

    Args:
        *rankings: query id -> document id -> score, as `bm25_search` and `RetrievalEvaluator.search` return them.
        top_k: how many documents to return for each query, at most.
        k: the larger, the less the first ranks differ.

    Returns:
        Query id -> document id -> score, the highest score first. Of equal scores the lower id comes first.

    Raises:
        ValueError: `top_k` or `k` is below 1.

    Examples:
        >>> by_words, by_vectors = {"q": {"a": 7.0, "b": 5.0}}, {"q": {"b": 0.9, "c": 0.8}}
        >>> list(reciprocal_rank_fusion(by_words, by_vectors)["q"])
        ['b', 'a', 'c']

    References:
        Cormack, Clarke and Büttcher 2009, https://doi.org/10.1145/1571941.1572114.
    """
    checks.positive_integer("reciprocal_rank_fusion", "top_k", top_k)
    checks.positive_integer("reciprocal_rank_fusion", "k", k)
    fused: dict[Hashable, dict[Hashable, float]] = {}
    for ranking in rankings:
        for query, scores in ranking.items():
            sums = fused.setdefault(query, {})
            for rank, document in enumerate(ranked(scores, len(scores)), start=1):
                sums[document] = sums.get(document, 0.0) + 1 / (k + rank)
    return {query: ranked(sums, top_k) for query, sums in fused.items()}


def ranked(scores: Mapping[Name, float], top_k: int) -> dict[Name, float]:
    """The best documents, the highest score first; those of equal scores in the order of their ids, as strings.

    Scores are made equal to the best one that is left if they are lower by less than 1e-5 of the largest score: a
    text's place in its batch changes the rounding of float32, so that equal texts have slightly different scores.

    Args:
        scores: document id -> score.
        top_k: how many documents to return, at most.

    Raises:
        ValueError: a score is not finite.

    Examples:
        >>> ranked({"b": 0.5, "a": 0.499999, "c": 0.7}, 2)
        {'c': 0.7, 'a': 0.5}
    """
    if not all(map(math.isfinite, scores.values())):
        raise ValueError(checks.message("RetrievalEvaluator", "scores", "be finite", dict(scores)))
    tolerance = _EQUAL * max(map(abs, scores.values()), default=0.0)
    best, tied = math.inf, {}
    for document in sorted(scores, key=lambda document: -scores[document]):
        best = scores[document] if best - scores[document] >= tolerance else best
        tied[document] = best
    order = sorted(tied, key=lambda document: (-tied[document], str(document)))
    return {document: tied[document] for document in order[:top_k]}


def ranked_rows(rows: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `ranked`, for the rows of many queries at once; of equal scores the lower row comes first.

    Args:
        rows: int `(queries, n)`; -1 for none, which come last.
        scores: floats `(queries, n)`.

    Returns:
        All rows, and their scores in float64.

    Raises:
        ValueError: a score is not finite.

    Examples:
        >>> ranked_rows(np.array([[2, 1, 3, -1]]), np.array([[0.5, 0.499999, 0.7, 9.0]]))[0].tolist()
        [[3, 1, 2, -1]]
    """
    is_row = rows >= 0
    if not (is_finite := np.isfinite(scores) | ~is_row).all():
        query = int(is_finite.all(axis=1).argmin())
        raise ValueError(checks.message("RetrievalEvaluator", "scores", "be finite", scores[query].tolist()))
    scores = np.where(is_row, scores.astype(np.float64), np.finfo(np.float64).min)
    tolerance = _EQUAL * np.where(is_row, np.abs(scores), 0).max(axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")
    rows, scores = (np.take_along_axis(values, order, axis=1) for values in (rows, scores))
    best = np.full(len(scores), np.inf)
    for place, own in enumerate(scores.T):
        scores[:, place] = best = np.where(best - own >= tolerance, own, best)
    # Scores descend, so that rows only move among those of equal scores.
    groups = (rows.max() + 2) * np.cumsum(scores != np.roll(scores, 1, axis=1), axis=1)
    return np.sort(groups + rows, axis=1) - groups, scores


def _words(text: str) -> list[str]:
    return _word_pattern().findall(text.lower())


@functools.cache
def _word_pattern() -> re.Pattern[str]:
    r"""Letters, digits and marks: `\w` leaves out vowel signs, which would tear words of Hindi and Thai apart."""
    marks = (chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] == "M")
    return re.compile(rf"[\w{''.join(marks)}]+")
