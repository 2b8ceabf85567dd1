"""`FullSentences`: rows filled with sentences, across documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from keras_bert_layers.preprocessing._sentence_rows import sentence_rows
from keras_bert_layers.preprocessing._text_layer import Tokenizer
from keras_bert_layers.preprocessing.token_documents import TokenDocuments
from keras_bert_layers.preprocessing.token_rows import TokenRows


@dataclass(frozen=True)
class FullSentences:
    """RoBERTa's rows: as many whole sentences as fit, one after the other, without pairs.

    A row goes on with the next document, after a separator: `[CLS] end of one [SEP] start of the next [SEP]`. The whole
    row is one text in segment 0. A sentence that is longer than a row is cut into rows.

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

    has_labels: ClassVar[bool] = False
    is_packed: ClassVar[bool] = False

    def rows(self, documents: TokenDocuments, tokenizer: Tokenizer, *, max_length: int, seed: int) -> TokenRows:
        """Makes rows of documents, in their order; see `RowRule`. `max_length` is at least 3; nothing is random."""
        return sentence_rows("FullSentences", documents, tokenizer, max_length=max_length, crosses_documents=True)
