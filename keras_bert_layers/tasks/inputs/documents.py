"""Documents, which are lists of sentences, and pairs of texts, for BERT's pretraining with next sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import needs_tensorflow, tf
from keras_bert_layers._internal.types import Labels, Rows, Tensor
from keras_bert_layers.data.pretraining.row_source import RowSource, records_of_blocks, rows_of_bytes
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.preprocessing.rows.segment_pairs import NextSentence
from keras_bert_layers.preprocessing.rows.token_documents import TokenDocuments, check_documents
from keras_bert_layers.preprocessing.rows.token_rows import TokenRows
from keras_bert_layers.tasks.feeding.columns import as_array, is_dataset, split_rows
from keras_bert_layers.tasks.feeding.kind_of_data import BatchMaker
from keras_bert_layers.tasks.inputs.inputs import TEXT
from keras_bert_layers.tasks.inputs.masked import MaskedInputs

MASKED_LM, NEXT_SENTENCE = "masked_lm", "next_sentence"


class DocumentsInMemory:
    """A `RowSource` of Google's pairs of sentences: new ones in every epoch, and always equally many.

    The documents are tokenized once, and kept with 4 bytes per token.

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

    def __init__(self, owner: str, documents: Sequence[Sequence[str]], preprocessor: TextLayer, seed: int):
        self.tokenizer, self.max_length, self.seed = preprocessor.tokenizer, preprocessor.max_length, seed
        self._tokens = TokenDocuments.from_text(documents, self.tokenizer, owner=owner)
        if not len(self._tokens):
            raise ValueError(checks.message(owner, "documents", "hold at least one token", len(documents)))
        # Some epochs would have a few more pairs than others; Keras needs equally many steps in each.
        self.num_rows = (len(self._drawn(np.random.default_rng([seed, 0]))),)

    def dataset(self, epoch: Tensor) -> tf.data.Dataset:
        """The rows of an epoch in random order; see `RowSource`."""
        return self.records(epoch).map(rows_of_bytes)

    def records(self, epoch: Tensor) -> tf.data.Dataset:
        """The rows of `dataset` in bytes; `rows_of_records` takes one or a batch of them."""
        return records_of_blocks(self._blocks, self.rule, epoch)

    rows_of_records = staticmethod(rows_of_bytes)

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


class DocumentInputs(MaskedInputs):
    """Documents, from which pairs of segments are drawn, or pairs of texts with labels; tokens of both are masked.

    Every epoch draws new pairs and new masks; evaluation draws the same ones each time.
    """

    takes_pairs = True
    text_inputs: Mapping[str, Any] = {"text": TEXT, "text_pair": TEXT}

    def labels(self, columns: Any, y: Any) -> Any:
        """A column of 0 and 1, checked row by row; tensors unchanged."""
        y = as_array(y)
        if not isinstance(y, np.ndarray):
            return y
        rule = "every label must be 0 (the second text follows the first) or 1 (it does not)"
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim != 1:
            raise ValueError(f"`{self.owner}`: {rule}. Received: shape={y.shape}. Give one label per row.")
        checks.every_row(self.owner, rule, y, np.isin(y, (0, 1)))
        return y

    def with_labels(self, masked: tuple[Any, Any, Any], y: Tensor, sample_weight: Any) -> tuple[Any, ...]:
        """What the generator returned, and whether the second text follows the first, as the model trains on it."""
        if y is None:
            cure = "Give 0 where the second text follows the first and 1 where it does not; or documents."
            raise ValueError(checks.message(self.owner, "y", "be given for pairs of texts", y, cure))
        inputs, labels, weights = masked
        by_pair = tf.ones_like(weights[:, 0]) if sample_weight is None else tf.cast(sample_weight, weights.dtype)
        labels = {MASKED_LM: labels, NEXT_SENTENCE: tf.cast(y, tf.int32)}
        return inputs, labels, {MASKED_LM: weights * by_pair[:, None], NEXT_SENTENCE: by_pair}

    def batches_of(self, x: Any, y: Any, sample_weight: Any, *, batch_size: int | None) -> BatchMaker:
        """What makes batches of masked pairs, from documents or from columns."""
        if not isinstance(x, tuple | RowSource):
            needs_tensorflow("pretraining from documents")
            x = DocumentsInMemory(self.owner, x, self.preprocessor, self.masking.seed or 0)
        return super().batches_of(x, y, sample_weight, batch_size=batch_size)

    def split(self, x: Rows, y: Labels, sample_weight: Labels, share: float) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The first and the last documents, or rows."""
        if isinstance(x, tuple) or is_dataset(x):
            return super().split(x, y, sample_weight, share)
        check_documents(self.owner, x)
        (first, *_), (last, *_) = split_rows(self.owner, share, x)
        return (first, y, sample_weight), (last, None, None)
