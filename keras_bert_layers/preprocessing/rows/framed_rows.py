"""Rows of token ids from parts of documents, with `[CLS]` and `[SEP]` around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.preprocessing.rows.token_rows import TokenRows
from keras_bert_layers.preprocessing.tokenizer import Tokenizer


def framed(
    ids: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    tokenizer: Tokenizer,
    *,
    row_bounds: np.ndarray,
    segments: Any = 0,
    text_numbers: Any = 1,
    labels: np.ndarray | None = None,
) -> TokenRows:
    """Rows of parts: each becomes `[CLS] part [SEP]`, or in segment 1 `part [SEP]`.

    Args:
        ids: int32 `(tokens,)`.
        starts: int64 `(parts,)`, each part's first token.
        stops: int64 `(parts,)`, each part's end.
        tokenizer: where the special tokens are from.
        row_bounds: int64 `(rows + 1,)`: row r holds the parts from `row_bounds[r]` to `row_bounds[r + 1] - 1`.
        segments: int `(parts,)`, or one for all: 0, or 1 for the second text of a pair.
        text_numbers: int `(parts,)`, or one for all: the part's number in its row.
        labels: int32 `(rows,)`, or None.
    """
    has_start = np.broadcast_to(np.equal(segments, 0), starts.shape)
    lengths = stops - starts + has_start + 1
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    # Where a part has a special token, the index is that of a neighbour, or outside.
    source = np.arange(bounds[-1]) + np.repeat(starts - has_start - bounds[:-1], lengths)
    token_ids = np.take(ids, source, mode="clip").astype(np.int32, copy=False)
    token_ids[bounds[:-1][has_start]] = tokenizer.start_id
    token_ids[bounds[1:] - 1] = tokenizer.separator_id

    def of_tokens(values: Any, dtype: type) -> np.ndarray:
        return np.repeat(np.broadcast_to(np.asarray(values, dtype), starts.shape), lengths)

    return TokenRows(
        token_ids, of_tokens(segments, np.int8), of_tokens(text_numbers, np.int32), bounds[row_bounds], labels
    )


def text_room(owner: str, max_length: int) -> int:
    """The number of tokens of a text in a row of one text; TypeError or ValueError unless one fits."""
    return checks.integer(owner, "max_length", max_length, smallest=3, reason=", for [CLS], one token and [SEP]") - 2


def cut(bounds: np.ndarray, longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Cuts runs of tokens into parts of `longest` tokens; the last part of a run may be shorter.

    Args:
        bounds: int64 `(runs + 1,)`, ascending: run r is from `bounds[r]` to `bounds[r + 1] - 1`; none is empty.
        longest: the largest number of tokens in a part.

    Returns:
        The bounds of the parts, int64 `(parts + 1,)`, and the index in them of each of `bounds`, int64 `(runs + 1,)`.
    """
    num_parts = -(-np.diff(bounds) // longest)
    first_parts = np.concatenate([[0], np.cumsum(num_parts)])
    place = np.arange(first_parts[-1]) - np.repeat(first_parts[:-1], num_parts)
    return np.append(np.repeat(bounds[:-1], num_parts) + place * longest, bounds[-1]), first_parts
