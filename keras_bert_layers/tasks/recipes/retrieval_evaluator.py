"""`RetrievalEvaluator`: nDCG, reciprocal rank, recall and more of a search, after each epoch or of any ranking."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.tasks.cross_encoder import BertCrossEncoder
from keras_bert_layers.tasks.dual_encoder import BertDualEncoder
from keras_bert_layers.tasks.multi_vector_encoder import BertMultiVectorEncoder
from keras_bert_layers.tasks.recipes.rankings import Ranking, ranked
from keras_bert_layers.tasks.recipes.searched_texts import Encoder, text_of, vectors_of
from keras_bert_layers.tasks.recipes.semantic_search import nearest_rows
from keras_bert_layers.tasks.sparse_encoder import BertSparseEncoder
from keras_bert_layers.tasks.task import Task

OWNER = "RetrievalEvaluator"
MEASURES = ("ndcg@10", "mrr@10", "recall@100")


class RetrievalEvaluator(keras.callbacks.Callback):
    """Measures a search: nDCG@10, the reciprocal rank in the first 10, recall@100 and others, as trec_eval does.

    Called with a task, it ranks all documents for each judged query and returns the means of the measures over these
    queries. It is a callback of `fit` too: `callbacks=[evaluator, EarlyStopping("val_ndcg@10", mode="max")]` measures
    at the end of each epoch, before what monitors the results.

    A `BertSentenceEncoder` and a `BertStaticEncoder` rank by the cosine, and a `BertDualEncoder` and a
    `BertSparseEncoder` by the dot product, of every query with every document. A `BertCrossEncoder` ranks the
    `candidates` again.

    Scores that differ by less than 1e-5 of the largest one are equal, and documents of equal scores are in the order of
    their ids, as strings. trec_eval compares scores in single precision, and puts the greater id first; give it the
    ranks as scores to get the same results.

    Args:
        queries: query id -> text. Only judged queries are used.
        documents: document id -> text.
        judgements: query id -> document id -> grade. A grade above 0 is relevant, and is the gain of nDCG; others are
            not. Judged documents that are not in `documents` count as not found, and a query without a relevant
            document has 0 in all measures.
        candidates: query id -> document ids, or document id -> score as `search` and `bm25_search` return: the only
            documents that are ranked for this query, as in re-ranking. None ranks all.
        measures: their names, of the first k documents: `"ndcg@k"`; `"mrr@k"`, one over the rank of the first relevant
            document; `"recall@k"`; `"precision@k"`; `"map@k"`, the precision at each relevant document, summed and
            divided by the number of all relevant ones; `"accuracy@k"`, 1 if a relevant document is among them
            (trec_eval's success).
        name: put before the names in the logs: `"val_dev_ndcg@10"` for `"dev"`.
        verbose: Keras's progress bar while texts are encoded.

    Raises:
        ValueError: a judged query or a candidate that has no text; no judged document is in `documents`; a measure of
            another name.

    Examples:
        >>> evaluator = RetrievalEvaluator({"q": "cat?"}, {"a": "A cat.", "b": "Rain."}, {"q": {"a": 1}})
        >>> evaluator.measure({"q": {"b": 0.9, "a": 0.8}})["mrr@10"]
        0.5

    References:
        https://github.com/usnistgov/trec_eval, `m_ndcg_cut.c`, `m_recip_rank.c`, `m_recall.c`, `m_map_cut.c`, `m_P.c`,
        `m_success.c`; Järvelin and Kekäläinen 2002, Cumulated gain-based evaluation of IR techniques.
    """

    def __init__(
        self,
        queries: Mapping[Hashable, str],
        documents: Mapping[Hashable, str],
        judgements: Mapping[Hashable, Mapping[Hashable, float]],
        *,
        candidates: Mapping[Hashable, Collection[Hashable]] | None = None,
        measures: Sequence[str] = MEASURES,
        name: str = "",
        verbose: str | int = 0,
    ):
        super().__init__()
        if not any(document in documents for grades in judgements.values() for document in grades):
            raise ValueError(checks.message(OWNER, "documents", "hold a judged document", next(iter(documents), None)))
        self.measures = {name: _measure(name) for name in measures}
        self.name = checks.instance(OWNER, "name", name, str)
        self.verbose = verbose
        self.judgements = judgements
        # All in the order of their ids, so that the order of the dictionaries changes nothing.
        self.queries = _texts("queries", queries, judgements)
        self.candidates = None
        if candidates is not None:
            self.candidates = {query: sorted(set(candidates.get(query, ())), key=str) for query in self.queries}
        wanted = set(documents) if self.candidates is None else set().union(*self.candidates.values())
        self.documents = _texts("documents", documents, wanted)

    def __call__(self, task: Task) -> dict[str, float]:
        """The measures of a task: `{"ndcg@10": ..., "mrr@10": ..., "recall@100": ...}`."""
        return self.measure(self.search(task))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Adds the measures to the logs of an epoch, as `"val_ndcg@10"` and so on."""
        prefix = f"val_{self.name}_" if self.name else "val_"
        logs.update({prefix + measure: value for measure, value in self(self.model).items()})

    @property
    def _depth(self) -> int:
        """How many documents the measures look at."""
        return max((depth for _, depth in self.measures.values()), default=1)

    def search(self, task: Task, *, top_k: int | None = None) -> dict[Hashable, dict[Hashable, float]]:
        """The best documents for each judged query, as a task ranks them.

        Args:
            task: a `BertSentenceEncoder`, `BertStaticEncoder`, `BertDualEncoder`, `BertSparseEncoder` or
                `BertCrossEncoder`.
            top_k: how many documents to return for each query, at most; None for as many as the measures look at.

        Returns:
            Query id -> document id -> score, the best document first.

        Raises:
            TypeError: another task.
            ValueError: a cross-encoder without `candidates`; `top_k` below 1.
        """
        top_k = checks.positive_integer(OWNER, "top_k", self._depth if top_k is None else top_k)
        if isinstance(task, BertCrossEncoder):
            scores = self._by_pairs(task)
        elif isinstance(task, Encoder | BertSparseEncoder | BertMultiVectorEncoder):
            scores = self._by_vectors(task, top_k)
        else:
            raise TypeError(checks.message(OWNER, "task", "be an encoder of sentences, or a cross-encoder", task))
        return {query: ranked(own, top_k) for query, own in zip(self.queries, scores, strict=True)}

    def measure(self, ranking: Ranking) -> dict[str, float]:
        """The measures of any ranking, such as that of `bm25_search`: query id -> document id -> score.

        Judged queries that are not in the ranking have 0 in all measures.
        """
        rows = [self._measured(grades, ranking.get(query, {})) for query, grades in self.judgements.items()]
        return dict(zip(self.measures, np.mean(rows, axis=0).tolist(), strict=True))

    def _measured(self, grades: Mapping[Hashable, float], scores: Mapping[Hashable, float]) -> list[float]:
        """The measures of one query."""
        gains = [max(0.0, float(grades.get(document, 0))) for document in ranked(scores, self._depth)]
        ideal = sorted((float(grade) for grade in grades.values() if grade > 0), reverse=True)
        if not ideal:
            return [0.0] * len(self.measures)
        return [kind(gains[:depth], ideal, depth) for kind, depth in self.measures.values()]

    def _by_vectors(self, task: Any, top_k: int) -> list[dict[Hashable, float]]:
        """Document id -> score, for each query."""
        texts = list(self.queries.values()), list(self.documents.values())
        asked, vectors = vectors_of(task, *texts, verbose=self.verbose)
        ids, score = list(self.documents), np.inner if isinstance(task, BertDualEncoder) else None
        if self.candidates is None:
            found = nearest_rows(asked, vectors, 2 * top_k, score=score)  # more than asked for, to see what is equal
            pairs = zip(*(values.tolist() for values in found), strict=True)
            return [{ids[row]: value for row, value in zip(*pair, strict=True)} for pair in pairs]
        places, scores = {document: place for place, document in enumerate(ids)}, []
        for number, own in enumerate(self.candidates.values()):
            compared = vectors[np.array([places[document] for document in own], int)]
            rows, values = nearest_rows(asked[number : number + 1], compared, max(1, len(own)), score=score)
            scores.append({own[row]: value for row, value in zip(rows[0], values[0].tolist(), strict=True)})
        return scores

    def _by_pairs(self, task: BertCrossEncoder) -> list[dict[Hashable, float]]:
        """Document id -> logit of the candidates, for each query."""
        if self.candidates is None:
            cure = "A cross-encoder ranks what `search(encoder)` or `bm25_search` found."
            raise ValueError(checks.message(OWNER, "candidates", "be given for a cross-encoder", None, cure))
        asked = [self.queries[query] for query, own in self.candidates.items() for _ in own]
        read = [self.documents[document] for own in self.candidates.values() for document in own]
        logits = iter(task.predict((asked, read), verbose=self.verbose)[:, 0].tolist())
        return [{document: next(logits) for document in own} for own in self.candidates.values()]


def _texts(argument: str, texts: Mapping[Hashable, str], wanted: Collection[Hashable]) -> dict[Hashable, str]:
    """The wanted texts in the order of their ids."""
    return {name: text_of(OWNER, argument, texts, name) for name in sorted(wanted, key=str)}


def _discounted(gains: list[float]) -> float:
    """The discounted cumulated gain of documents in their order."""
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _ranks(gains: list[float]) -> list[int]:
    """The ranks of relevant documents, from 1."""
    return [rank for rank, gain in enumerate(gains, start=1) if gain > 0]


# Of the gains of the first k documents, the gains of all relevant ones in falling order, and k.
_KINDS: dict[str, Callable[[list[float], list[float], int], float]] = {
    "ndcg": lambda gains, ideal, depth: _discounted(gains) / _discounted(ideal[:depth]),
    "mrr": lambda gains, ideal, depth: 1 / min(_ranks(gains), default=math.inf),
    "recall": lambda gains, ideal, depth: len(_ranks(gains)) / len(ideal),
    "precision": lambda gains, ideal, depth: len(_ranks(gains)) / depth,
    "map": lambda gains, ideal, depth: sum(n / rank for n, rank in enumerate(_ranks(gains), start=1)) / len(ideal),
    "accuracy": lambda gains, ideal, depth: float(bool(_ranks(gains))),
}


def _measure(name: str) -> tuple[Callable[[list[float], list[float], int], float], int]:
    """The function of a measure, and how many documents it looks at."""
    kind, _, depth = str(name).partition("@")
    if kind not in _KINDS or not depth.isascii() or not depth.isdigit() or int(depth) < 1:
        rule = f"be names of {list(_KINDS)} with a number of documents"
        raise ValueError(checks.message(OWNER, "measures", rule, name, 'Such as `"ndcg@10"`.'))
    return _KINDS[kind], int(depth)
