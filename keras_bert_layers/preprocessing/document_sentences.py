"""`DocumentSentences`: rows filled with sentences of one document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from keras_bert_layers.preprocessing._sentence_rows import sentence_rows
from keras_bert_layers.preprocessing._text_layer import Tokenizer
from keras_bert_layers.preprocessing.token_documents import TokenDocuments
from keras_bert_layers.preprocessing.token_rows import TokenRows


@dataclass(frozen=True)
class DocumentSentences:
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

    has_labels: ClassVar[bool] = False
    is_packed: ClassVar[bool] = False

    def rows(self, documents: TokenDocuments, tokenizer: Tokenizer, *, max_length: int, seed: int) -> TokenRows:
        """Makes rows of documents, in their order; see `RowRule`. `max_length` is at least 3; nothing is random."""
        return sentence_rows("DocumentSentences", documents, tokenizer, max_length=max_length, crosses_documents=False)
