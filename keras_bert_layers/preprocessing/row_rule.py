"""`RowRule`: how rows to pretrain on are made of documents."""

from __future__ import annotations

from typing import ClassVar, Protocol

from keras_bert_layers.preprocessing._text_layer import Tokenizer
from keras_bert_layers.preprocessing.token_documents import TokenDocuments
from keras_bert_layers.preprocessing.token_rows import TokenRows


class RowRule(Protocol):
    """What the rules `NextSentence`, `SentenceOrder`, `FullSentences` and `PackedTexts` have in common.

    A rule is a frozen dataclass of settings, so that it is stored as JSON and compared.
    """

    #: Whether rows have a label, for the next-sentence head.
    has_labels: ClassVar[bool]
    #: Whether a row holds several texts, so that the encoder must be told (`backbone.packed_rows = True`).
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
