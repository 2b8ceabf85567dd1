"""`TokenRows`: rows of token ids for pretraining, and `RowRule`: how they are made from documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.preprocessing.rows.token_documents import TokenDocuments
from keras_bert_layers.preprocessing.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class TokenRows:
    """Rows of ids, special tokens included, without padding: 9 bytes per token.

    A row holds one text or a pair, or several packed texts, which do not attend to each other.

    Args:
        token_ids: int32 `(tokens,)`, the rows one after the other.
        segment_ids: int8 `(tokens,)`: 0, or 1 in the second text of a pair.
        text_numbers: int32 `(tokens,)`: the number of the text in its row that a token belongs to, from 1 on; 1
            everywhere if no row holds several texts. Padded with 0, it is the row's padding mask.
        bounds: int64 `(rows + 1,)`: row r is `token_ids[bounds[r] : bounds[r + 1]]`.
        labels: int32 `(rows,)`, the label of a pair (0: the second text follows the first); None for rows without.
    """

    token_ids: np.ndarray
    segment_ids: np.ndarray
    text_numbers: np.ndarray
    bounds: np.ndarray
    labels: np.ndarray | None = None

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.bounds) - 1

    def take(self, indices: Any) -> TokenRows:
        """The rows at `indices`, int `(rows,)`, in that order."""
        indices = np.asarray(indices)
        lengths = np.diff(self.bounds)[indices]
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        tokens = np.arange(bounds[-1]) + np.repeat(self.bounds[indices] - bounds[:-1], lengths)
        labels = None if self.labels is None else self.labels[indices]
        return TokenRows(self.token_ids[tokens], self.segment_ids[tokens], self.text_numbers[tokens], bounds, labels)

    def padded(self, width: int, pad_id: int) -> dict[str, np.ndarray]:
        """The rows as a backbone takes them: three int32 arrays `(rows, width)`; the mask holds `text_numbers`."""
        is_token = np.arange(width) < np.diff(self.bounds)[:, None]  # [B, S]

        def filled(values: np.ndarray, padding: int) -> np.ndarray:
            array = np.full(is_token.shape, padding, np.int32)
            array[is_token] = values
            return array

        return {
            "token_ids": filled(self.token_ids, pad_id),
            "segment_ids": filled(self.segment_ids, 0),
            "padding_mask": filled(self.text_numbers, 0),
        }


class RowRule(Protocol):
    """What the rules `NextSentence`, `SentenceOrder`, `FullSentences` and `PackedTexts` have in common.

    A rule is a frozen dataclass of settings, so that it is stored as JSON and compared.
    """

    #: Whether rows have a label, for the next-sentence head.
    has_labels: ClassVar[bool]
    #: Whether a row holds several texts, so that the encoder needs `backbone.packed_rows = True`.
    is_packed: ClassVar[bool]

    def rows(self, documents: TokenDocuments, tokenizer: Tokenizer, *, max_length: int, seed: int) -> TokenRows:
        """Makes rows of documents.

        Args:
            documents: what to make rows of; a random second text is from another one of them.
            tokenizer: where the special tokens are from.
            max_length: the largest number of tokens in a row, special tokens included.
            seed: from 0 to 2**63 - 1; the same documents and the same seed give the same rows in the same order.
        """
        ...


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

    def of_tokens(values: Tensor, dtype: type) -> np.ndarray:
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
