"""`PackedTexts`: pretraining rows of several texts that do not attend to each other."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from keras_bert_layers.preprocessing.rows.token_documents import TokenDocuments
from keras_bert_layers.preprocessing.rows.token_rows import TokenRows, cut, framed, text_room
from keras_bert_layers.preprocessing.tokenizer import Tokenizer


@dataclass(frozen=True)
class PackedTexts:
    """Several texts per row, which do not attend to each other; with hardly any padding.

    A document that is longer than a row is cut into full rows, at tokens. What is left of it, and shorter documents,
    are put together: each text, from the longest to the shortest, goes into the row in which it leaves the least room.
    Each text has its own `[CLS]` and `[SEP]`, and its number in the row in `TokenRows.text_numbers`; the backbone needs
    `packed_rows = True`.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "it", "rains", "we", "stay"])
        >>> documents = TokenDocuments.from_text([["It rains"], ["It rains", "We stay"], ["We"]], tokenizer)
        >>> rows = PackedTexts().rows(documents, tokenizer, max_length=7, seed=0)
        >>> rows.take([0]).token_ids.tolist(), rows.take([0]).text_numbers.tolist(), rows.bounds.tolist()
        ([2, 4, 5, 3, 2, 6, 3], [1, 1, 1, 1, 2, 2, 2], [0, 7, 13])

    References:
        Krell et al. 2021, https://arxiv.org/abs/2107.02027, on packing without contamination. Best fit decreasing:
        Johnson 1973, https://dspace.mit.edu/handle/1721.1/57819.
    """

    has_labels: ClassVar[bool] = False
    is_packed: ClassVar[bool] = True

    def rows(self, documents: TokenDocuments, tokenizer: Tokenizer, *, max_length: int, seed: int) -> TokenRows:
        """Makes rows of documents; see `RowRule`. `max_length` is at least 3; nothing is random.

        Rows are in the order of their first texts, and the texts of a row in the order of the documents.
        """
        bounds, _ = cut(documents.token_bounds, text_room("PackedTexts", max_length))
        row_of = _best_fit(np.diff(bounds) + 2, max_length)
        # The first text of each row, and then the texts row by row.
        _, first_texts, row_of = np.unique(row_of, return_index=True, return_inverse=True)
        order = np.argsort(first_texts[row_of], kind="stable")
        row_bounds = np.concatenate([[0], np.cumsum(np.bincount(row_of)[np.argsort(first_texts)])]).astype(np.int64)
        return framed(
            documents.ids,
            bounds[:-1][order],
            bounds[1:][order],
            tokenizer,
            row_bounds=row_bounds,
            text_numbers=np.arange(1, len(order) + 1) - np.repeat(row_bounds[:-1], np.diff(row_bounds)),
        )


def _best_fit(sizes: np.ndarray, capacity: int) -> np.ndarray:
    """The row of each text, int64 `(texts,)`: the one with the least room of those that it fits into, or a new one."""
    order = np.argsort(-sizes, kind="stable")
    rows_with: list[list[int]] = [[] for _ in range(capacity + 1)]  # by the room that is left
    rooms = 0  # bit r is 1 if a row has r tokens of room
    row_of, num_rows = [], 0
    for size in sizes[order].tolist():
        fitting = rooms >> size
        if fitting:
            room = size + (fitting & -fitting).bit_length() - 1
            row = rows_with[room].pop()
            rooms ^= (not rows_with[room]) << room
        else:
            room, row = capacity, num_rows
            num_rows += 1
        if room > size:
            rows_with[room - size].append(row)
            rooms |= 1 << room - size
        row_of.append(row)
    found = np.empty(len(sizes), np.int64)
    found[order] = row_of
    return found
