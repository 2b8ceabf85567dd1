"""`Inputs`: the protocol of all kinds of data, with the behaviour that most of them share."""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.shared_graphs import traced_once
from keras_bert_layers.preprocessing.preprocessors.long_texts import WINDOW_ROWS, Windows, by_text
from keras_bert_layers.tasks.feeding.columns import (
    as_array,
    as_columns,
    as_tensor,
    check_text_dataset,
    has_key,
    holds_text,
    is_dataset,
    num_rows,
    on_host,
    refuse_beside_dataset,
    split_rows,
    stacked,
    without_none,
)
from keras_bert_layers.tasks.feeding.cut_texts import CutTexts, token_counts
from keras_bert_layers.tasks.feeding.epochs import Epochs, batches_of_rows
from keras_bert_layers.tasks.feeding.global_batches import are_cut_early, cut_and_encoded
from keras_bert_layers.tasks.feeding.streams import BatchStream, as_dataset, columns_of_table, is_table

#: Shape and dtype of one string per row, as signatures of exported models have them.
TEXT = ((None,), "string")


class Inputs:
    """One kind of data: turns what a user holds into batches of ids and labels, and outputs into rows again.

    A task has one of these. The protocol is this class's public methods; by default, they serve texts and tuples of
    texts with labels that need no encoding. A subclass overrides what differs. Inputs know nothing of heads, losses and
    models: a model is the function `run` that `outputs` gets.

    The way of texts through `fit`: `from_table` takes columns out of a table; `batches` checks all rows (`columns` and
    `labels`), puts them into batches in an order of `RowOrder`, and maps `encode`, which makes ids in graph.

    Args:
        owner: the task's class, for errors.
        preprocessor: turns text into ids; None for a task that takes ids only.
        most_texts: the most columns of text that a row may have.
        part: the part of the model that computes the outputs; None for the whole model.
        prompt: a string put before every text; before the first one of a pair.
    """

    #: Fills an array of outputs where a row is narrower than the widest.
    fill_value: float = 0.0
    #: How many rows `predict` sorts by length at a time.
    block_rows = 4096
    #: The most characters that are sorted by length at a time.
    block_characters = 16 * 2**20
    #: The rule for texts that are longer than the preprocessor's `max_length`, `HeadTail` or `Windows`; None cuts them.
    long_texts: Any = None
    #: How many tokens a step of `predict` has by default; None for a number that suits the device.
    tokens_per_step: int | None = None

    def __init__(
        self, owner: str, preprocessor: Any, *, most_texts: int = 2, part: str | None = None, prompt: str = ""
    ):
        self.owner = owner
        self.preprocessor = preprocessor
        self.most_texts = most_texts
        self.part = part
        self.prompt = prompt
        self.cuts = CutTexts(owner)
        self.stream_error: Exception | None = None  # of a batch that a generator or a `PyDataset` gave

    @property
    def preprocessor(self) -> Any:
        """Turns text into ids."""
        return self._preprocessor

    @preprocessor.setter
    def preprocessor(self, preprocessor: Any) -> None:
        self._preprocessor = preprocessor
        self._made: dict[Any, Any] = {}
        self.forget_traces()

    def forget_traces(self) -> None:
        """Drops the traced functions; called by whatever changes what they hold as constants."""
        self._traced: dict[Any, Any] = {}

    def traced(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A method as a `tf.function`, traced once for all datasets until `forget_traces`."""
        if function not in self._traced:
            self._traced[function] = tf.function(function, autograph=False)
        return self._traced[function]

    def made_once(self, make: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """`make(*arguments, **options)`, made at the first call, until the preprocessor is replaced."""
        key = make, arguments, *options.items()
        if key not in self._made:
            self._made[key] = make(*arguments, **options)
        return self._made[key]

    def bucketed(self, preprocessor: Any = None) -> Any:
        """The preprocessor, or another one; on JAX, which compiles each length, one that pads to few lengths."""
        preprocessor = self.preprocessor if preprocessor is None else preprocessor
        if keras.backend.backend() != "jax" or preprocessor.padding != "longest":
            return preprocessor
        return self.made_once(_with_buckets, preprocessor)

    def reader(self, preprocessor: Any) -> Callable[[Any], dict[str, Any]]:
        """What makes ids of texts: a preprocessor, or the rule for long texts with it."""
        if self.long_texts is None:
            return preprocessor
        return self.made_once(functools.partial, self.long_texts, preprocessor)

    def prompted(self, prompt: str) -> Inputs:
        """The same kind of data with another prompt."""
        other = copy.copy(self)
        other.prompt = prompt
        other.forget_traces()
        return other

    def _with_prompt(self, texts: Any) -> Any:
        """Texts, or a tuple of columns of texts, with the prompt before each (first) one; in graph."""
        if not self.prompt:
            return texts
        if isinstance(texts, tuple):
            return (self._with_prompt(texts[0]), *(tf.convert_to_tensor(column) for column in texts[1:]))
        return tf.strings.join([self.prompt, texts])

    # What a user holds: is it text, and is it right?

    @property
    def text_inputs(self) -> Mapping[str, tuple[tuple[int | None, ...], str]]:
        """The string inputs of the exported model: name -> `(shape, dtype)`."""
        return {"text": TEXT}

    @property
    def column_names(self) -> list[str]:
        """The columns of a table of the library `datasets` that hold the texts."""
        return list(self.text_inputs)

    def from_table(self, x: Any, y: Any = None) -> tuple[Any, Any]:
        """Texts and labels of a table of the library `datasets` as columns; anything else unchanged."""
        if self.preprocessor is None or not is_table(x):
            return x, y
        return columns_of_table(self.owner, x, self.column_names, y)

    def is_raw(self, x: Any) -> bool:
        """Whether `x` needs the preprocessor; ValueError for text where there is none."""
        if self.preprocessor is None and holds_text(x):
            cure = "Make the task with `preprocessor=BertPreprocessor(tokenizer)`, or give it token ids."
            raise ValueError(checks.message(self.owner, "preprocessor", "be given for raw text", None, cure))
        return self.preprocessor is not None and x is not None and not self.holds_ids(x)

    def holds_ids(self, x: Any) -> bool:
        """Whether `x` is, or yields, the model's own inputs."""
        return has_key(x, "token_ids")

    def is_packed(self, x: Any) -> bool:
        """Whether `x` gives packed rows, each with several texts, which the backbone reads in another mode."""
        return False

    def columns(self, x: Any, *, first_row: int = 0) -> Any:
        """`x` as checked columns; errors count rows from `first_row`."""
        return as_columns(self.owner, x, most=self.most_texts, first_row=first_row)

    def labels(self, columns: Any, y: Any) -> Any:
        """Labels as the loss takes them, checked row by row; labels that this has returned stay unchanged."""
        return as_array(y)

    def makes_labels(self, x: Any) -> bool:
        """Whether labels are made from `x` itself, so that `y` may be None."""
        return False

    def check_labels(self, x: Any, y: Any) -> None:
        """Refuses rows without the labels that training needs; ValueError."""
        if y is None and not is_dataset(x) and not self.makes_labels(x):
            raise ValueError(checks.message(self.owner, "y", "hold one label for each text", y))

    def class_weight(self, x: Any, class_weight: Mapping[Any, float]) -> Mapping[Any, float]:
        """`class_weight` as Keras takes it: a number for each class index."""
        return class_weight

    def checked(self, x: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """Columns of at least one row, with as many labels and weights."""
        columns = self.columns(x)
        size = num_rows(columns)
        if not size:
            raise ValueError(checks.message(self.owner, "x", "hold at least one row", x))
        y = None if y is None else self.labels(columns, y)
        weights = None if sample_weight is None else as_array(sample_weight)
        for name, values in (("y", y), ("sample_weight", weights)):
            if values is not None and num_rows(values) != size:
                received = f"{size} texts and {num_rows(values)} rows of {name}"
                raise ValueError(checks.row_message(self.owner, f"`{name}` must have one row for each text", received))
        return columns, y, weights

    def dataset_rows(self, x: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """`checked`, in the form that a `tf.data.Dataset` has."""
        return self.checked(x, y, sample_weight)

    def check_dataset(self, dataset: Any) -> None:
        """Refuses a `tf.data.Dataset` that does not yield batches of this kind of data; ValueError."""
        check_text_dataset(self.owner, dataset, most=self.most_texts)

    def look_for_cuts(self, columns: Any) -> None:
        """Warns, once, if texts are longer than the model reads."""
        texts = None if self.long_texts is not None else self.read_together(columns)
        if all(isinstance(column, np.ndarray) for column in (texts if isinstance(texts, tuple) else (texts,))):
            self.cuts.look(self.preprocessor, texts, self.prompt)

    def read_together(self, columns: Any) -> Any:
        """Texts, or pairs of texts, in arrays, each of which is one sequence; None if long ones are not cut."""
        return columns

    # Batches of ids and labels.

    def split(self, x: Any, y: Any, sample_weight: Any, share: float) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """`(x, y, sample_weight)` of the first rows, and of the `share` of rows at the end; None stays None."""
        if is_dataset(x):
            raise ValueError(f"`{self.owner}`: `validation_split` must be 0 for a dataset. Give `validation_data`.")
        return split_rows(self.owner, share, *self.checked(x, y, sample_weight))

    def fitting(self, x: Any) -> AbstractContextManager[None]:
        """The context in which `fit` trains on `x`."""
        return nullcontext()

    def batches(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        batch_size: int | None = None,
        epochs: Epochs | None = None,
    ) -> tf.data.Dataset:
        """A dataset of encoded batches, from columns or from a dataset of batches.

        Args:
            x: columns, or a dataset.
            y: labels; None beside a dataset.
            sample_weight: one number per row; None beside a dataset.
            batch_size: rows per batch, 32 if None; None beside a dataset.
            epochs: the epochs of training, which differ in their order and other random choices; None for evaluation.
        """
        if is_dataset(x):
            refuse_beside_dataset(self.owner, y=y, sample_weight=sample_weight, batch_size=batch_size)
            self.check_dataset(x)
            rows = x if isinstance(x.element_spec, tuple) else x.map(lambda text: (text,))
            batches = self.encoded(rows, epochs)
        else:
            batches = self.batches_of(x, y, sample_weight, batch_size=batch_size, epochs=epochs)
        return batches.prefetch(tf.data.AUTOTUNE)

    def batches_of(
        self, x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, epochs: Epochs | None
    ) -> tf.data.Dataset:
        """`batches` from anything but a dataset."""
        rows = self.checked(x, y, sample_weight)
        self.look_for_cuts(rows[0])
        batches = batches_of_rows(rows, batch_size=batch_size or 32, lengths=self.lengths, epochs=epochs)
        return self.encoded(batches, epochs)

    def lengths(self, x: Any, *_: Any) -> Any:
        """How many tokens each row of a batch has for the model, int64 `(rows,)`, in graph."""
        counts = token_counts(self.preprocessor.tokenizer, x)
        return counts if isinstance(self.long_texts, Windows) else tf.minimum(counts, self.preprocessor.max_length)

    def encoded(self, rows: tf.data.Dataset, epochs: Epochs | None) -> tf.data.Dataset:
        """A dataset of checked batches `(x, y, sample_weight)`, encoded."""
        encode = self.of_own_rows(self.traced(self._encode_for(epochs is not None)), rows.element_spec[0])
        return rows.map(lambda *batch: encode(*self.of_whole(*batch)), num_parallel_calls=tf.data.AUTOTUNE)

    def of_own_rows(self, encode: Callable[..., tuple[Any, ...]], x: Any) -> Callable[..., tuple[Any, ...]]:
        """`encode` of whole batches; of this process's rows where these alone say what their ids are."""
        return functools.partial(cut_and_encoded, encode) if are_cut_early() and self.has_rows_apart(x) else encode

    def has_rows_apart(self, x: Any) -> bool:
        """Whether a row's ids follow from the row alone, their width included, for batches of these specs of `x`."""
        return self.bucketed().padding == "max_length" and not isinstance(self.long_texts, Windows)

    def of_whole(self, *batch: Any) -> tuple[Any, ...]:
        """What `encode` needs of a batch of which it may get some rows; it takes the result in place of the batch."""
        return batch

    def _encode_for(self, training: bool) -> Callable[..., tuple[Any, ...]]:
        """`encode`, for training or for evaluation."""
        if not isinstance(self.long_texts, Windows):
            return self.encode
        most = self.long_texts.max_windows if training else None
        return self.made_once(functools.partial, self._encode_by_text, most)

    def _encode_by_text(self, most: int | None, *batch: Any) -> tuple[Any, ...]:
        """`encode`, with at most so many windows of a text, on an axis of their own."""
        ids, *others = self.encode(*batch)
        return by_text(ids, most), *others

    def encode(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, ...]:
        """One batch of `(ids, labels, weights)`, in graph; what is None at the end is left out.

        Under `Windows`, the ids are all windows, one after the other, and `fit` gives them an axis of their own.
        """
        return without_none(self.reader(self.bucketed())(self._with_prompt(x)), y, sample_weight)

    def one_batch(self, x: Any, y: Any = None, sample_weight: Any = None, *, training: bool = True) -> tuple[Any, ...]:
        """All rows as one encoded batch of NumPy arrays, `(ids, labels, weights)`."""
        rows = tf.nest.map_structure(as_tensor, self.checked(x, y, sample_weight))
        batch = keras.tree.map_structure(np.asarray, self._encode_for(training)(*rows))
        return keras.utils.unpack_x_y_sample_weight(batch)

    def validation(self, data: Any, batch_size: int | None) -> Any:
        """Keras's `validation_data` with raw text encoded."""
        if BatchStream.takes(data):
            data, is_raw = as_dataset(self, data)
            return self.batches(data) if is_raw else data
        if is_table(data):
            data = self.from_table(data)
        if is_dataset(data):
            return self.batches(data) if self.is_raw(data) else data
        if not isinstance(data, tuple) and self.makes_labels(data):
            data = (data,)
        rule, is_pair = "be `(x, y)` or `(x, y, sample_weight)`", isinstance(data, tuple | list) and 1 <= len(data) <= 3
        if not is_pair or any(isinstance(part, str | bytes) for part in data):
            raise ValueError(checks.message(self.owner, "validation_data", rule, checks.Shown(type(data).__name__)))
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(tuple(data))
        if not self.is_raw(x):
            return data
        if y is None and not self.makes_labels(x):
            raise ValueError(checks.message(self.owner, "validation_data", rule, checks.Shown("no labels")))
        return self.batches(x, y, sample_weight, batch_size=batch_size)

    # Outputs, and rows again.

    def outputs(self, columns: Any, run: Callable[..., Any]) -> Any:
        """The outputs of a block of rows, in their order.

        Args:
            columns: what `columns` returned.
            run: gives the model's outputs as NumPy arrays; see `LengthBatches.run`.
        """
        ids = on_host(lambda rows: self.encode(rows)[0], columns)
        return run(ids, self.bucketed(), fill=self.fill_value, part=self.part)

    def join(self, blocks: list[Any]) -> Any:
        """What `predict` returns, from the outputs of one or more blocks."""
        return keras.tree.map_structure(lambda *parts: stacked(parts, self.fill_value), *blocks)

    def rows(self, outputs: Any) -> Iterator[Any]:
        """What `predict_stream` yields for each row of a block."""
        if isinstance(outputs, np.ndarray | list):
            return iter(outputs)
        size = len(keras.tree.flatten(outputs)[0])
        return (keras.tree.map_structure(operator.itemgetter(row), outputs) for row in range(size))

    def empty(self, x: Any, outputs: Any) -> Any:
        """What `predict` returns for no rows, from the model's outputs without a row."""
        return outputs

    # Ids and strings, in graph and out of it.

    def model_inputs(self, ids: Any) -> Any:
        """The model's inputs for ids that a user gave; under `Windows`, `(batch, sequence)` are single windows."""
        is_texts = isinstance(self.long_texts, Windows) and isinstance(ids, dict) and WINDOW_ROWS not in ids
        if is_texts and "token_ids" in ids and len(ids["token_ids"].shape) == 2:
            return {name: values[:, None] for name, values in ids.items()}
        return ids

    def id_names(self, names: list[str]) -> list[str]:
        """Those of the model's inputs that the exported model asks for."""
        return names

    def answer_columns(self, x: Any) -> list[Any]:
        """A column of strings for each of `text_inputs`, from what a user gives to `answer`."""
        columns = self.columns(x)
        columns = list(columns) if isinstance(columns, tuple) else [columns]
        if len(columns) != len(self.text_inputs):
            rule = f"hold {len(self.text_inputs)} texts per row: {list(self.text_inputs)}"
            raise ValueError(checks.message(self.owner, "x", rule, f"{len(columns)} columns"))
        return columns

    def tokens(self, *texts: Any) -> dict[str, Any]:
        """The ids for a batch of strings, one tensor for each of `text_inputs`, batch first; in graph."""
        return by_text(self.ids(*texts))

    def ids(self, *texts: Any) -> dict[str, Any]:
        """`tokens`, or under `Windows` all windows one after the other, as `Task.run` takes them."""
        return traced_once(self.reader(self.preprocessor), self._with_prompt(texts if len(texts) > 1 else texts[0]))


def _with_buckets(preprocessor: Any) -> Any:
    return type(preprocessor).from_config({**preprocessor.get_config(), "padding": "bucket"})
