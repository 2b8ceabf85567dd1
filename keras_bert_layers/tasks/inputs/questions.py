"""Questions and contexts, read through windows, with the answer to each question."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.shared_graphs import traced_once
from keras_bert_layers._internal.types import Columns, Labels, Rows, Tensor
from keras_bert_layers.config import IDS
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import padded_width
from keras_bert_layers.preprocessing.preprocessors.span_preprocessor import SpanPreprocessor
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.preprocessing.preprocessors.windows import NO_OFFSET
from keras_bert_layers.tasks.feeding.columns import as_tensor, is_pair, on_host, without_none
from keras_bert_layers.tasks.feeding.epochs import Epochs, RowOrder, batches_of_rows, with_num_batches
from keras_bert_layers.tasks.feeding.kind_of_data import BatchMaker, Parts
from keras_bert_layers.tasks.inputs.answer_spans import (
    SHOWN,
    answer_columns,
    as_steps,
    check_byte_spans,
    check_byte_spans_in_graph,
    window_labels,
)
from keras_bert_layers.tasks.inputs.inputs import TEXT, Inputs

COUNTED_AT_ONCE = 1024


class QuestionInputs(Inputs):
    """Questions and contexts, read through windows; a batch is windows, and so is a row of outputs.

    Args:
        owner: the task's class, for errors.
        preprocessor: a `SpanPreprocessor`, or None.
        fill_value: the logit of what is not part of a context.
    """

    text_inputs: Mapping[str, Any] = {"question": TEXT, "context": TEXT}

    def __init__(self, owner: str, preprocessor: TextLayer | None, *, fill_value: float):
        super().__init__(owner, preprocessor)
        self.fill_value = fill_value

    def columns(self, x: Rows, *, first_row: int = 0) -> Any:
        """Questions and contexts, checked row by row."""
        if not isinstance(x, tuple):
            rule = "be a tuple of two columns, (questions, contexts)"
            raise ValueError(checks.message(self.owner, "x", rule, type(x)))
        questions, contexts = super().columns(x, first_row=first_row)
        # Before hours of training, and with the row; in graph the preprocessor raises the same error.
        lengths = self.preprocessor.tokenizer.tokenize(questions).row_lengths().numpy()
        if len(lengths) and lengths.max() > self.preprocessor.max_question_length:
            row = int(lengths.argmax())
            raise ValueError(
                f"{self.preprocessor.question_rule()} Received: {lengths[row]} tokens in row {first_row + row}, "
                f"{questions[row][:SHOWN]!r}."
            )
        return questions, contexts

    def check_dataset(self, dataset: tf.data.Dataset) -> None:
        """Refuses a dataset that does not yield batches of questions and contexts; ValueError."""
        super().check_dataset(dataset)
        if not is_pair(dataset):
            rule = "yield `((questions, contexts),)` or `((questions, contexts), (starts, texts))`"
            raise ValueError(checks.message(self.owner, "x", rule, dataset.element_spec))

    def labels(self, columns: Any, y: Labels) -> Any:
        """The bytes of the answers, int32 `(rows, 2)`, checked row by row."""
        return check_byte_spans(self.owner, columns[1], y)

    def raw_labels(self, columns: Columns, y: Labels) -> Any:
        """The answers' starts in characters, and their texts."""
        return answer_columns(self.owner, y)

    def encode(self, x: Columns, y: Tensor | None = None, sample_weight: Tensor | None = None) -> tuple[Any, ...]:
        """All windows of one batch of rows, with the positions of their answers; `y` holds bytes."""
        return _as_windows(self.bucketed(), x, y, sample_weight)

    def encoded(self, rows: tf.data.Dataset, epochs: Epochs | None) -> tf.data.Dataset:
        """All windows of each batch of a dataset."""
        return rows.map(self.batches.traced(self._encode_characters), num_parallel_calls=tf.data.AUTOTUNE)

    def batches_of(self, x: Rows, y: Labels, sample_weight: Labels, *, batch_size: int | None) -> BatchMaker:
        """What makes steps of `batch_size` windows."""
        rows = self.batches.checked(x, y, sample_weight)
        parts, num_windows = tf.nest.map_structure(as_tensor, rows), self._num_windows(rows[0])
        return functools.partial(self._steps_of, parts, num_windows, batch_size or 32)

    def _steps_of(self, parts: Parts, num_windows: int, batch_size: int, epochs: Epochs | None) -> tf.data.Dataset:
        """A dataset of steps of `batch_size` windows."""
        by_rows = epochs
        if epochs is not None and epochs.order is RowOrder.BY_LENGTH:  # windows are sorted, later, and not rows
            by_rows = dataclasses.replace(epochs, order=RowOrder.SHUFFLED)
        rows = batches_of_rows(parts, batch_size=batch_size, lengths=self.batches.lengths, epochs=by_rows)
        windows = rows.map(self.batches.traced(self._encode_wide), num_parallel_calls=tf.data.AUTOTUNE)
        padding = self.bucketed().padding

        def trim(ids: dict[str, Any], *others: Any) -> tuple[Any, ...]:
            needed = self.width(tf.reduce_sum(ids["padding_mask"], axis=1), padding)
            return {name: tensor[:, :needed] for name, tensor in ids.items()}, *others

        steps = as_steps(windows, batch_size, epochs).map(trim, num_parallel_calls=tf.data.AUTOTUNE)
        return with_num_batches(steps, -(-num_windows // batch_size), epochs)

    def _encode_wide(self, x: Rows, y: Tensor | None = None, sample_weight: Tensor | None = None) -> tuple[Any, ...]:
        """As `encode`, with all windows as wide as `max_length`."""
        made = self.preprocessor
        wide = SpanPreprocessor(made.tokenizer, made.max_length, stride=made.stride, padding="max_length")
        return _as_windows(wide, x, y, sample_weight)

    def _encode_characters(
        self, texts: Tensor, y: Tensor | None = None, sample_weight: Tensor | None = None
    ) -> tuple[Any, ...]:
        """As `encode`, but `y` holds the answers' starts in characters, and their texts."""
        spans = None if y is None else check_byte_spans_in_graph(self.owner, texts[1], y)
        return self.encode(texts, spans, sample_weight)

    def _num_windows(self, columns: tuple[Any, Any]) -> int:
        """The number of windows of all rows together."""
        starts = range(0, len(columns[0]), COUNTED_AT_ONCE)
        parts = [tuple(column[start : start + COUNTED_AT_ONCE] for column in columns) for start in starts]
        return sum(int(tf.reduce_sum(self.preprocessor.num_windows(part))) for part in parts)

    def width(self, lengths: Tensor, padding: str | None = None) -> Any:
        """The width that windows of these lengths are padded to."""
        padding = self.preprocessor.padding if padding is None else padding
        return padded_width(lengths, padding=padding, max_length=self.preprocessor.max_length)

    def read_together(self, columns: Columns) -> None:
        """Long contexts are read through windows."""

    def outputs(self, columns: Any, run: Callable[..., Any]) -> list[dict[str, np.ndarray]]:
        """For each question, the logits of its own windows."""
        preprocessor = self.bucketed()
        windows = on_host(preprocessor, columns)
        logits = run(windows, preprocessor, fill=self.fill_value)
        borders = np.searchsorted(windows["rows"].numpy(), np.arange(len(columns[0]) + 1))
        return [
            {side: values[start:end] for side, values in logits.items()} for start, end in itertools.pairwise(borders)
        ]

    def join(self, blocks: list[Any]) -> dict[str, np.ndarray]:
        """The logits of all windows, one row per window, as wide as the longest."""
        return super().join([row for block in blocks for row in block])

    def tokens(self, *texts: Any) -> dict[str, Any]:
        """The windows of each row, `(batch, windows, sequence)`, padded where a row has fewer windows than another.

        A row whose question is too long has none.
        """
        windows, _ = traced_once(self.preprocessor.windows_that_fit, texts)
        rows = windows.pop("rows")
        padding = {"token_ids": self.preprocessor.tokenizer.pad_id, "starts": NO_OFFSET, "ends": NO_OFFSET}
        num_rows = tf.size(texts[0])
        return {
            name: tf.RaggedTensor.from_value_rowids(tensor, rows, nrows=num_rows).to_tensor(padding.get(name, 0))
            for name, tensor in windows.items()
        }


def _as_windows(
    preprocessor: TextLayer, x: Rows, y: Labels | None = None, sample_weight: Labels | None = None
) -> tuple[Any, ...]:
    windows = preprocessor(x)
    labels = None if y is None else window_labels(windows, y)
    weights = None if sample_weight is None else tf.gather(sample_weight, windows["rows"])
    return without_none({name: windows[name] for name in IDS}, labels, weights)
