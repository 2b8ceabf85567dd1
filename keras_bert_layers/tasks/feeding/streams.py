"""Reads batches of a generator or a `keras.utils.PyDataset`, and columns of tables and dictionaries."""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Rows, Tensor
from keras_bert_layers.data.columns import Columns
from keras_bert_layers.tasks.feeding.columns import as_tensor, first_part, is_dataset, without_none
from keras_bert_layers.tasks.feeding.kind_of_data import KindOfData

# The columns of the readers of `data`: those of texts, beside which there may be second ones, and those of labels.
_READ = {("questions", "contexts"): ("answer_starts", "answers"), ("words",): ("tags",), ("first",): ("labels",)}
LABELS = ("label", "labels", "tags", "ner_tags", "answers")


class BatchStream:
    """Batches `x`, `(x, y)` or `(x, y, sample_weight)` of a generator or a `PyDataset`, the first of which is read.

    Args:
        source: a generator or a `PyDataset`.
    """

    def __init__(self, source: Any):
        self._source = source
        #: The same batches, for Keras.
        self.batches = source
        if isinstance(source, types.GeneratorType):
            if (first := next(source, None)) is None:
                raise ValueError("A generator must yield at least one batch. Received: none.")
            self.batches = _all_of(first, source)
        else:
            first = source[0]
        self.first = keras.utils.unpack_x_y_sample_weight(first)

    @staticmethod
    def takes(x: Rows) -> bool:
        """Whether `x` is a generator or a `PyDataset`."""
        return isinstance(x, types.GeneratorType | keras.utils.PyDataset)

    def dataset(self, data: KindOfData, *, shuffle: bool = False) -> tf.data.Dataset:
        """A dataset of the same batches of texts, checked.

        Args:
            data: the kind of data, which checks them; its `batches` get an error of a batch as `stream_error`.
            shuffle: whether the batches of a `PyDataset` are in random order in each epoch.
        """
        spec = tf.nest.map_structure(_spec, _parts(data, self.first))

        def batches() -> Iterator[Any]:
            data.batches.stream_error = None
            try:
                for batch in self._epoch(shuffle):
                    yield _parts(data, keras.utils.unpack_x_y_sample_weight(batch))
            except Exception as error:
                data.batches.stream_error = error
                raise

        dataset = tf.data.Dataset.from_generator(batches, output_signature=spec)
        num_batches = getattr(self._source, "num_batches", None)
        if num_batches is None:
            return dataset
        return dataset.apply(tf.data.experimental.assert_cardinality(num_batches))

    def _epoch(self, shuffle: bool) -> Iterator[Any]:
        if self.batches is not self._source:
            yield from self.batches
            return
        self._source.on_epoch_begin()
        yield from batches_of_pydataset(self._source, shuffle=shuffle)
        self._source.on_epoch_end()


def as_dataset(data: KindOfData, x: Rows, *, shuffle: bool = False) -> tuple[Any, bool]:
    """`x`, a stream of texts as a dataset; and whether it holds texts."""
    if not BatchStream.takes(x):
        return x, data.is_raw(x)
    stream = BatchStream(x)
    is_raw = data.is_raw(stream.first[0])
    return stream.dataset(data, shuffle=shuffle) if is_raw else stream.batches, is_raw


def batches_of_pydataset(source: keras.utils.PyDataset, *, shuffle: bool = False) -> Iterator[Any]:
    """The batches of a `PyDataset`; without end if their number is not known."""
    num_batches = source.num_batches
    order: Iterable[int] = itertools.count() if num_batches is None else range(num_batches)
    if shuffle and num_batches is not None:
        order = np.random.permutation(num_batches)
    for index in order:
        yield source[int(index)]


def _all_of(first: Tensor, others: Iterator[Any]) -> Iterator[Any]:
    """The batches of a generator whose first one was read; a generator, as Keras takes no other iterator."""
    yield first
    yield from others


def _parts(data: KindOfData, batch: tuple[Any, Any, Any]) -> tuple[Any, ...]:
    """A checked batch as tensors, without what is None at its end."""
    return without_none(*tf.nest.map_structure(as_tensor, data.batches.raw_rows(*batch)))


def _spec(part: Tensor) -> Any:
    """The spec of a column: any number of rows, and of the texts of a row."""
    if isinstance(part, tf.RaggedTensor):
        return tf.RaggedTensorSpec([None, None], part.dtype, ragged_rank=1)
    others = [None] * (part.shape.rank - 1) if part.dtype == tf.string else part.shape[1:]
    return tf.TensorSpec([None, *others], part.dtype)


def is_table(x: Rows) -> bool:
    """Whether `x` is a table with named columns, as of the library `datasets`, a dictionary, or rows of spaCy."""
    if isinstance(x, Mapping | Columns) or _holds_entities(x):
        return True
    return hasattr(x, "column_names") and hasattr(x, "__getitem__")


def _holds_entities(x: Rows) -> bool:
    """Whether `x` is rows `(text, {"entities": spans})`, as in the training data of spaCy."""
    first = x[0] if isinstance(x, list) and x else None
    is_row = isinstance(first, tuple | list) and len(first) == 2
    return is_row and isinstance(first[1], Mapping) and "entities" in first[1]  # type: ignore[index]


def from_table(data: KindOfData, x: Any, y: Any = None) -> tuple[Any, Any]:
    """Texts and labels of what `is_table`, or of a dataset of dictionaries, as columns; anything else unchanged.

    Args:
        data: the kind of data, as for `texts_of_table`. Of the columns besides the texts, the first one in `LABELS`
            holds the labels. Ids that the table has names for become these names where `data` has names too, as the
            same class may have another id there.
        x: what a user gives.
        y: the labels, if they are not in the table.

    Raises:
        ValueError: a column is missing; the table has a label that the task does not have.
    """
    x = data.table(x)
    texts = texts_of_table(data, x)
    if texts is x or y is not None or is_dataset(x):
        return texts, y
    if isinstance(x, Columns):
        return texts, _of_reader(x, labels=True)
    if _holds_entities(x):
        return texts, [entities for _, entities in x]
    label = _label_of(_names(x))
    return texts, None if label is None else _labels_of_table(data, x, label)


def texts_of_table(data: KindOfData, x: Any) -> Any:
    """Texts of what `is_table`, or of a dataset of dictionaries, as columns; anything else unchanged.

    Args:
        data: the kind of data. `column_names` or else `text_inputs` name the columns of texts. In a dictionary,
            `"text_pair"` is the second column of pairs.
        x: what a user gives. A dataset of dictionaries keeps its labels, in a column as of `from_table`.

    Raises:
        ValueError: a column is missing.
    """
    x = data.table(x)
    row = first_part(x) if is_dataset(x) else x
    if data.preprocessor is None or not is_table(row) or not data.is_raw(row):
        return x
    if isinstance(x, Columns):
        return _of_reader(x, labels=False)
    if _holds_entities(x):
        return [text for text, _ in x]
    names = _text_columns(data, row)

    def texts_of(columns: Any) -> Any:
        texts = tuple(_column(columns, name) for name in names)
        return texts[0] if len(texts) == 1 else texts

    if not is_dataset(x):
        return texts_of(x)
    label = None if isinstance(x.element_spec, tuple) else _label_of(list(row))
    return x.map(lambda row, *others: (texts_of(row), *([row[label]] if label else others)))


def _of_reader(x: Columns, *, labels: bool) -> Any:
    """The columns of texts, or of labels, of what a reader of `data` returned; None where it has none."""
    found = next((parts for parts in _READ.items() if {*parts[0]} <= {*x.names}), None)
    if found is None:
        return None if labels else x
    columns = [x[name] for name in (found[1] if labels else (*found[0], "second")) if name in x.names]
    return tuple(columns) if len(columns) > 1 else next(iter(columns), None)


def _names(table: Any) -> Any:
    return list(table) if isinstance(table, Mapping) and not hasattr(table, "column_names") else table.column_names


def _label_of(names: Iterable[str]) -> str | None:
    return next((name for name in LABELS if name in names), None)


def _text_columns(data: KindOfData, table: Any) -> list[str]:
    """The names of the columns of texts; ValueError if one is missing."""
    found, own = _names(table), list(data.text_inputs)
    if isinstance(found, dict):
        cure = 'Take one: `dataset["train"]`.'
        raise ValueError(checks.message(data.owner, "x", "be one split", sorted(found), cure))
    names = list(data.column_names or own)
    if not set(names) <= set(found) and set(own) <= set(found):
        names = own
    if isinstance(table, Mapping) and names[0] == "text" and "text_pair" in found and "text_pair" not in names:
        names.insert(1, "text_pair")
    if missing := [name for name in names if name not in found]:
        first = next(iter(found), None)
        cure = f'Rename one, such as `dataset.rename_column("{first}", "{missing[0]}")`, or give columns themselves.'
        raise ValueError(checks.message(data.owner, "x", f"have the columns {names}", checks.Shown(found), cure))
    return names


def _column(table: Any, name: str) -> Any:
    column = table[name]
    if isinstance(table, Mapping):
        return column
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)  # the first is Arrow's


def _labels_of_table(data: KindOfData, x: Any, column: str) -> list[Any]:
    """The labels of a column; ids as names where both the table (its `ClassLabel`) and the task have names."""
    labels, feature = _column(x, column), (getattr(x, "features", None) or {}).get(column)
    has_lists = not hasattr(feature, "names")
    names = getattr(getattr(feature, "feature", None) if has_lists else feature, "names", None)
    ours = data.label_names
    # Names that only count, as `class_encode_column` makes of integers, say nothing about ids.
    if not names or ours is None or names == ours or names == [str(index) for index in range(len(names))]:
        return labels

    def name_of(label: Any) -> Any:
        is_id = isinstance(label, Integral) or (hasattr(label, "dtype") and np.ndim(label) == 0)
        if not is_id or not 0 <= label < len(names):
            return label  # what stands for no label, such as -100
        if names[int(label)] not in ours:
            cure = f'Rename or drop these labels, or give texts and ids of the task: `x, y = ..., dataset["{column}"]`.'
            rule = f"have labels of the task, {ours}"
            received = checks.Shown(f"{names[int(label)]!r} of {names}")
            raise ValueError(checks.message(data.owner, "x", rule, received, cure))
        return names[int(label)]

    if not has_lists:
        return [name_of(label) for label in labels]
    return [None if row is None else [name_of(label) for label in row] for row in labels]
