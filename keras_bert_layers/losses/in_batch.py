"""Cosines, and logits with in-batch negatives: the texts of a row belong together, other rows are negatives."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

from keras_bert_layers._internal.types import Tensor

#: The id of an absent negative: the empty string that pads a short row.
ABSENT = -1
# Finite, as a logit of minus infinity times a label of zero would be NaN.
EXCLUDED = -1e9


def in_batch_logits(vectors: Tensor, candidates: Tensor, *, temperature: float, texts: Tensor | None = None) -> Any:
    """The logits of each row for each candidate of the batch: dot products divided by a temperature.

    Row i's own partner is candidate i. Candidates that the loss would wrongly treat as negatives are excluded, with a
    logit of -1e9: the same text as a partner of this row, or of another row with the same first text; the same text as
    the row's own first; and absent negatives.

    Args:
        vectors: float32 `(batch, hidden_dim)`; or `(batch, tokens, hidden_dim)`, whose logits are those of `max_sim`.
        candidates: float32 `(candidates, hidden_dim)`, or with tokens: the partners of all rows, then all first
            negatives, and so on.
        temperature: divides the dot products.
        texts: `text_ids` of the batch, or None if all texts count as different.

    Returns:
        float32 `(batch, candidates)`.

    References:
        Henderson et al. 2017, arXiv:1705.00652, section 4.4; `MultipleNegativesRankingLoss` of sentence-transformers
        has the same logits where no text repeats.
    """
    has_tokens = len(vectors.shape) == 3
    logits = max_sim(vectors, candidates) if has_tokens else ops.matmul(vectors, ops.transpose(candidates))
    logits = logits / temperature  # [B, C]
    if texts is None:
        return logits
    first, partner = texts[:, 0], texts[:, 1]  # [B]
    others = ops.reshape(ops.transpose(texts[:, 1:]), (-1,))  # [C]
    same_first = ops.cast(first[:, None] == first[None, :], "float32")  # [B, B]
    same_partner = ops.cast(partner[:, None] == others[None, :], "float32")  # [B, C]
    is_right = ops.matmul(same_first, same_partner) > 0
    is_itself = first[:, None] == others[None, :]
    is_own = ops.arange(ops.shape(logits)[0])[:, None] == ops.arange(ops.shape(logits)[1])[None, :]
    excluded = ops.logical_or(ops.logical_or(is_right, is_itself), others[None, :] == ABSENT)
    return ops.where(ops.logical_and(excluded, ops.logical_not(is_own)), EXCLUDED, logits)


def max_sim(queries: Tensor, documents: Tensor) -> Any:
    """The sum, over the tokens of a query, of the largest dot product with a token of a document.

    Args:
        queries: float32 `(queries, tokens, width)`; tokens of zeros are absent.
        documents: float32 `(documents, tokens, width)`; the same. Or `(queries, documents, tokens, width)`, the
            documents of each query, which are compared with it alone.

    Returns:
        float32 `(queries, documents)`.

    References:
        Khattab and Zaharia 2020, ColBERT, arXiv:2004.12832, section 3.3.
    """
    is_there = ops.any(documents != 0, axis=-1)
    by_query = len(documents.shape) == 4
    products = ops.einsum("qsw,qdtw->qsdt" if by_query else "qsw,dtw->qsdt", queries, documents)
    best = ops.max(ops.where(is_there[:, None] if by_query else is_there, products, EXCLUDED), axis=-1)  # [Q, S, D]
    return ops.sum(ops.where(ops.any(queries != 0, axis=-1)[..., None], best, 0.0), axis=1)


def in_both_directions(logits: Tensor) -> Any:
    """The logits of rows for partners, followed by those of partners for rows.

    Args:
        logits: what `in_batch_logits` returns, `(batch, candidates)`.

    Returns:
        `(2 * batch, candidates)`; row `batch + i` is partner i among the rows of the batch, and its label is i.
    """
    num_rows = ops.shape(logits)[0]
    backward = ops.transpose(logits[:, :num_rows])  # [B, B]
    absent = ops.full_like(logits[:, num_rows:], EXCLUDED)
    return ops.concatenate([logits, ops.concatenate([backward, absent], axis=1)], axis=0)


def by_column(vectors: Tensor) -> Any:
    """The vectors of all texts of rows but the first: those of all partners, then of all first negatives, and so on.

    Args:
        vectors: `(batch, texts, width)`.

    Returns:
        `(candidates, width)`, the candidates of `in_batch_logits`.
    """
    return ops.reshape(ops.transpose(vectors[:, 1:], (1, 0, 2)), (-1, vectors.shape[-1]))


def row_indices(vectors: Tensor) -> Any:
    """The labels of `in_batch_logits`: 0, 1, 2, ... for `(batch, ...)`."""
    return ops.arange(ops.shape(vectors)[0])


def unit(rows: Tensor) -> Any:
    """Each row scaled to Euclidean length 1; a row of zeros stays so."""
    library = np if isinstance(rows, np.ndarray) else ops
    return rows / library.sqrt(library.maximum(library.sum(rows * rows, axis=-1, keepdims=True), 1e-24))


def cosine(first: Tensor, second: Tensor) -> Any:
    """The cosine of each pair of rows; 0 where a vector is 0."""
    library = np if isinstance(first, np.ndarray) else ops
    return library.sum(unit(first) * unit(second), axis=-1)
