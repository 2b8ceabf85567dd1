"""Rows that are filled with sentences one after the other."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.preprocessing._framed_rows import cut, framed
from keras_bert_layers.preprocessing._text_layer import Tokenizer
from keras_bert_layers.preprocessing.token_documents import TokenDocuments
from keras_bert_layers.preprocessing.token_rows import TokenRows

SMALLEST = 3
SMALLEST_REASON = ", for [CLS], one token and [SEP]"


def sentence_rows(
    owner: str, documents: TokenDocuments, tokenizer: Tokenizer, *, max_length: int, crosses_documents: bool
) -> TokenRows:
    """Rows of as many whole sentences as fit; sentences that are longer than a row are cut.

    Args:
        owner: the class to name in errors.
        documents: where the sentences are from.
        tokenizer: where the special tokens are from.
        max_length: the largest number of tokens in a row, special tokens included.
        crosses_documents: whether a row goes on with the next document, after a separator.
    """
    checks.integer(owner, "max_length", max_length, smallest=SMALLEST, reason=SMALLEST_REASON)
    room = max_length - 2
    bounds, first_parts = cut(documents.sentence_bounds, room)
    document_bounds = first_parts[documents.document_bounds]
    ids, starts, stops = documents.ids, bounds[:-1], bounds[1:]
    if crosses_documents:
        ids = np.insert(ids, bounds[document_bounds[1:-1]], tokenizer.separator_id)
        num_separators = np.repeat(np.arange(len(documents)), np.diff(document_bounds))
        starts, stops = starts + num_separators, stops + num_separators
        document_bounds = document_bounds[[0, -1]]
    filled = _filled(starts.tolist(), stops.tolist(), document_bounds[1:].tolist(), room)
    row_starts, row_stops = np.array(filled, np.int64).reshape(-1, 2).T
    return framed(ids, row_starts, row_stops, tokenizer, row_bounds=np.arange(len(filled) + 1))


def _filled(starts: list[int], stops: list[int], barriers: list[int], room: int) -> list[tuple[int, int]]:
    """The first token and the end of runs of parts that have `room` tokens at most, and cross no barrier."""
    runs, first = [], 0
    for barrier in barriers:
        while first < barrier:
            end = bisect_right(stops, starts[first] + room, first, barrier)
            runs.append((starts[first], stops[end - 1]))
            first = end
    return runs
