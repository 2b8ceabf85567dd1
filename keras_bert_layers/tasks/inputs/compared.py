"""Texts, pairs and triplets, for an encoder that all texts go through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks import _contrastive as contrastive
from keras_bert_layers.tasks.inputs import _columns as columns_of
from keras_bert_layers.tasks.inputs.inputs import Inputs

SIMILARITY = "similarity"


class ComparedInputs(Inputs):
    """Single texts with target vectors, pairs with similarities, or pairs and triplets without labels.

    The texts of a pair are rows of the model one after the other. Labels of pairs are a dictionary: `"similarity"`, or
    `"texts"`, an id for each text. A row of outputs is the vector of a text, or the cosine of a pair.

    Args:
        owner: the task's class, for errors.
        preprocessor: a `BertPreprocessor`, or None.
        vector_dim: the width of the vectors.
    """

    def __init__(self, owner: str, preprocessor: Any, vector_dim: int):
        super().__init__(owner, preprocessor, most_texts=3)
        self._vector_dim = vector_dim

    def labels(self, columns: Any, y: Any) -> Any:
        """Similarities, checked row by row; target vectors unchecked."""
        y = columns_of.as_array(y)
        if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype != object:
            y = y.astype(np.float32)
            rule = "every similarity must be in [-1, 1], the range of a cosine"
            cure = "Scale the scores first: divide by 5 if they run from 0 to 5."
            checks.every_row(self.owner, rule, y, np.abs(y) <= 1, cure)
        return y

    def makes_labels(self, x: Any) -> bool:
        """Pairs and triplets need no labels: the texts of a row belong together."""
        return columns_of.is_pair(x)

    def encode(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, ...]:
        """One batch of `(ids, labels, weights)`, in graph; the texts of a row one after the other."""
        if not isinstance(x, tuple):
            self._check_targets(y)
            return super().encode(x, y, sample_weight)
        texts = contrastive.joined(x)  # [B, 2 or more]
        if y is None:
            y = {contrastive.TEXTS: contrastive.text_ids(texts)}
        elif len(x) == 2:
            y = {SIMILARITY: tf.reshape(tf.cast(y, tf.float32), [-1, 1])}
        else:
            raise ValueError(checks.message(self.owner, "y", "be None beside triplets", type(y)))
        return super().encode(tf.reshape(texts, [-1]), y, sample_weight)

    def _check_targets(self, y: Any) -> None:
        """Refuses, beside single texts, anything but target vectors."""
        width = self._vector_dim
        if y is not None and y.shape.rank is not None and (y.shape.rank, y.shape[-1]) != (2, width):
            rule = f"be target vectors `(batch, {width})` where texts are single"
            cure = (
                "Pairs are a tuple of two lists of texts, with similarities or without; in `validation_data` and "
                "from a dataset `((first, second), similarities)` or `((first, second),)`."
            )
            raise ValueError(checks.message(self.owner, "y", rule, tuple(y.shape), cure))

    def read_together(self, columns: Any) -> Any:
        """All texts, one by one."""
        return columns_of.as_one_column(columns)

    def outputs(self, columns: Any, run: Callable[..., Any]) -> np.ndarray:
        """The vectors of a block of texts, or the cosines of a block of pairs."""
        contrastive.refuse_negatives(self.owner, columns)
        vectors = super().outputs(columns, run)
        return contrastive.cosine(vectors[0::2], vectors[1::2]) if isinstance(columns, tuple) else vectors

    def empty(self, x: Any, outputs: Any) -> np.ndarray:
        """No vectors, or no cosines."""
        return contrastive.cosine(outputs, outputs) if columns_of.is_pair(x) else outputs
