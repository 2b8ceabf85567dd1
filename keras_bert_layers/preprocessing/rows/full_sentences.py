"""`FullSentences` and `DocumentSentences`: pretraining rows filled with whole sentences, without pairs."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from keras_bert_layers.preprocessing.rows.token_documents import TokenDocuments
from keras_bert_layers.preprocessing.rows.token_rows import TokenRows, cut, framed, text_room
from keras_bert_layers.preprocessing.tokenizer import Tokenizer


class _SentenceRows:
    """Rows of as many whole sentences as fit; sentences that are longer than a row are cut."""

    has_labels: ClassVar[bool] = False
    is_packed: ClassVar[bool] = False
    #: Whether a row continues with the next document, after a separator.
    crosses_documents: ClassVar[bool]

    def rows(self, documents: TokenDocuments, tokenizer: Tokenizer, *, max_length: int, seed: int) -> TokenRows:
        """Makes rows of documents, in their order; see `RowRule`. `max_length` is at least 3; nothing is random."""
        room = text_room(type(self).__name__, max_length)
        bounds, first_parts = cut(documents.sentence_bounds, room)
        document_bounds = first_parts[documents.document_bounds]
        ids, starts, stops = documents.ids, bounds[:-1], bounds[1:]
        if self.crosses_documents:
            ids = np.insert(ids, bounds[document_bounds[1:-1]], tokenizer.separator_id)
            num_separators = np.repeat(np.arange(len(documents)), np.diff(document_bounds))
            starts, stops = starts + num_separators, stops + num_separators
            document_bounds = document_bounds[[0, -1]]
        filled = _filled(starts.tolist(), stops.tolist(), document_bounds[1:].tolist(), room)
        row_starts, row_stops = np.array(filled, np.int64).reshape(-1, 2).T
        return framed(ids, row_starts, row_stops, tokenizer, row_bounds=np.arange(len(filled) + 1))


@dataclass(frozen=True)
class FullSentences(_SentenceRows):
    """RoBERTa's rows: as many whole sentences as fit, one after the other, without pairs.

    A row continues with the next document, after a separator: `[CLS] end of one [SEP] start of the next [SEP]`. The
    whole row is one text in segment 0. A sentence that is longer than a row is cut into several.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "it", "rains", "we", "stay"])
        >>> documents = TokenDocuments.from_text([["It rains", "We stay"], ["We"], ["It rains"]], tokenizer)
        >>> rows = FullSentences().rows(documents, tokenizer, max_length=9, seed=0)
        >>> rows.token_ids.tolist(), rows.bounds.tolist()
        ([2, 4, 5, 6, 7, 3, 6, 3, 2, 4, 5, 3], [0, 8, 12])

    References:
        Liu et al. 2019, https://arxiv.org/abs/1907.11692, section 4.2, "FULL-SENTENCES".
    """

    crosses_documents: ClassVar[bool] = True


@dataclass(frozen=True)
class DocumentSentences(_SentenceRows):
    """As many whole sentences of one document as fit, one after the other, without pairs.

    As `FullSentences`, but a document's last row ends with the document, and is shorter. `PackedTexts` has fewer and
    fuller rows, which do not mix documents either.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "it", "rains", "we", "stay"])
        >>> documents = TokenDocuments.from_text([["It rains", "We stay"], ["We"]], tokenizer)
        >>> rows = DocumentSentences().rows(documents, tokenizer, max_length=9, seed=0)
        >>> rows.token_ids.tolist(), rows.bounds.tolist()
        ([2, 4, 5, 6, 7, 3, 2, 6, 3], [0, 6, 9])

    References:
        Liu et al. 2019, https://arxiv.org/abs/1907.11692, section 4.2, "DOC-SENTENCES".
    """

    crosses_documents: ClassVar[bool] = False


def _filled(starts: list[int], stops: list[int], barriers: list[int], room: int) -> list[tuple[int, int]]:
    """The first token and the end of runs of parts that have `room` tokens at most, and cross no barrier."""
    runs, first = [], 0
    for barrier in barriers:
        while first < barrier:
            end = bisect_right(stops, starts[first] + room, first, barrier)
            runs.append((starts[first], stops[end - 1]))
            first = end
    return runs
