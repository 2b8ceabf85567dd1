"""Texts, or pairs of texts, beside columns of numbers and strings, with one label per row."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.shared_graphs import traced_once
from keras_bert_layers._internal.types import Columns, Rows, Tensor
from keras_bert_layers.config import COLUMNS
from keras_bert_layers.tasks.feeding.columns import as_tuple, check_text_dataset, first_part, has_key, is_dataset
from keras_bert_layers.tasks.feeding.streams import LABELS, BatchStream
from keras_bert_layers.tasks.inputs.row_features import RowFeatures
from keras_bert_layers.tasks.inputs.texts import TextInputs


class ColumnInputs(TextInputs):
    """Texts, or pairs of them, beside the columns of a `FeatureSpace`.

    Rows come as a table with names: a pandas DataFrame, a dictionary, a table of Arrow, or a dataset of dictionaries.
    From then on, columns are a tuple: one or two of texts, and one for each column of the space, in its order.

    Args:
        *parts: as in `TextInputs`.
        features: the columns beside the texts.
        pairs: as in `TextInputs`.
    """

    def __init__(self, *parts: Any, features: RowFeatures, pairs: bool | None = None):
        super().__init__(*parts, pairs=pairs)
        self.features, self.columns_beside = features, len(features.names)
        self._has_warned = False

    @property
    def text_inputs(self) -> Mapping[str, Any]:
        """The texts, and one input for each column, by a name that a signature can have."""
        return {**super().text_inputs, **self.features.inputs}

    @property
    def column_names(self) -> list[str]:  # type: ignore[override]
        """The columns of a table that hold texts, and those beside them."""
        return [*super().text_inputs, *self.features.names]

    def table(self, x: Any) -> Any:
        """A frame of pandas or polars as a dictionary of columns; the columns of a table are checked.

        Raises:
            ValueError: a column is missing; a stream of batches for a space that is not adapted.
        """
        if BatchStream.takes(x):
            self.features.check_adapted()
            return x
        if hasattr(x, "columns") and hasattr(x, "to_numpy"):
            x = {name: x[name] for name in x.columns}
        found = first_part(x)
        found = list(found) if isinstance(found, Mapping) else getattr(found, "column_names", None)
        if not isinstance(found, list) or has_key(x, "token_ids"):
            return x
        if missing := [name for name in self.column_names if name not in found]:
            cure = "Add them to the table, or rename its columns; a missing value is None or NaN."
            received = checks.Shown(f"without {missing}: {found}")
            raise ValueError(checks.message(self.owner, "x", f"have the columns {self.column_names}", received, cure))
        unread = [name for name in found if name not in (*self.column_names, "text_pair", *LABELS)]
        if unread and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"`{self.owner}`: the columns {unread} are not read, as they are not in the FeatureSpace `columns`. "
                "This warning is shown once.",
                stacklevel=2,
            )
        return x

    def columns(self, x: Any, *, first_row: int = 0) -> Any:
        """A tuple of texts and the columns beside them, checked row by row."""
        self._check_tuple(x)
        texts = super().columns(self.read_together(x), first_row=first_row)
        texts = as_tuple(texts)
        columns = [*texts]
        for name, column in zip(self.features.names, self._beside(x), strict=True):
            columns.append(self.features.checked(name, column, first_row))
            if len(columns[-1]) != len(texts[0]):
                rule, received = f"the column {name!r} must have one value for each text", f"{len(columns[-1])} values"
                raise ValueError(checks.row_message(self.owner, rule, f"{received} and {len(texts[0])} texts"))
        return tuple(columns)

    def _check_tuple(self, x: Rows) -> None:
        found = first_part(x)
        if not isinstance(found, tuple) or len(found) - self.columns_beside not in (1, 2):
            rule = f"be a DataFrame, a dictionary of columns or a dataset of dictionaries with {self.column_names}"
            cure = 'Such as `{"text": texts, ...}`; for one row, a dictionary of its values.'
            raise ValueError(checks.message(self.owner, "x", rule, type(x), cure))

    def _beside(self, x: Any) -> Any:
        return x[-self.columns_beside :]

    def read_together(self, columns: Columns) -> Any:
        """The texts alone."""
        texts = columns[: -self.columns_beside]
        return texts if len(texts) > 1 else texts[0]

    def are_pairs(self, x: Rows) -> bool:
        """Whether rows have two texts."""
        found = first_part(x)
        return isinstance(found, tuple) and len(found) - self.columns_beside > 1

    def check_dataset(self, dataset: tf.data.Dataset) -> None:
        """Refuses a dataset that does not yield texts and the columns beside them; TypeError or ValueError."""
        self._check_tuple(dataset)
        check_text_dataset(self.owner, dataset.map(lambda x, *_: (self.read_together(x),)))
        self.features.check_specs(self._beside(first_part(dataset)))
        self._check_kind(self.are_pairs(dataset))

    @contextmanager
    def fitting(self, x: Any) -> Iterator[None]:
        """Decides whether rows are pairs, and adapts a space that is not adapted to the rows of training."""
        with super().fitting(x):
            if self.is_raw(x) and self.features.width is None:
                if is_dataset(x):
                    self.check_dataset(x)
                    if x.cardinality() == tf.data.INFINITE_CARDINALITY:
                        self.features.check_adapted()
                    batches = x.map(lambda x, *_: x).as_numpy_iterator()
                    x = tuple(map(np.concatenate, zip(*batches, strict=True)))
                self.features.adapt(self._beside(self.columns(x)))
            yield

    def beside(self, columns: Columns) -> dict[str, Any]:
        """The encoded features, float32 `(rows, features)`."""
        return {COLUMNS: self.features(*self._beside(columns))}

    def encode(self, x: Any, y: Tensor | None = None, sample_weight: Tensor | None = None) -> tuple[Any, ...]:
        """One batch of `(ids, labels, weights)`, in graph; the encoded features are among the ids."""
        ids, *others = super().encode(self.read_together(x), y, sample_weight)
        return {**ids, **self.beside(x)}, *others

    def ids(self, *texts: Any) -> dict[str, Any]:
        """The ids and the encoded features for a batch of strings and values."""
        ids = super().ids(*texts[: -self.columns_beside])
        return {**ids, COLUMNS: traced_once(self.features, *self._beside(texts))}
