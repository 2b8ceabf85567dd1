"""`semantic_search`: the vectors of a corpus that are most similar to each query, found exactly, in blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.tasks.inputs.sparse_vectors import SparseVectors
from keras_bert_layers.tasks.inputs.token_vectors import TokenVectors
from keras_bert_layers.tasks.recipes.quantized_embeddings import QuantizedEmbeddings
from keras_bert_layers.tasks.recipes.unit_vectors import unit_vectors

OWNER = "semantic_search"
_MOST_ROWS = 2**32  # a row has half of the bits of a key to sort by; see `_keys`
Scores: TypeAlias = Callable[[np.ndarray, np.ndarray], Any]
Vectors: TypeAlias = Tensor | QuantizedEmbeddings | SparseVectors | TokenVectors
#: int rows of a corpus and their float32 scores, both `(queries, found)`.
Found: TypeAlias = tuple[np.ndarray, np.ndarray]


def semantic_search(
    query_embeddings: Tensor,
    corpus_embeddings: Vectors,
    *,
    top_k: int = 10,
    query_chunk_size: int = 1_000,
    corpus_chunk_size: int = 16_384,
    score_function: Scores | None = None,
    rescore_embeddings: Vectors | None = None,
    rescore_multiplier: int = 4,
) -> list[list[dict[str, Any]]]:
    """The rows of a corpus that are most similar to each query: exact search, with the names of sentence-transformers.

    Every query is compared with every vector of the corpus, in blocks, so that memory does not grow with their product.
    `encode_queries` and `encode_documents`, or `predict`, make the vectors. The corpus may be a `numpy.memmap`, or
    what `quantize_embeddings` returns. For vectors of fewer dimensions, give the first columns of both: the cosine
    does not depend on lengths.

    Args:
        query_embeddings: floats `(queries, vector_dim)`, or one vector `(vector_dim,)`; or `SparseVectors`.
        corpus_embeddings: floats `(rows, vector_dim)`, or `QuantizedEmbeddings`; or `SparseVectors`, whose score is the
            dot product.
        top_k: how many rows to return for each query, at most.
        query_chunk_size: how many queries are compared at a time.
        corpus_chunk_size: how many rows of the corpus are compared at a time.
        score_function: a function of float32 `(q, vector_dim)` and `(n, vector_dim)` that returns `(q, n)`. None is the
            cosine, and `numpy.inner` the dot product.
        rescore_embeddings: better vectors of the same corpus, floats `(rows, vector_dim)` or `QuantizedEmbeddings`; the
            first `rescore_multiplier * top_k` rows are compared again, with these. They may be a `numpy.memmap`.
        rescore_multiplier: how many times `top_k` rows are compared again.

    Returns:
        For each query a list of `{"corpus_id": row, "score": score}`, the highest score first. Of equal scores the
        lower row comes first.

    Raises:
        ValueError: vectors of other shapes, or that are not finite; a score that is NaN; a number below 1; a corpus of
            more than 4,294,967,296 rows.

    Examples:
        >>> corpus = np.array([[1, 0], [0, 2], [3, 4]], "float32")
        >>> semantic_search(np.array([[0, 1]], "float32"), corpus, top_k=2)
        [[{'corpus_id': 1, 'score': 1.0}, {'corpus_id': 2, 'score': 0.800000011920929}]]

    References:
        sentence-transformers 6, `util.semantic_search`.
    """
    chunks, score = (query_chunk_size, corpus_chunk_size), score_function
    queries = query_embeddings if len(query_embeddings.shape) == 2 else query_embeddings[None]
    again = checks.positive_integer(OWNER, "rescore_multiplier", rescore_multiplier)
    number = top_k if rescore_embeddings is None else again * top_k
    rows, scores = nearest_rows(queries, corpus_embeddings, number, score=score, chunks=chunks)
    if rescore_embeddings is not None:
        rule, size = "have a vector for each row of the corpus", len(corpus_embeddings)
        checks.length(OWNER, "rescore_embeddings", rescore_embeddings, size, rule=rule, unit="vectors")
        rows, scores = _rescored(queries, np.sort(rows, axis=1), rescore_embeddings, top_k, score)
    return [
        [{"corpus_id": row, "score": value} for row, value in zip(*found, strict=True)]
        for found in zip(rows.tolist(), scores.tolist(), strict=True)
    ]


def nearest_rows(
    queries: Tensor,
    corpus: Vectors,
    top_k: int,
    *,
    score: Scores | None = None,
    chunks: tuple[int, int] = (1_000, 16_384),
) -> Found:
    """The rows with the best scores, int `(queries, found)`, and these scores; of equal scores the lower row first.

    `found` is `top_k`, or the number of rows of the corpus if that is smaller. The other arguments and the errors are
    those of `semantic_search`.
    """
    for name, number in zip(("top_k", "query_chunk_size", "corpus_chunk_size"), (top_k, *chunks), strict=True):
        checks.positive_integer(OWNER, name, number)
    width, (num_asked, num_rows) = queries.shape[1], chunks
    if len(corpus.shape) != 2 or corpus.shape[1] != width:
        shape = checks.Shown(f"the shape {tuple(corpus.shape)}")
        raise ValueError(checks.message(OWNER, "corpus_embeddings", f"have the shape (rows, {width})", shape))
    if len(corpus) > _MOST_ROWS:
        raise ValueError(checks.message(OWNER, "corpus_embeddings", f"have at most {_MOST_ROWS} rows", len(corpus)))
    if isinstance(corpus, SparseVectors | TokenVectors):
        checks.instance(OWNER, "query_embeddings", queries, type(corpus))
        size = max(1, num_asked * num_rows // max(1, len(corpus)))
        sparse = [best(corpus.scores(queries[n : n + size]), top_k) for n in range(0, max(1, len(queries)), size)]
        return np.vstack([rows for rows, _ in sparse]), np.vstack([scores for _, scores in sparse])
    asked = _read("query_embeddings", queries, score)
    parts = [asked[start : start + num_asked] for start in range(0, len(asked), num_asked)] or [asked]
    found = [best(np.empty((len(part), 0), np.float32), top_k) for part in parts]
    space = np.empty(min(num_asked, len(asked)) * min(num_rows, len(corpus)), np.float32)
    for start in range(0, len(corpus), num_rows):
        block = _read("corpus_embeddings", corpus[start : start + num_rows], score)
        for number, part in enumerate(parts):
            found[number] = best(_compared(part, block, score, space), top_k, start=start, before=found[number])
    return np.vstack([rows for rows, _ in found]), np.vstack([scores for _, scores in found])


def best(scores: np.ndarray, top_k: int, *, start: int = 0, before: Found | None = None) -> Found:
    """The columns of the highest scores of each query, and these scores; of equal scores the lower column first.

    Args:
        scores: float32 `(queries, columns)`. There are at most 2**32 columns, those below `start` included.
        top_k: how many to return, at most.
        start: the number of the first column.
        before: what was returned for the columns below `start`, which is part of the result.

    Returns:
        int and float32 `(queries, found)`; a score of -0 is returned as 0.

    Raises:
        ValueError: a score is NaN.
    """
    num_queries, num_columns = scores.shape
    if np.isnan(scores.max(initial=-np.inf)):
        cure = "Give shorter vectors, or a `score_function` that returns numbers."
        raise ValueError(checks.message(OWNER, "scores", "be numbers", np.nan, cure))
    columns, values = before or (np.empty((num_queries, 0), np.int64), scores[:, :0])
    if (num_before := columns.shape[1]) == top_k or not num_columns:
        better = scores > values[:, -1:]
    else:
        least = max(0, num_columns - top_k)
        better = scores >= np.partition(scores, least, axis=1)[:, least, None]
    places = np.flatnonzero(better)  # a tenth of the time of `nonzero` of two axes
    queries, others = np.divmod(places, max(1, num_columns))
    counts = np.bincount(queries, minlength=num_queries)
    keys = np.full((num_queries, num_before + counts.max(initial=0)), ~np.uint64(0))
    keys[:, :num_before] = _keys(values, columns)
    own = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    keys[queries, num_before + own] = _keys(scores.ravel()[places], start + others)
    keys.sort(axis=1)
    keys = keys[:, : min(top_k, start + num_columns)]
    return (keys & 0xFFFFFFFF).astype(np.int64), _flipped((keys >> 32).astype(np.uint32)).view(np.float32)


def _keys(scores: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Integers that ascend as scores descend, and at equal scores as columns ascend: one sort of them for both."""
    flipped = _flipped((scores + np.float32(0)).view(np.uint32))  # -0 becomes 0
    return flipped.astype(np.uint64) << 32 | columns.astype(np.uint64)


def _flipped(bits: np.ndarray) -> np.ndarray:
    """The bits of float32 as integers that ascend as the numbers descend; and of these the bits."""
    return np.where(bits >> 31, bits, bits ^ 0x7FFFFFFF)


def _rescored(queries: Tensor, rows: np.ndarray, vectors: Vectors, top_k: int, score: Scores | None) -> Found:
    """The best of these rows, which ascend, by other vectors of them, and their scores."""
    scores = np.empty(rows.shape, np.float32)
    for number, query in enumerate(_read("query_embeddings", queries, score)):
        block = _read("rescore_embeddings", vectors[rows[number]], score)
        scores[number] = _compared(query[None], block, score, np.empty(len(block), np.float32))[0]
    places, scores = best(scores, top_k)
    return np.take_along_axis(rows, places, axis=1), scores


def _compared(queries: np.ndarray, rows: np.ndarray, score: Scores | None, space: np.ndarray) -> np.ndarray:
    """The scores `(queries, rows)` of vectors from `_read`; products are written to `space`, as new memory is slow."""
    if score is None or score is np.inner:
        return np.matmul(queries, rows.T, out=space[: len(queries) * len(rows)].reshape(len(queries), len(rows)))
    return np.asarray(score(queries, rows), np.float32)


def _read(argument: str, vectors: Tensor, score: Scores | None) -> np.ndarray:
    """Finite float32 vectors, of length 1 if their cosine is asked for."""
    found = ops.convert_to_numpy(vectors).astype(np.float32, copy=False)
    if not np.isfinite(found).all():
        row = int(np.isfinite(found).all(axis=-1).argmin())
        raise ValueError(checks.message(OWNER, argument, "be finite", found[row].tolist()))
    return unit_vectors(found) if score is None else found
