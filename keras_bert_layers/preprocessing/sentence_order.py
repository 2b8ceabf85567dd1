"""`SentenceOrder`: rows for sentence-order prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from keras_bert_layers._internal import checks
from keras_bert_layers.preprocessing._framed_rows import framed_pairs
from keras_bert_layers.preprocessing._segment_pairs import SMALLEST, SMALLEST_REASON, SegmentPairs
from keras_bert_layers.preprocessing._text_layer import Tokenizer
from keras_bert_layers.preprocessing.token_documents import TokenDocuments
from keras_bert_layers.preprocessing.token_rows import TokenRows


@dataclass(frozen=True)
class SentenceOrder:
    """ALBERT's rows: two neighbouring texts of a document, in order (label 0), or in half of the rows swapped (1).

    Chunks of sentences that just fill a row are split at a random sentence, as for `NextSentence`. A chunk of one
    sentence is split inside of it; a sentence of a single token that is a chunk by itself is left out. A pair that is
    too long loses tokens of its longer text one by one, at random from the front or the back.

    Args:
        short_rate: the share of documents with shorter rows, in [0, 1].

    Raises:
        TypeError: an argument that is not a number.
        ValueError: an argument out of range.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "it", "rains", "we", "stay"])
        >>> documents = TokenDocuments.from_text([["It rains", "We stay"]], tokenizer)
        >>> [SentenceOrder().rows(documents, tokenizer, max_length=16, seed=seed).token_ids.tolist() for seed in (4, 1)]
        [[2, 4, 5, 3, 6, 7, 3], [2, 6, 7, 3, 4, 5, 3]]

    References:
        Lan et al. 2019, https://arxiv.org/abs/1909.11942, section 3.1; `create_instances_from_document` in
        google-research/albert, create_pretraining_data.py, has the same labels. It gives a chunk of one sentence a
        second text from another document, with label 1.
    """

    short_rate: float = 0.1

    has_labels: ClassVar[bool] = True
    is_packed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "short_rate", checks.share("SentenceOrder", "short_rate", self.short_rate))

    def rows(self, documents: TokenDocuments, tokenizer: Tokenizer, *, max_length: int, seed: int) -> TokenRows:
        """Makes rows of documents, in their order; see `RowRule`. `max_length` is at least 5."""
        checks.integer("SentenceOrder", "max_length", max_length, smallest=SMALLEST, reason=SMALLEST_REASON)
        pairs = SegmentPairs(documents, max_length=max_length, short_rate=self.short_rate)
        return framed_pairs("SentenceOrder", documents.ids, pairs.sentence_order(seed), tokenizer)
