"""Raw text through Keras's own entry points: `fit`, `evaluate`, `predict` and their single batches."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks import _text_data as text_data
from keras_bert_layers.tasks._row_order import RowOrder, token_counts
from keras_bert_layers.tasks._text_answerer import TextAnswerer
from keras_bert_layers.tasks._text_batches import as_dataset


class TextTask(TextAnswerer):
    """A task whose data are texts.

    With a preprocessor, `fit`, `evaluate` and `predict` take raw text and run the preprocessor on the way, in
    `tf.data`, beside the training step; ids are taken as they are.
    """

    def encode_labels(self, y: Any) -> Any:
        """A column of labels as the numbers that the loss takes; a subclass that takes names looks them up."""
        return y

    def _batches(self, x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, order: RowOrder) -> Any:
        """A dataset of model inputs from columns of text, or from a dataset of text."""
        texts = self._text_batches(x, y, sample_weight, batch_size=batch_size, order=order)
        return texts.map(self.preprocess, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

    def _training_batches(self, x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, order: RowOrder) -> Any:
        """What `fit` trains on; a subclass whose training data differ from those that it is tested on says so here."""
        return self._batches(x, y, sample_weight, batch_size=batch_size, order=order)

    def _text_batches(self, x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, order: RowOrder) -> Any:
        """A dataset of `(text, …)` in batches, checked, from columns of text or from a dataset of text."""
        owner = type(self).__name__
        if text_data.is_dataset(x):
            text_data.check_dataset(owner, x, most=self.most_texts, y=y, sample_weight=sample_weight)
            if not isinstance(x.element_spec, tuple):
                x = x.map(lambda text: (text,))
        else:
            columns = self._columns(x)
            if not text_data.num_rows(columns):
                raise ValueError(checks.message(owner, "x", "hold at least one text", x))
            y = None if y is None else self.encode_labels(text_data.as_array(y))
            lengths = self._row_lengths
            x = as_dataset(owner, columns, y, sample_weight, batch_size=batch_size, order=order, lengths=lengths)
        return x

    def _row_lengths(self, x: Any, *_: Any) -> Any:
        """How long the rows of a batch are to the model, in graph; what is cut off does not count."""
        return tf.minimum(token_counts(self.preprocessor.tokenizer, x), self.preprocessor.max_length)

    def _one_batch(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, Any, Any]:
        """One batch of text, with labels and weights, as arrays for the model; ids as they are."""
        if not self._needs_preprocessing(x):
            return x, y, sample_weight
        columns = self._columns(x)
        if y is not None:
            y = tf.convert_to_tensor(self.encode_labels(text_data.as_array(y)))
        batch = keras.tree.map_structure(np.asarray, self.preprocess(columns, y, sample_weight))
        return keras.utils.unpack_x_y_sample_weight(batch)

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        *,
        sample_weight: Any = None,
        validation_data: Any = None,
        validation_split: float = 0.0,
        shuffle: bool = True,
        group_by_length: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Trains, as `keras.Model.fit`.

        Args:
            x: with a preprocessor, a list, array or tensor of strings `(rows,)`; a tuple of two of them for pairs; or
                a batched `tf.data.Dataset` of `(text, y)`. Without one, or if it holds `"token_ids"`, what Keras takes.
            y: one label a text; None if `x` is a dataset.
            batch_size: texts a step, 32 if None; not for a dataset.
            sample_weight: one number a text.
            validation_data: `(x, y)`, `(x, y, sample_weight)` or a dataset, like the above.
            validation_split: the share of the last rows to validate on, in [0, 1); not looked at where there is
                `validation_data`.
            shuffle: whether every epoch has its own order.
            group_by_length: whether texts of about one length are trained on together, which takes less padding: the
                shuffled texts of 50 steps are sorted and cut into batches, and these shuffled again. Not for a dataset.
            **kwargs: what else `keras.Model.fit` takes.

        Returns:
            Keras's `History`.

        Raises:
            TypeError, ValueError: text that is not strings (the row is named), no text, lengths that differ, a
                generator or a `PyDataset` where there is a preprocessor.
        """
        if not self._needs_preprocessing(x):
            if group_by_length:
                rule = "be False for ids"
                raise ValueError(checks.message(type(self).__name__, "group_by_length", rule, group_by_length))
            return super().fit(
                x,
                y,
                batch_size=batch_size,
                sample_weight=sample_weight,
                validation_data=validation_data,
                validation_split=validation_split,
                shuffle=shuffle,
                **kwargs,
            )
        order = self._training_order(x, shuffle, group_by_length)
        if validation_split and validation_data is None:
            x, y, sample_weight, validation_data = self._split(x, y, sample_weight, validation_split)
        if validation_data is not None:
            validation_data = self._validation_batches(validation_data, kwargs.get("validation_batch_size", batch_size))
        batches = self._training_batches(x, y, sample_weight, batch_size=batch_size, order=order)
        self._require_labels(x, y)
        # The dataset shuffles itself; Keras warns if it is asked to.
        return super().fit(batches, validation_data=validation_data, shuffle=False, **kwargs)

    def evaluate(
        self, x: Any = None, y: Any = None, batch_size: int | None = None, *, sample_weight: Any = None, **kwargs: Any
    ) -> Any:
        """Loss and metrics, as `keras.Model.evaluate`; `x`, `y` and `sample_weight` as in `fit`."""
        if not self._needs_preprocessing(x):
            return super().evaluate(x, y, batch_size=batch_size, sample_weight=sample_weight, **kwargs)
        batches = self._batches(x, y, sample_weight, batch_size=batch_size, order=RowOrder.AS_GIVEN)
        self._require_labels(x, y)
        return super().evaluate(batches, **kwargs)

    def train_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, **kwargs: Any) -> Any:
        """One step on one batch, as `keras.Model.train_on_batch`; lists or arrays of text, or ids."""
        return super().train_on_batch(*self._one_batch(x, y, sample_weight), **kwargs)

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, **kwargs: Any) -> Any:
        """Loss and metrics of one batch, as `keras.Model.test_on_batch`; `x` as in `train_on_batch`."""
        return super().test_on_batch(*self._one_batch(x, y, sample_weight), **kwargs)

    def _training_order(self, x: Any, shuffle: bool, group_by_length: bool) -> RowOrder:
        """How `fit` orders its rows."""
        owner = type(self).__name__
        if not checks.boolean(owner, "group_by_length", group_by_length):
            return RowOrder.SHUFFLED if shuffle else RowOrder.AS_GIVEN
        rule = None
        if text_data.is_dataset(x):
            rule = "be False for a dataset, which comes in batches"
        elif not shuffle:
            rule = "be False where `shuffle` is False"
        if rule is not None:
            raise ValueError(checks.message(owner, "group_by_length", rule, group_by_length))
        return RowOrder.BY_LENGTH

    def _require_labels(self, x: Any, y: Any) -> None:
        if y is None and self.loss is not None and not text_data.is_dataset(x):
            raise ValueError(checks.message(type(self).__name__, "y", "hold one label for each text", y))

    def _validation_batches(self, validation_data: Any, batch_size: int | None) -> Any:
        if text_data.is_dataset(validation_data):
            if not self._needs_preprocessing(validation_data):
                return validation_data
            return self._batches(validation_data, None, None, batch_size=None, order=RowOrder.AS_GIVEN)
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(validation_data)
        if not self._needs_preprocessing(x):
            return validation_data
        return self._batches(x, y, sample_weight, batch_size=batch_size, order=RowOrder.AS_GIVEN)

    def _split(self, x: Any, y: Any, sample_weight: Any, share: float) -> tuple[Any, Any, Any, tuple[Any, ...]]:
        """The first rows to train on and the last rows to validate on."""
        owner = type(self).__name__
        if text_data.is_dataset(x):
            raise ValueError(f"`{owner}`: `validation_split` must be 0 for a dataset. Give `validation_data`.")
        first, last = text_data.split_rows(owner, share, self._columns(x), y, sample_weight)
        return first[0], first[1], first[2], tuple(last)
