"""How good rankings of documents are: recall, reciprocal rank, and discounted gain."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks

Rankings = Sequence[Sequence[Hashable] | np.ndarray]
Relevance = Sequence[Mapping[Any, float]]


def recall_at_k(rankings: Rankings, relevance: Relevance, k: int) -> float:
    """The share of the relevant documents among the first `k`, averaged over queries.

    Args:
        rankings: for each query the ids of documents, best first, none of them twice; as long as you like.
        relevance: for each query the gain of each judged document by its id; one is relevant if its gain is above 0,
            and what is not judged is not. A query without any relevant document is left out of the average, as all its
            rankings are equally good (trec_eval counts it as 0).
        k: how many documents a person looks at.

    Returns:
        From 0 to 1.

    Raises:
        TypeError: a gain that is no number; `k` that is no integer.
        ValueError: not one ranking for each query; an id twice in a ranking; no query with a relevant document.

    Examples:
        >>> recall_at_k([["d3", "d1", "d2"], ["d2", "d1"]], [{"d1": 1, "d9": 2}, {"d2": 1}], k=2)
        0.75

    References:
        `recall` of trec_eval.
    """
    k = checks.positive_integer("recall_at_k", "k", k)
    shares = [
        sum(gains.get(document, 0.0) > 0 for document in ranking[:k]) / len(gains)
        for ranking, gains in _queries("recall_at_k", rankings, relevance)
    ]
    return float(np.mean(shares))


def mean_reciprocal_rank(rankings: Rankings, relevance: Relevance, *, k: int | None = None) -> float:
    """One over the rank of the first relevant document, averaged over queries; 0 for a query that finds none.

    Args:
        rankings: for each query the ids of documents, best first, none of them twice.
        relevance: for each query the gain of each judged document by its id, as for `recall_at_k`.
        k: how many documents of a ranking are read; None for all. MS MARCO reads 10.

    Returns:
        From 0 to 1.

    Raises:
        TypeError, ValueError: as `recall_at_k`.

    Examples:
        >>> mean_reciprocal_rank([["d3", "d1", "d2"], ["d2", "d1"]], [{"d1": 1, "d9": 2}, {"d2": 1}])
        0.75

    References:
        `recip_rank` of trec_eval.
    """
    k = None if k is None else checks.positive_integer("mean_reciprocal_rank", "k", k)
    reciprocals = [
        next((1 / rank for rank, document in enumerate(ranking[:k], 1) if gains.get(document, 0.0) > 0), 0.0)
        for ranking, gains in _queries("mean_reciprocal_rank", rankings, relevance)
    ]
    return float(np.mean(reciprocals))


def ndcg_at_k(rankings: Rankings, relevance: Relevance, k: int) -> float:
    """Normalised discounted cumulative gain of the first `k` documents, averaged over queries.

    The sum of `gain / log2(rank + 1)`, divided by that of the best ranking of the judged documents. The gain is linear.

    Args:
        rankings: for each query the ids of documents, best first, none of them twice.
        relevance: for each query the gain of each judged document by its id, as for `recall_at_k`; a gain below 0 is
            read as 0.
        k: how many documents a person looks at.

    Returns:
        From 0 to 1.

    Raises:
        TypeError, ValueError: as `recall_at_k`.

    Examples:
        >>> round(ndcg_at_k([["d3", "d1", "d2"]], [{"d1": 2, "d2": 1}], k=3), 3)
        0.67

    References:
        Järvelin and Kekäläinen 2002, https://doi.org/10.1145/582415.582418; `ndcg_cut` of trec_eval;
        `sklearn.metrics.ndcg_score`.
    """
    k = checks.positive_integer("ndcg_at_k", "k", k)
    shares = []
    for ranking, gains in _queries("ndcg_at_k", rankings, relevance):
        best = _discounted_gain(sorted(gains.values(), reverse=True)[:k])
        shares.append(_discounted_gain([gains.get(document, 0.0) for document in ranking[:k]]) / best)
    return float(np.mean(shares))


def _discounted_gain(gains: Sequence[float]) -> float:
    return float(np.sum(gains / np.log2(np.arange(2, len(gains) + 2))))


def _queries(owner: str, rankings: Any, relevance: Any) -> list[tuple[list[Any], dict[Any, float]]]:
    """Of each query that has a relevant document, its ranking and the gains above 0."""
    if len(rankings) != len(relevance):
        raise ValueError(
            f"`{owner}`: `relevance` must hold one dictionary for each of the {len(rankings)} rankings. "
            f"Received: {len(relevance)}."
        )
    queries = []
    for row, (ranking, gains) in enumerate(zip(rankings, relevance, strict=True)):
        if isinstance(ranking, str | bytes) or not isinstance(ranking, Sequence | np.ndarray):
            raise TypeError(checks.message(owner, f"rankings[{row}]", "be a list of document ids", ranking))
        documents = ranking.tolist() if isinstance(ranking, np.ndarray) else list(ranking)
        if len(set(documents)) != len(documents):
            twice = next(document for document in documents if documents.count(document) > 1)
            raise ValueError(checks.message(owner, f"rankings[{row}]", "hold no document twice", twice))
        relevant = _relevant(owner, f"relevance[{row}]", gains)
        if relevant:
            queries.append((documents, relevant))
    if not queries:
        raise ValueError(
            f"`{owner}`: `relevance` must hold a relevant document for one query at least. Received: none."
        )
    return queries


def _relevant(owner: str, argument: str, gains: Any) -> dict[Any, float]:
    if not isinstance(gains, Mapping):
        cure = "Write {id: gain}."
        raise TypeError(checks.message(owner, argument, "be a dictionary of document ids and gains", gains, cure))
    for document, gain in gains.items():
        if not isinstance(gain, int | float | np.number) or not np.isfinite(gain):
            raise TypeError(checks.message(owner, f"{argument}[{document!r}]", "be a finite number", gain))
    return {document: float(gain) for document, gain in gains.items() if gain > 0}
