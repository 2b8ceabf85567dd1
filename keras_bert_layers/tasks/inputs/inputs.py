"""`Inputs`: the protocol of all kinds of data, with the behaviour that most of them share."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.shared_graphs import traced_once
from keras_bert_layers._internal.types import Columns, Labels, Outputs, Rows, Strings, Tensor
from keras_bert_layers.preprocessing.preprocessors.long_texts import WINDOW_ROWS, Windows, by_text
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.tasks.feeding.batches import Batches
from keras_bert_layers.tasks.feeding.columns import (
    as_array,
    as_columns,
    check_text_dataset,
    has_key,
    holds_text,
    is_dataset,
    on_host,
    stacked,
    without_none,
)
from keras_bert_layers.tasks.feeding.cut_texts import CutTexts
from keras_bert_layers.tasks.feeding.epochs import Epochs
from keras_bert_layers.tasks.feeding.kind_of_data import BatchMaker, Parts

#: Shape and dtype of one string per row, as signatures of exported models have them.
TEXT = ((None,), "string")


class Inputs:
    """One kind of data: turns what a user holds into batches of ids and labels, and outputs into rows again.

    A task has one of these. The protocol is this class's public methods; by default, they serve texts and tuples of
    texts with labels that need no encoding. A subclass overrides what differs. Inputs know nothing of heads, losses and
    models: a model is the function `run` that `outputs` gets.

    `batches`, a `Batches` object, makes batches of it: it checks all rows (`columns` and `labels`), puts them into
    batches in an order of `RowOrder`, and maps `encode`, which makes ids in graph.

    Args:
        owner: the task's class, for errors.
        preprocessor: turns text into ids; None for a task that takes ids only.
        most_texts: the most columns of text that a row may have.
        part: the part of the model that computes the outputs; None for the whole model.
        prompt: a string put before every text; before the first one of a pair.
    """

    #: The columns of a table of the library `datasets` that hold the texts; None for the names of `text_inputs`.
    column_names: Sequence[str] | None = None
    #: The keys by which a dictionary is known as the model's own inputs.
    id_keys: tuple[str, ...] = ("token_ids",)
    #: The model's inputs that `model_inputs` adds to what a preprocessor makes.
    added_inputs: tuple[str, ...] = ()
    #: Whether a row has one sample weight, and not one for each of its parts.
    one_weight_per_row = False
    #: How many columns at the end of a row's are no texts.
    columns_beside = 0
    #: Of what the labels count rows or words of a whole batch, so that no device may get a part: "text", "ids".
    counts_in_batch: tuple[str, ...] = ()
    #: Whether `x` may be a `data.RowSource`.
    takes_row_sources = False
    #: Fills an array of outputs where a row is narrower than the widest.
    fill_value: float = 0.0
    #: Fills the numbers of answers with fewer columns than the widest.
    answer_fill: float = -1
    #: The base class of those of `losses` that the task may have; None for none of them.
    loss_kind: type[keras.losses.Loss] | None = None
    #: The compiled loss, if it is such a one, which then decides what labels are.
    loss: Any = None
    #: How many rows `predict` sorts by length at a time.
    block_rows = 4096
    #: The most characters that are sorted by length at a time.
    block_characters = 16 * 2**20
    #: The rule for texts that are longer than the preprocessor's `max_length`, `HeadTail` or `Windows`; None cuts them.
    long_texts: Any = None
    #: How many tokens a step of `predict` has by default; None for a number that suits the device.
    tokens_per_step: int | None = None

    def __init__(
        self,
        owner: str,
        preprocessor: TextLayer | None,
        *,
        most_texts: int = 2,
        part: str | None = None,
        prompt: str = "",
    ):
        self.owner = owner
        #: Turns text into ids.
        self.preprocessor: Any = preprocessor
        self.most_texts = most_texts
        self.part = part
        self.prompt = prompt
        self.cuts = CutTexts(owner)
        self.batches = Batches(self)
        self._made: dict[Any, Any] = {}

    def made_once(self, make: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """`make(*arguments, **options)`, made at the first call with these arguments."""
        key = make, arguments, *options.items()
        if key not in self._made:
            self._made[key] = make(*arguments, **options)
        return self._made[key]

    def bucketed(self, preprocessor: TextLayer | None = None) -> Any:
        """The preprocessor, or another one; on JAX, which compiles each length, one that pads to few lengths."""
        preprocessor = self.preprocessor if preprocessor is None else preprocessor
        if keras.backend.backend() != "jax" or preprocessor.padding != "longest":
            return preprocessor
        return self.made_once(_with_buckets, preprocessor)

    def _reader(self, preprocessor: TextLayer) -> Callable[[Any], dict[str, Any]]:
        """What makes ids of texts: a preprocessor, or the rule for long texts with it."""
        if self.long_texts is None:
            return preprocessor
        return self.made_once(functools.partial, self.long_texts, preprocessor)

    def prompted(self, prompt: str, part: str | None = None) -> Inputs:
        """The same kind of data with another prompt, and outputs of another part if one is given."""
        other = copy.copy(self)
        other.prompt, other.part = prompt, part or self.part
        other.batches = Batches(other)
        return other

    def _with_prompt(self, texts: Strings) -> Any:
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
    def label_names(self) -> Sequence[str] | None:
        """The names of the labels in the order of their ids; None if they have none."""
        return None

    def is_raw(self, x: Rows) -> bool:
        """Whether `x` needs the preprocessor; ValueError for text where there is none."""
        if self.preprocessor is None and holds_text(x):
            cure = "Make the task with `preprocessor=BertPreprocessor(tokenizer)`, or give it token ids."
            raise ValueError(checks.message(self.owner, "preprocessor", "be given for raw text", None, cure))
        holds_ids = any(has_key(x, key) for key in self.id_keys)
        return self.preprocessor is not None and x is not None and not holds_ids

    def counts_rows(self, x: Rows) -> bool:
        """Whether labels count rows or words of a whole batch of `x`, so that no device may get a part of it."""
        return ("text" if self.is_raw(x) else "ids") in self.counts_in_batch

    def table(self, x: Rows) -> Any:
        """A table as one whose columns can be read by name; anything else unchanged."""
        return x

    def columns(self, x: Rows, *, first_row: int = 0) -> Any:
        """`x` as checked columns; errors count rows from `first_row`."""
        return as_columns(self.owner, x, most=self.most_texts, first_row=first_row)

    def labels(self, columns: Any, y: Any) -> Any:
        """Labels as the loss takes them, checked row by row; labels that this has returned stay unchanged."""
        return as_array(y)

    def raw_labels(self, columns: Columns, y: Labels) -> Any:
        """Labels in the form that a `tf.data.Dataset` of raw rows has; those of `labels`, where these are the same."""
        return self.labels(columns, y)

    def makes_labels(self, x: Rows) -> bool:
        """Whether labels are made from `x` itself, so that `y` may be None."""
        return False

    def check_labels(self, x: Rows, y: Labels) -> None:
        """Refuses rows without the labels that training needs; ValueError."""
        if y is None and not is_dataset(x) and not self.makes_labels(x):
            cure = 'Give `y`; a table may have it as a column "label".'
            raise ValueError(checks.message(self.owner, "y", "hold one label for each text", y, cure))

    def class_weight(self, x: Rows, class_weight: Any, y: Any = None) -> Mapping[Any, float]:
        """`class_weight` as Keras takes it: a number for each class index; `y` is for `"balanced"`."""
        if isinstance(class_weight, str):
            cure = '"balanced" is for a classifier of one class per text.'
            raise ValueError(checks.message(self.owner, "class_weight", "be a dictionary or None", class_weight, cure))
        return class_weight

    def check_dataset(self, dataset: tf.data.Dataset) -> None:
        """Refuses a `tf.data.Dataset` that does not yield batches of this kind of data; ValueError."""
        check_text_dataset(self.owner, dataset, most=self.most_texts)

    def read_together(self, columns: Columns) -> Any:
        """Texts, or pairs of texts, in arrays, each of which is one sequence; None if long ones are not cut."""
        return columns

    def beside(self, columns: Columns) -> dict[str, Any]:
        """The inputs of the model beside those that are made of texts; in graph."""
        return {}

    # Batches of ids and labels.

    def fitting(self, x: Rows) -> AbstractContextManager[None]:
        """The context in which `fit` trains on `x`."""
        return nullcontext()

    def split(self, x: Rows, y: Labels, sample_weight: Labels, share: float) -> tuple[Parts, Parts]:
        """`(x, y, sample_weight)` of the first rows, and of the `share` of rows at the end; None stays None."""
        return self.batches.split(x, y, sample_weight, share)

    def batches_of(self, x: Rows, y: Labels, sample_weight: Labels, *, batch_size: int | None) -> BatchMaker:
        """What makes encoded batches of anything but a dataset; arguments as in `Batches`."""
        return self.batches.of_rows(self.batches.checked(x, y, sample_weight), batch_size=batch_size)

    def encoded(self, rows: tf.data.Dataset, epochs: Epochs | None) -> tf.data.Dataset:
        """A dataset of checked batches `(x, y, sample_weight)`, encoded."""
        return self.batches.encoded(rows, training=epochs is not None)

    def before_cut(self, x: Columns) -> Callable[..., Parts] | None:
        """What makes of a whole batch what `encode` needs of it, where a process encodes its own rows only.

        None where a row's ids, their width included, do not follow from the row alone, for batches of these specs of
        `x`: every process then encodes all rows.
        """
        are_apart = self.bucketed().padding == "max_length" and not isinstance(self.long_texts, Windows)
        return (lambda *batch: batch) if are_apart else None

    def encoder(self, *, training: bool) -> Callable[..., Parts]:
        """`encode`, for training or for evaluation."""
        if not isinstance(self.long_texts, Windows):
            return self.encode
        most = self.long_texts.max_windows if training else None
        return self.made_once(functools.partial, self._encode_by_text, most)

    def _encode_by_text(self, most: int | None, *batch: Any) -> Parts:
        """`encode`, with at most so many windows of a text, on an axis of their own."""
        ids, *others = self.encode(*batch)
        return by_text(ids, most), *others

    def encode(self, x: Any, y: Tensor | None = None, sample_weight: Tensor | None = None) -> Parts:
        """One batch of `(ids, labels, weights)`, in graph; what is None at the end is left out.

        Under `Windows`, the ids are all windows, one after the other, and `fit` gives them an axis of their own.
        """
        return without_none(self._reader(self.bucketed())(self._with_prompt(x)), y, sample_weight)

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

    def empty(self, x: Rows, outputs: Outputs) -> Any:
        """What `predict` returns for no rows, from the model's outputs without a row."""
        return outputs

    # Ids and strings, in graph and out of it.

    def model_inputs(self, ids: Any) -> Any:
        """The model's inputs for ids that a user gave; under `Windows`, `(batch, sequence)` are single windows."""
        is_texts = isinstance(self.long_texts, Windows) and isinstance(ids, dict) and WINDOW_ROWS not in ids
        if is_texts and "token_ids" in ids and len(ids["token_ids"].shape) == 2:
            return {name: values[:, None] for name, values in ids.items()}
        return ids

    def answer_columns(self, x: Rows) -> list[Any]:
        """A column of strings for each of `text_inputs`, from what a user gives to `answer`."""
        columns = self.columns(x)
        columns = list(columns) if isinstance(columns, tuple) else [columns]
        if len(columns) != len(self.text_inputs):
            rule = f"hold {len(self.text_inputs)} texts per row: {list(self.text_inputs)}"
            raise ValueError(checks.message(self.owner, "x", rule, f"{len(columns)} columns"))
        return columns

    def tokens(self, *texts: Tensor) -> dict[str, Any]:
        """The ids for a batch of strings, one tensor for each of `text_inputs`, batch first; in graph."""
        return by_text(self.ids(*texts))

    def ids(self, *texts: Any) -> dict[str, Any]:
        """`tokens`, or under `Windows` all windows one after the other, as `Task.run` takes them."""
        return traced_once(self._reader(self.bucketed()), self._with_prompt(texts if len(texts) > 1 else texts[0]))


def _with_buckets(preprocessor: TextLayer) -> Any:
    """A preprocessor that pads to few lengths, with the same tokenizer: another one would read the vocabulary again."""
    config = {**preprocessor.get_config(), "tokenizer": preprocessor.tokenizer, "padding": "bucket"}
    return type(preprocessor)(**config)
