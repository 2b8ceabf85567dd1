"""Documents, which are lists of sentences, and pairs of texts, for BERT's pretraining."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.data.pretraining.row_source import RowSource
from keras_bert_layers.preprocessing.token_documents import check_documents
from keras_bert_layers.tasks.inputs import _columns as columns_of
from keras_bert_layers.tasks.inputs._documents_in_memory import DocumentsInMemory
from keras_bert_layers.tasks.inputs._epochs import Epochs
from keras_bert_layers.tasks.inputs.inputs import TEXT
from keras_bert_layers.tasks.inputs.masked import MaskedInputs

MASKED_LM, NEXT_SENTENCE = "masked_lm", "next_sentence"


class DocumentInputs(MaskedInputs):
    """Documents, from which pairs of segments are drawn, or pairs of texts with labels; tokens of both are masked.

    Every epoch draws other pairs and other masks; evaluation draws the same ones each time.
    """

    takes_pairs = True
    text_inputs: Mapping[str, Any] = {"text": TEXT, "text_pair": TEXT}

    def labels(self, columns: Any, y: Any) -> Any:
        """A column of 0 and 1, checked row by row; tensors unchanged."""
        y = columns_of.as_array(y)
        if not isinstance(y, np.ndarray):
            return y
        rule = "every label must be 0 (the second text follows the first) or 1 (it does not)"
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim != 1:
            raise ValueError(f"`{self.owner}`: {rule}. Received: shape={y.shape}. Give one label a row.")
        checks.every_row(self.owner, rule, y, np.isin(y, (0, 1)))
        return y

    def with_labels(self, masked: tuple[Any, Any, Any], y: Any, sample_weight: Any) -> tuple[Any, ...]:
        """What the generator returned, and whether the second text follows the first, as the model trains on it."""
        if y is None:
            cure = "Give 0 where the second text follows the first and 1 where it does not; or documents."
            raise ValueError(checks.message(self.owner, "y", "be given for pairs of texts", y, cure))
        inputs, labels, weights = masked
        by_pair = tf.ones_like(weights[:, 0]) if sample_weight is None else tf.cast(sample_weight, weights.dtype)
        labels = {MASKED_LM: labels, NEXT_SENTENCE: tf.cast(y, tf.int32)}
        return inputs, labels, {MASKED_LM: weights * by_pair[:, None], NEXT_SENTENCE: by_pair}

    def batches_of(
        self, x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, epochs: Epochs | None
    ) -> tf.data.Dataset:
        """A dataset of masked pairs, from documents or from columns."""
        if not isinstance(x, tuple | RowSource):
            x = DocumentsInMemory(self.owner, x, self.preprocessor, self.masking.seed or 0)
        return super().batches_of(x, y, sample_weight, batch_size=batch_size, epochs=epochs)

    def split(self, x: Any, y: Any, sample_weight: Any, share: float) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The first and the last documents, or rows."""
        if isinstance(x, tuple) or columns_of.is_dataset(x):
            return super().split(x, y, sample_weight, share)
        check_documents(self.owner, x)
        (first, *_), (last, *_) = columns_of.split_rows(self.owner, share, x)
        return (first, y, sample_weight), (last, None, None)
