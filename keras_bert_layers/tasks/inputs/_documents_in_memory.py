"""Rows to pretrain on, made of documents that are in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.data.pretraining._row_datasets import rows_of_blocks
from keras_bert_layers.preprocessing.next_sentence import NextSentence
from keras_bert_layers.preprocessing.token_documents import TokenDocuments
from keras_bert_layers.preprocessing.token_rows import TokenRows


class DocumentsInMemory:
    """A `RowSource` of Google's pairs of sentences, other ones in every epoch but always as many.

    The documents are tokenized once, and kept with 4 bytes a token.

    Args:
        owner: the task's class, for errors.
        documents: lists of sentences.
        preprocessor: its tokenizer and its `max_length` are those of the rows.
        seed: what the pairs follow from.

    Raises:
        TypeError: a document that is not a list, or a sentence that is not a string.
        ValueError: documents without any token.
    """

    rule = NextSentence()
    num_duplicates = None
    static_masks = False

    def __init__(self, owner: str, documents: Sequence[Sequence[str]], preprocessor: Any, seed: int):
        self.tokenizer, self.max_length, self.seed = preprocessor.tokenizer, preprocessor.max_length, seed
        self._tokens = TokenDocuments.from_text(documents, self.tokenizer, owner=owner)
        if not len(self._tokens):
            raise ValueError(checks.message(owner, "documents", "hold at least one token", len(documents)))
        # Some epochs would have a few more pairs than others; Keras wants equally many steps in each.
        self.num_rows = (len(self._drawn(np.random.default_rng([seed, 0]))),)

    def dataset(self, epoch: Any) -> tf.data.Dataset:
        """The rows of an epoch in random order; see `RowSource`."""
        return rows_of_blocks(self._blocks, self.rule, epoch)

    def _blocks(self, epoch: int) -> Iterator[tuple[TokenRows, np.ndarray]]:
        generator, left, number = np.random.default_rng([self.seed, epoch]), self.num_rows[0], 0
        while left:
            rows = self._drawn(generator)
            rows = rows.take(generator.permutation(len(rows))[:left])
            yield rows, np.arange(number, number + len(rows), dtype=np.int64)
            left, number = left - len(rows), number + len(rows)

    def _drawn(self, generator: np.random.Generator) -> TokenRows:
        seed = int(generator.integers(2**63 - 1))
        return self.rule.rows(self._tokens, self.tokenizer, max_length=self.max_length, seed=seed)
