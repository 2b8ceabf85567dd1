"""`mine_negatives`: for each query the texts that look right and are not (hard negatives), to train on."""

from __future__ import annotations

import dataclasses
import functools
import math
import random
import warnings
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.files.atomic_write import atomic_write
from keras_bert_layers._internal.types import Strings
from keras_bert_layers.tasks.cross_encoder import BertCrossEncoder
from keras_bert_layers.tasks.dual_encoder import BertDualEncoder
from keras_bert_layers.tasks.feeding.columns import as_table, filled_table
from keras_bert_layers.tasks.prediction.length_batches import with_progress
from keras_bert_layers.tasks.recipes.rankings import ranked, ranked_rows
from keras_bert_layers.tasks.recipes.searched_texts import Encoder, text_of, vectors_of
from keras_bert_layers.tasks.recipes.semantic_search import nearest_rows
from keras_bert_layers.tasks.recipes.unit_vectors import unit_vectors

OWNER = "mine_negatives"
_BLOCK = 4_000  # queries at a time
_ENTRIES = 1_000_000  # candidates and right answers at a time
_RESCORED = 500  # queries at a time with a cross-encoder, after which the progress bar moves
_SPARE = 10  # more texts than asked for, to see which are right answers, and which are equal to the last one

#: Text -> score.
Scores: TypeAlias = dict[str, float]


def mine_negatives(
    encoder: Encoder,
    queries: Strings | Mapping[Hashable, str],
    documents: Strings | Mapping[Hashable, str],
    positives: Strings | Sequence[Sequence[str]] | Mapping[Hashable, Collection[Hashable]],
    *,
    num_negatives: int = 5,
    range_min: int = 0,
    range_max: int | None = None,
    max_score: float | None = None,
    min_score: float | None = None,
    absolute_margin: float | None = None,
    relative_margin: float | None = None,
    sampling: str = "top",
    seed: int = 0,
    cross_encoder: BertCrossEncoder | None = None,
    batch_size: int | None = None,
    verbose: str | int = 1,
    to: str | PathLike[str] | None = None,
    return_scores: bool = False,
) -> tuple[Any, ...]:
    """Finds hard negatives: for each query the documents that score high and are not among its right answers.

    `encoder.fit(mine_negatives(...))` trains on them. Documents that nobody has judged are often right: a margin leaves
    out those that score as high as a right answer. `relative_margin=0.05` is "TopK-PercPos" of NV-Retriever.

    The score is the cosine, and the dot product for a `BertDualEncoder`. The corpus is the documents and all right
    answers; texts that are equal are one. A right answer of a query, the query's own text and the empty text are never
    its negatives. The order of the documents and of the queries changes no negative: texts are encoded in the order of
    their bytes, and scores that differ by less than 1e-5 of the query's largest one are equal, and in the order of the
    bytes of their texts.

    Args:
        encoder: a `BertSentenceEncoder`, a `BertStaticEncoder` or a `BertDualEncoder`.
        queries: texts. Equal ones share all their right answers.
        documents: texts.
        positives: the right answer of each query, or a list of them. All three may be dictionaries instead, as
            `data.read_beir` returns them: query id -> text, document id -> text, and query id -> document ids, or
            document id -> grade, where a grade above 0 is right. Only queries with a right answer are used.
        num_negatives: how many to find for each query, at most.
        range_min: how many of the best candidates to skip, of those that the bounds below let through.
        range_max: how many documents with the best scores are candidates, right answers not counted. None is
            `range_min + 10 * num_negatives`.
        max_score: the highest score of a negative.
        min_score: the lowest score of a negative.
        absolute_margin: how much lower than the score of the right answer the score of a negative must be. Of several
            right answers the lowest score counts.
        relative_margin: the same as a share of the absolute value of that score, between 0 and 1.
        sampling: `"top"` for the best candidates, or `"random"` for some of those in the range.
        seed: decides, together with the text of the query, what `"random"` draws.
        cross_encoder: scores the candidates again, as its `rank` does; the order and the bounds are then of these
            scores.
        batch_size: the most texts per step.
        verbose: Keras's progress bars, of encoding and of search; 0 shows none.
        to: a name in `.parquet`; writes a file with the columns `query`, `positive`, `negatives` and, if they are asked
            for, `scores`.
        return_scores: whether to return the scores too, for losses that learn from them.

    Returns:
        `(queries, positives, negatives)`, lists with a row for each query and right answer, each such pair once, in the
        order that they are given in. A row of negatives is a list of texts, the best first, and may be short or empty.
        With `return_scores`, `((queries, positives, negatives), scores)`: float32 `(rows, 1 + n)`, the score of the
        right answer and of the negatives; `n` is the length of the longest list, and NaN stands where a list is
        shorter.

    Raises:
        TypeError: another task; texts that are not strings; some of the three are dictionaries and others not.
        ValueError: a query without a row of positives, or an id without a text; no right answer at all; more negatives
            than the range holds; a number out of its range.
        ModuleNotFoundError: `to` is given, and pyarrow is not installed.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> backbone = kbl.tasks.StaticBackbone(vocabulary_size=7, hidden_dim=4)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog", "who"])
        >>> encoder = kbl.BertStaticEncoder(backbone, preprocessor=kbl.BertPreprocessor(tokenizer))
        >>> documents = ["cat cat", "dog dog", "who"]
        >>> found = mine_negatives(encoder, ["who cat"], documents, ["cat cat"], num_negatives=2, verbose=0)
        >>> sorted(found[2][0])
        ['dog dog', 'who']

    References:
        Moreira et al. 2024, NV-Retriever, arXiv:2407.15831; sentence-transformers 6, `util.mine_hard_negatives`.
    """
    _check_tasks(encoder, cross_encoder)
    last = range_min + 10 * num_negatives if range_max is None else range_max
    bounds = max_score, min_score, absolute_margin, relative_margin
    rule = _Rule(num_negatives, range_min, last, *bounds, sampling, seed)
    write = None if to is None else _writer(Path(to))
    pairs, corpus = _read(queries, documents, positives)
    right: dict[str, Scores] = {query: {} for query, _ in sorted(pairs)}
    for query, positive in pairs:
        right[query][positive] = math.nan
    vectors = _vectors(encoder, list(right), corpus, batch_size, verbose)
    again = None if cross_encoder is None else functools.partial(_rescored, cross_encoder, batch_size)
    scored = _scored(right, corpus, vectors, last, again)
    mined: dict[str, Scores] = {}
    for query, scores in with_progress(scored, len(right), verbose):
        mined[query] = rule.negatives(query, scores, right[query])
        right[query] = {text: scores[text] for text in right[query]}
    columns = [query for query, _ in pairs], [text for _, text in pairs], [list(mined[query]) for query, _ in pairs]
    rows = [[right[query][text], *mined[query].values()] for query, text in pairs]
    if write is not None:
        write(columns, rows if return_scores else None)
    if num_without := sum(not own for own in columns[2]):
        text = f"{num_without} of {len(rows)} rows have no negative. Raise `range_max`, or loosen the bounds."
        warnings.warn(f"`{OWNER}`: {text}", stacklevel=2)
    return (columns, filled_table(rows, np.nan, np.float32, least=2)) if return_scores else columns


@dataclasses.dataclass
class _Rule:
    """Which candidates become negatives; the arguments of `mine_negatives`."""

    num_negatives: int
    range_min: int
    range_max: int
    max_score: float | None
    min_score: float | None
    absolute_margin: float | None
    relative_margin: float | None
    sampling: str
    seed: int

    def __post_init__(self) -> None:
        number = checks.positive_integer(OWNER, "num_negatives", self.num_negatives)
        least = checks.whole_number(OWNER, "range_min", self.range_min) + number
        reason = ", `range_min` and `num_negatives` together"
        checks.integer(OWNER, "range_max", self.range_max, smallest=least, reason=reason)
        checks.optional(checks.share, OWNER, "relative_margin", self.relative_margin)
        if self.absolute_margin is not None and not self.absolute_margin >= 0:
            raise ValueError(checks.message(OWNER, "absolute_margin", "be at least 0", self.absolute_margin))
        checks.one_of(OWNER, "sampling", self.sampling, ("top", "random"))
        checks.whole_number(OWNER, "seed", self.seed)

    def negatives(self, query: str, scores: Scores, right: Collection[str]) -> Scores:
        """The negatives of a query and their scores, of scores of its candidates and right answers, the best first."""
        least = min(scores[text] for text in right)
        highest = math.inf if self.max_score is None else self.max_score
        if self.absolute_margin is not None:
            highest = min(highest, least - self.absolute_margin)
        if self.relative_margin is not None:
            highest = min(highest, least - self.relative_margin * abs(least))
        lowest = -math.inf if self.min_score is None else self.min_score
        passed = [text for text, score in scores.items() if text not in right and lowest <= score <= highest]
        passed = passed[self.range_min :]
        if self.sampling == "random" and len(passed) > self.num_negatives:
            drawn = random.Random(f"{self.seed} {query}").sample(range(len(passed)), self.num_negatives)
            passed = [passed[place] for place in sorted(drawn)]
        return {text: scores[text] for text in passed[: self.num_negatives]}


def _check_tasks(encoder: Any, cross_encoder: Any) -> None:
    """TypeError for tasks of another kind."""
    if not isinstance(encoder, Encoder):
        raise TypeError(checks.message(OWNER, "encoder", "be an encoder of sentences", encoder))
    if cross_encoder is not None:
        checks.instance(OWNER, "cross_encoder", cross_encoder, BertCrossEncoder)


def _read(queries: Any, documents: Any, positives: Any) -> tuple[list[tuple[str, str]], list[str]]:
    """The pairs of a query and a right answer, each once, and all other texts in the order of their bytes."""
    given = {"queries": queries, "documents": documents, "positives": positives}
    if any(isinstance(value, Mapping) for value in given.values()):
        for name, value in given.items():
            if not isinstance(value, Mapping):
                raise TypeError(checks.message(OWNER, name, "be a dictionary, as the others", type(value)))
        queries, documents, positives = _by_rows(queries, documents, positives)
    asked, texts = (_texts(name, column, 1) for name, column in (("queries", queries), ("documents", documents)))
    answers = _texts("positives", positives)
    checks.length(OWNER, "positives", answers, len(asked), rule=f"have {len(asked)} rows, as `queries`", unit="rows")
    pairs = dict.fromkeys((query, text) for (query,), own in zip(asked, answers, strict=True) for text in own if text)
    if not pairs:
        raise ValueError(checks.message(OWNER, "positives", "hold a right answer", positives))
    # Strings are compared by code points, whose order is that of the bytes of UTF-8.
    corpus = {text for own in (*texts, *answers) for text in own} - {""}
    return list(pairs), sorted(corpus)


def _by_rows(
    queries: Mapping[Hashable, str], documents: Mapping[Hashable, str], positives: Mapping[Hashable, Any]
) -> tuple[list[str], list[str], list[list[str]]]:
    """The same as columns: the text of each query that has positives, all documents, and lists of right answers."""
    text = functools.partial(text_of, OWNER)
    grades = {name: own if isinstance(own, Mapping) else dict.fromkeys(own, 1) for name, own in positives.items()}
    answers = [[text("documents", documents, each) for each in own if own[each] > 0] for own in grades.values()]
    return [text("queries", queries, name) for name in grades], list(documents.values()), answers


def _texts(argument: str, column: Any, most: int | None = None) -> list[list[str]]:
    """The texts of each row, padded with empty ones; ValueError for rows of more than `most` texts."""
    table = as_table(OWNER, column, argument=argument)
    if most is not None and table.shape[1] > most:
        raise ValueError(checks.message(OWNER, argument, "have one text in each row", checks.Shown(table.shape)))
    return [[text.decode() if isinstance(text, bytes) else str(text) for text in row] for row in table]


def _vectors(
    encoder: Any, queries: list[str], documents: list[str], batch_size: int | None, verbose: str | int
) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of queries and of documents whose inner products are the scores."""
    asked, found = vectors_of(encoder, queries, documents, batch_size, verbose=verbose)
    return (asked, found) if isinstance(encoder, BertDualEncoder) else (unit_vectors(asked), unit_vectors(found))


def _scored(
    right: dict[str, Scores],
    corpus: list[str],
    vectors: tuple[np.ndarray, np.ndarray],
    number: int,
    rescored: Callable[[dict[str, Scores]], dict[str, Scores]] | None,
) -> Iterator[tuple[str, Scores]]:
    """Each query, and the scores of its right answers and of `number` candidates, the best first."""
    places, queries = {text: row for row, text in enumerate(corpus)}, list(right)
    most = number + max(map(len, right.values()))
    size = _RESCORED if rescored else max(1, min(_BLOCK, _ENTRIES // most))
    for start in range(0, len(queries), size):
        names, asked = queries[start : start + size], vectors[0][start : start + size]
        own = filled_table([[places[text] for text in right[query]] for query in names], -1, int)
        known = np.array([places.get(query, -1) for query in names])
        found: dict[str, Scores] = {query: {} for query in names}
        for place, rows, scores in _candidates(asked, vectors[1], own, known, number):
            found[names[place]] = dict(zip([corpus[row] for row in rows], scores, strict=True))
        yield from (rescored(found) if rescored else found).items()


def _candidates(
    asked: np.ndarray, vectors: np.ndarray, own: np.ndarray, known: np.ndarray, number: int
) -> Iterator[tuple[int, list[int], list[float]]]:
    """The rows of the right answers and of the first `number` other texts of each query, the best first, and scores.

    Args:
        asked: the vectors of queries.
        vectors: those of the corpus.
        own: the rows of the right answers of each query, int `(queries, most)`, with -1 behind the last one.
        known: the row of each query's own text, or -1.
        number: how many others.

    Yields:
        The place of a query, rows and scores.
    """
    own_scores = np.stack([np.einsum("qd,qd->q", asked, vectors[rows]) for rows in own.T], axis=1)
    left, size = np.arange(len(asked)), number + _SPARE
    while len(left):
        rows, scores = nearest_rows(asked[left], vectors, size, score=np.inner)
        last, mine = rows[:, -1:], np.where(_are_among(own[left], rows), -1, own[left])
        rows, scores = ranked_rows(np.hstack([rows, mine]), np.hstack([scores, own_scores[left]]))
        is_own = _are_among(rows, own[left])
        is_other = ~is_own & (rows >= 0) & (rows != known[left, None])
        is_other &= np.cumsum(is_other, axis=1) <= number
        # Texts that are equal to the last one, or too few, may be among those that were not asked for.
        is_short = is_other.sum(axis=1) < number
        is_short |= np.where(is_other, scores, np.inf).min(axis=1) == scores[rows == last]
        is_short &= size < len(vectors)
        for place in np.flatnonzero(~is_short):
            kept = is_own[place] | is_other[place]
            yield int(left[place]), rows[place, kept].tolist(), scores[place, kept].tolist()
        left, size = left[is_short], 2 * size


def _are_among(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether each row of a query, `(queries, n)`, is among its others, `(queries, m)`; never for -1."""
    starts = (2 + max(rows.max(), others.max())) * np.arange(len(rows))[:, None]  # each query has its own integers
    wanted, known = starts + rows, np.sort(starts + others, axis=None)
    return (rows >= 0) & (known[np.searchsorted(known[1:], wanted, side="right")] == wanted)


def _rescored(cross_encoder: BertCrossEncoder, batch_size: int | None, found: dict[str, Scores]) -> dict[str, Scores]:
    """The same texts with the scores of a cross-encoder, the best first."""
    asked, read = zip(*((query, text) for query, own in found.items() for text in own), strict=True)
    logits = cross_encoder.predict((list(asked), list(read)), batch_size, verbose=0)[:, 0]
    scores = iter(np.asarray(cross_encoder.label_kind.scores(logits)).tolist())
    return {query: ranked({text: next(scores) for text in own}, len(own)) for query, own in found.items()}


def _writer(path: Path) -> Callable[[tuple[list[Any], ...], list[list[float]] | None], None]:
    """A function that writes columns, and scores or None, to a Parquet file."""
    if path.suffix != ".parquet":
        raise ValueError(checks.message(OWNER, "to", "end in .parquet", str(path)))
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        cure = "Install it with `pip install keras-bert-layers[parquet]`."
        raise ModuleNotFoundError(f"`{OWNER}`: Parquet files need pyarrow. {cure}", name="pyarrow") from error

    def write(columns: tuple[list[Any], ...], scores: list[list[float]] | None) -> None:
        named = dict(zip(("query", "positive", "negatives"), columns, strict=True))
        table = pyarrow.table(named if scores is None else {**named, "scores": scores})
        with atomic_write(path, owner=OWNER, argument="to") as unfinished:
            parquet.write_table(table, unfinished)

    return write
