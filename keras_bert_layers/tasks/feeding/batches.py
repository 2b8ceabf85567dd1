"""`Batches`: batches of ids and labels, of any kind of data, for training, validation, evaluation and single steps."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, final

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Columns, Labels, Rows
from keras_bert_layers.preprocessing.preprocessors.long_texts import Windows
from keras_bert_layers.tasks.feeding.columns import (
    as_array,
    as_tensor,
    is_dataset,
    num_rows,
    refuse_beside_dataset,
    split_rows,
)
from keras_bert_layers.tasks.feeding.cut_texts import look_for_cuts, token_counts
from keras_bert_layers.tasks.feeding.epochs import Epochs, batches_of_rows
from keras_bert_layers.tasks.feeding.global_batches import are_cut_early, cut_and_encoded
from keras_bert_layers.tasks.feeding.kind_of_data import BatchMaker, KindOfData, Parts
from keras_bert_layers.tasks.feeding.streams import BatchStream, as_dataset, from_table, is_table


@final
class Batches:
    """Batches of ids and labels of one kind of data; called, it gives those of `fit` and `evaluate`.

    It checks all rows, puts them into batches in an order of `RowOrder`, and maps what encodes them in graph. The
    functions that it traces are kept until `forget`.

    Args:
        data: the kind of data.
    """

    def __init__(self, data: KindOfData):
        self._data = data
        self._traced: dict[Callable[..., Any], Callable[..., Any]] = {}
        #: The error of a batch that a generator or a `PyDataset` gave; TensorFlow's own has its text only.
        self.stream_error: Exception | None = None

    def __call__(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        batch_size: int | None = None,
        epochs: Epochs | None = None,
    ) -> tf.data.Dataset:
        """A dataset of what `maker` makes for some epochs of training, or for evaluation if `epochs` is None."""
        return self.maker(x, y, sample_weight, batch_size=batch_size)(epochs).prefetch(tf.data.AUTOTUNE)

    def maker(self, x: Any, y: Any = None, sample_weight: Any = None, *, batch_size: int | None = None) -> BatchMaker:
        """What makes a dataset of encoded batches of checked rows.

        Args:
            x: columns, or a dataset.
            y: labels; None beside a dataset.
            sample_weight: one number per row; None beside a dataset.
            batch_size: rows per batch, 32 if None; None beside a dataset.
        """
        if is_dataset(x):
            refuse_beside_dataset(self._data.owner, y=y, sample_weight=sample_weight, batch_size=batch_size)
            self._data.check_dataset(x)
            rows = x if isinstance(x.element_spec, tuple) else x.map(lambda text: (text,))
            return functools.partial(self._data.encoded, rows)
        return self._data.batches_of(x, y, sample_weight, batch_size=batch_size)

    def of_rows(self, rows: Parts, *, batch_size: int | None) -> BatchMaker:
        """What makes encoded batches of checked rows, for most kinds of data."""
        look_for_cuts(self._data, rows[0])
        parts = tf.nest.map_structure(as_tensor, rows)

        def make(epochs: Epochs | None) -> tf.data.Dataset:
            batches = batches_of_rows(parts, batch_size=batch_size or 32, lengths=self.lengths, epochs=epochs)
            return self._data.encoded(batches, epochs)

        return make

    def encoded(self, rows: tf.data.Dataset, *, training: bool) -> tf.data.Dataset:
        """A dataset of checked batches `(x, y, sample_weight)`, encoded; what `encoded` of most kinds of data gives."""
        encode = self.traced(self._data.encoder(training=training))
        whole = self._data.before_cut(rows.element_spec[0]) if are_cut_early() else None
        if whole is None:
            return rows.map(encode, num_parallel_calls=tf.data.AUTOTUNE)
        return rows.map(lambda *batch: cut_and_encoded(encode, *whole(*batch)), num_parallel_calls=tf.data.AUTOTUNE)

    def one(self, x: Rows, y: Any = None, sample_weight: Any = None, *, training: bool = True) -> tuple[Any, Any, Any]:
        """All rows as one encoded batch of NumPy arrays, `(ids, labels, weights)`."""
        rows = tf.nest.map_structure(as_tensor, self.checked(x, y, sample_weight))
        batch = keras.tree.map_structure(np.asarray, self._data.encoder(training=training)(*rows))
        return keras.utils.unpack_x_y_sample_weight(batch)

    def validation(self, data: Rows, batch_size: int | None) -> Any:
        """Keras's `validation_data` with raw text encoded."""
        owner, data = self._data.owner, self._data.table(data)
        if BatchStream.takes(data):
            data, is_raw = as_dataset(self._data, data)
            return self(data) if is_raw else data
        if is_table(data):
            data = from_table(self._data, data)
        if is_dataset(data):
            data, _ = from_table(self._data, data)
            return self(data) if self._data.is_raw(data) else data
        if not isinstance(data, tuple) and self._data.makes_labels(data):
            data = (data,)
        rule = "be `(x, y)` or `(x, y, sample_weight)`"
        is_rows = isinstance(data, tuple | list) and 1 <= len(data) <= 3
        if not is_rows or any(isinstance(part, str | bytes) for part in data):
            raise ValueError(checks.message(owner, "validation_data", rule, checks.Shown(type(data).__name__)))
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(tuple(data))
        x, y = from_table(self._data, x, y)
        if not self._data.is_raw(x):
            return data
        if y is None and not self._data.makes_labels(x):
            raise ValueError(checks.message(owner, "validation_data", rule, checks.Shown("no labels")))
        return self(x, y, sample_weight, batch_size=batch_size)

    def split(self, x: Rows, y: Labels, sample_weight: Labels, share: float) -> tuple[Parts, Parts]:
        """`(x, y, sample_weight)` of the first rows, and of the `share` of rows at the end; None stays None."""
        owner = self._data.owner
        if is_dataset(x):
            raise ValueError(f"`{owner}`: `validation_split` must be 0 for a dataset. Give `validation_data`.")
        return split_rows(owner, share, *self.raw_rows(x, y, sample_weight))

    def checked(self, x: Rows, y: Labels, sample_weight: Any) -> tuple[Any, Any, Any]:
        """Columns of at least one row, with as many labels, as the loss takes them, and weights."""
        return self._rows(x, y, sample_weight, self._data.labels)

    def raw_rows(self, x: Rows, y: Labels, sample_weight: Labels) -> tuple[Any, Any, Any]:
        """`checked`, with labels in the form that a `tf.data.Dataset` of raw rows has."""
        return self._rows(x, y, sample_weight, self._data.raw_labels)

    def _rows(self, x: Rows, y: Labels, sample_weight: Any, labels: Callable[[Any, Any], Any]) -> tuple[Any, Any, Any]:
        x, y = from_table(self._data, x, y)
        owner, columns = self._data.owner, self._data.columns(x)
        size = num_rows(columns)
        if not size:
            raise ValueError(checks.message(owner, "x", "hold at least one row", x))
        y = None if y is None else labels(columns, y)
        weights = None if sample_weight is None else as_array(sample_weight)
        for name, values in (("y", y), ("sample_weight", weights)):
            if values is not None and num_rows(values) != size:
                received = f"{size} texts and {num_rows(values)} rows of {name}"
                raise ValueError(checks.row_message(owner, f"`{name}` must have one row for each text", received))
        if weights is not None and self._data.one_weight_per_row:
            weights = np.asarray(weights, np.float32)
            if weights.ndim != 1:
                rule = f"hold one number for each of the {len(weights)} rows"
                raise ValueError(checks.message(owner, "sample_weight", rule, f"shape {weights.shape}"))
        return columns, y, weights

    def lengths(self, x: Columns, *_: Any) -> tf.Tensor:
        """How many tokens each row of a batch has for the model, int64 `(rows,)`, in graph."""
        preprocessor = self._data.preprocessor
        beside = self._data.columns_beside
        counts = token_counts(preprocessor.tokenizer, x[:-beside] if beside else x)
        return counts if isinstance(self._data.long_texts, Windows) else tf.minimum(counts, preprocessor.max_length)

    def traced(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A method as a `tf.function`, traced once for all datasets until `forget`."""
        if function not in self._traced:
            self._traced[function] = tf.function(function, autograph=False)
        return self._traced[function]

    def forget(self) -> None:
        """Drops the traced functions; called by whatever changes what they hold as constants."""
        self._traced.clear()
