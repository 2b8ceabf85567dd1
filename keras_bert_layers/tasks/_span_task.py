"""Questions and contexts through Keras's own entry points: rows in, steps of windows out."""

from __future__ import annotations

import itertools
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.layers.span_head import MASKED_LOGIT
from keras_bert_layers.preprocessing import SpanPreprocessor
from keras_bert_layers.preprocessing.bert_preprocessor import padded_width
from keras_bert_layers.tasks import _span_data as span_data
from keras_bert_layers.tasks import _text_data as text_data
from keras_bert_layers.tasks._length_batches import IDS, LengthBatches, on_host
from keras_bert_layers.tasks._row_order import RowOrder
from keras_bert_layers.tasks._span_data import END, START
from keras_bert_layers.tasks._text_batches import as_dataset
from keras_bert_layers.tasks._text_task import TextTask

BATCH_SIZE = 32
COUNTED_AT_ONCE = 1024


class SpanTask(TextTask):
    """A task whose rows are questions and contexts, and whose steps are windows of them."""

    preprocessor_class = SpanPreprocessor
    fill_value = MASKED_LOGIT
    reads_pooled_output = False

    def preprocess(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, ...]:
        """One batch of text, with the bytes of its answers, as windows; runs inside `tf.data.Dataset.map`."""
        return self._as_windows(self._stream_preprocessor(), x, y, sample_weight)

    def _as_windows(self, preprocessor: Any, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, ...]:
        windows = preprocessor(x)
        labels = None if y is None else span_data.window_labels(windows, y)
        weights = None if sample_weight is None else tf.gather(sample_weight, windows["rows"])
        ids = {name: windows[name] for name in IDS}
        return tuple(part for part in (ids, labels, weights) if part is not None)

    def _batches(self, x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, order: RowOrder) -> Any:
        """A dataset of steps of windows, from columns of text, or from a dataset of text."""
        if text_data.is_dataset(x):
            rows = self._spans_in_graph(x, y, sample_weight)
            return rows.map(self.preprocess, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
        owner = type(self).__name__
        columns = self._columns(x)
        if not text_data.num_rows(columns):
            raise ValueError(checks.message(owner, "x", "hold at least one question", x))
        spans = None if y is None else span_data.checked_byte_spans(owner, columns[1], y)
        batch_size = batch_size or BATCH_SIZE
        # By length go the windows, later.
        rows_order = RowOrder.SHUFFLED if order.is_shuffled else order
        rows = as_dataset(
            owner,
            columns,
            spans,
            sample_weight,
            batch_size=batch_size,
            order=rows_order,
            lengths=self._row_lengths,
        )
        made = self.preprocessor
        wide = SpanPreprocessor(made.tokenizer, made.max_length, stride=made.stride, padding="max_length")
        windows = rows.map(lambda *parts: self._as_windows(wide, *parts), num_parallel_calls=tf.data.AUTOTUNE)
        width = self._width(self._stream_preprocessor().padding)

        def trim(ids: dict[str, Any], *others: Any) -> tuple[Any, ...]:
            needed = width(tf.reduce_sum(ids["padding_mask"], axis=1))
            return {name: tensor[:, :needed] for name, tensor in ids.items()}, *others

        steps = span_data.as_steps(windows, batch_size, order=order, trim=trim)
        # Keras warns of data that end where nothing said so.
        return steps.apply(tf.data.experimental.assert_cardinality(-(-self._num_windows(columns) // batch_size)))

    def _num_windows(self, columns: tuple[Any, Any]) -> int:
        """How many windows all rows have together."""
        starts = range(0, len(columns[0]), COUNTED_AT_ONCE)
        parts = [tuple(column[start : start + COUNTED_AT_ONCE] for column in columns) for start in starts]
        return sum(int(tf.reduce_sum(self.preprocessor.num_windows(part))) for part in parts)

    def _spans_in_graph(self, dataset: Any, y: Any, sample_weight: Any) -> Any:
        """A dataset with answers as bytes, from one with answers in characters."""
        owner = type(self).__name__
        text_data.refuse_beside_dataset(owner, y=y, sample_weight=sample_weight)
        self._check_dataset(dataset)

        def in_bytes(texts: Any, y: Any = None, *weights: Any) -> tuple[Any, ...]:
            spans = () if y is None else (span_data.asserted_byte_spans(owner, texts[1], y),)
            return texts, *spans, *weights

        return dataset.map(in_bytes, num_parallel_calls=tf.data.AUTOTUNE)

    def _check_dataset(self, dataset: Any) -> None:
        super()._check_dataset(dataset)
        if not text_data.is_pair(dataset):
            rule = "yield `((questions, contexts),)` or `((questions, contexts), (starts, texts))`"
            raise ValueError(checks.message(type(self).__name__, "x", rule, dataset.element_spec))

    def _width(self, padding: str) -> Any:
        """A function from the lengths of some windows to the number of places that they get."""
        return lambda lengths: padded_width(lengths, padding=padding, max_length=self.preprocessor.max_length)

    def _columns(self, x: Any, *, first_row: int = 0) -> Any:
        """Questions and contexts, checked row by row."""
        owner = type(self).__name__
        if not isinstance(x, tuple):
            rule = "be a tuple of two columns, (questions, contexts)"
            raise ValueError(checks.message(owner, "x", rule, type(x)))
        questions, contexts = super()._columns(x, first_row=first_row)
        # Here, before hours of training, and with the row; in graph the preprocessor says the same.
        lengths = self.preprocessor.tokenizer.tokenize(questions).row_lengths().numpy()
        if len(lengths) and lengths.max() > self.preprocessor.max_question_length:
            row = int(lengths.argmax())
            raise ValueError(
                f"{self.preprocessor.question_rule()} "
                f"Received: {lengths[row]} tokens in row {first_row + row}, {questions[row][: span_data.SHOWN]!r}."
            )
        return questions, contexts

    def _one_batch(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, Any, Any]:
        """All windows of one batch of rows, with labels and weights, as arrays; ids as they are."""
        if not self._needs_preprocessing(x):
            return x, y, sample_weight
        columns = self._columns(x)
        spans = None if y is None else span_data.checked_byte_spans(type(self).__name__, columns[1], y)
        batch = keras.tree.map_structure(np.asarray, self.preprocess(columns, spans, sample_weight))
        return keras.utils.unpack_x_y_sample_weight(batch)

    def _split(self, x: Any, y: Any, sample_weight: Any, share: float) -> tuple[Any, Any, Any, tuple[Any, ...]]:
        """The first rows to train on and the last rows to validate on."""
        y = None if y is None else span_data.answer_columns(type(self).__name__, y)
        return super()._split(x, y, sample_weight, share)

    def predict(self, x: Any, *args: Any, **kwargs: Any) -> dict[str, np.ndarray]:
        """The logits of every window of `x`, one row a window; `answer` makes answers of them.

        Args:
            x: a tuple `(questions, contexts)`, a dataset of batches of such, or an iterable that gives one such tuple
                of two texts at a time.
            *args: as of all tasks; a row of a step is a window.
            **kwargs: as of all tasks.

        Returns:
            `"start_logits"` and `"end_logits"`, float32 `(windows, sequence)`, as wide as the longest window.
            `predict_stream` gives for each question those of its own windows.
        """
        return super().predict(x, *args, **kwargs)

    def _block_outputs(self, columns: Any, batches: LengthBatches) -> dict[str, np.ndarray]:
        return self._window_logits(columns, batches)[0]

    def _stream_outputs(self, columns: Any, batches: LengthBatches) -> list[dict[str, np.ndarray]]:
        logits, rows = self._window_logits(columns, batches)
        borders = np.searchsorted(rows, np.arange(len(columns[0]) + 1))
        return [
            {side: values[start:end] for side, values in logits.items()} for start, end in itertools.pairwise(borders)
        ]

    def _window_logits(self, columns: Any, batches: LengthBatches) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The logits of the windows of a block, and the row that each belongs to."""
        preprocessor = self._stream_preprocessor()
        windows = on_host(preprocessor, columns)
        logits = batches.run(self._compiled_step(), windows, preprocessor, fill=MASKED_LOGIT)
        return logits, windows["rows"].numpy()

    def _no_outputs(self, x: Any) -> dict[str, np.ndarray]:
        return {side: np.zeros((0, 0), np.float32) for side in (START, END)}
