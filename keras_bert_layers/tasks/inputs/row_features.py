"""`RowFeatures`: the columns beside a text, checked, and encoded by a `keras.utils.FeatureSpace`.

Axes: B batch, F encoded features.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.export.signature import input_name
from keras_bert_layers.tasks.feeding.columns import column_values
from keras_bert_layers.tasks.feeding.streams import LABELS

_RESERVED = ("text", "text_pair", "token_ids", *LABELS)
# The arguments that hold what a layer of Keras learns from data.
_LEARNT = ("vocabulary", "mean", "bin_boundaries")


class RowFeatures:
    """The columns beside a text: which there are, what they hold, and the float vector that a `FeatureSpace` makes.

    A missing number (None, NaN) is the mean of a column that the space normalizes, and 0 in another column of floats; a
    missing integer is -1, and a missing string `""`. Neither of the last two is ever a known category of a space
    that is adapted here.

    Args:
        owner: the task's class, for errors.
        space: a `keras.utils.FeatureSpace`, which stays as it is.

    Raises:
        TypeError: something else.
        RuntimeError: Keras runs on another backend than TensorFlow.
        ValueError: a space with another `output_mode`, names that are taken, or NaN in what it has learnt.
    """

    def __init__(self, owner: str, space: Any):
        cure = 'Such as `keras.utils.FeatureSpace({"price": "float_normalized"}, output_mode="concat")`.'
        checks.instance(owner, "columns", space, keras.utils.FeatureSpace, cure)
        if keras.backend.backend() != "tensorflow":
            cure = "Start again with KERAS_BACKEND=tensorflow, or leave `columns` out."
            rule = "be None on other backends than TensorFlow"
            raise RuntimeError(checks.message(owner, "columns", rule, keras.backend.backend(), cure))
        checks.one_of(owner, "columns.output_mode", space.output_mode, ["concat"], 'Give `output_mode="concat"`.')
        self._owner = owner
        self.dtypes = {name: feature.dtype for name, feature in space.features.items()}
        self.names = list(self.dtypes)
        self._inputs = {name: input_name(name) for name in self.dtypes}
        taken = [name for name, key in self._inputs.items() if key in _RESERVED or not key]
        if taken or len({*self._inputs.values()}) < len(self._inputs):
            rule = f"have names that differ in letters, digits and `_`, and are none of {list(_RESERVED)}"
            raise ValueError(checks.message(owner, "columns", rule, self.names, "Rename a column."))
        #: Called with the number of encoded features when it is known.
        self.follow: Callable[[int], None] | None = None
        #: The `FeatureSpace`; adapted, once it is.
        self.space = space
        self._fills: dict[str, float] = {}
        self.width: int | None = None
        if _is_adapted(space):
            self._freeze()
        else:
            self.space = keras.utils.FeatureSpace.from_config(space.get_config())

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs of an exported model, by names that a signature can have: `(shape, dtype)`."""
        return {key: ((None,), self.dtypes[name]) for name, key in self._inputs.items()}

    @property
    def tables(self) -> tuple[Any, ...]:
        """TensorFlow's tables of categories, which a SavedModel must hold."""
        layers = self.space.preprocessors.values()
        return tuple(layer.lookup_table for layer in layers if hasattr(layer, "lookup_table"))

    def config(self) -> dict[str, Any]:
        """The space as Keras serializes it, with all that it has learnt in the arguments of its layers.

        A `.keras` file of a space alone would lose an empty string at the end of a vocabulary, and Keras takes a space
        that is read from its `build_config` for one that was adapted.
        """
        found = keras.saving.serialize_keras_object(self.space)
        return {key: value for key, value in found.items() if key != "build_config"}

    def adapt(self, columns: Sequence[Any]) -> None:
        """Adapts a space that is not adapted yet to checked columns, without their missing values.

        Raises:
            ValueError: a column has nothing but missing values.
        """
        for (name, dtype), values in zip(self.dtypes.items(), columns, strict=True):
            layer = self.space.preprocessors[name]
            if _is_preset(layer):
                continue
            known = values[_is_known(values, dtype)]
            if not len(known):
                cure = "Take the column out of the FeatureSpace, or adapt it to rows that have values."
                raise ValueError(checks.message(self._owner, f"x[{name!r}]", "hold a value", "only missing ones", cure))
            layer.adapt(known[:, None] if dtype != "string" else known.astype(str)[:, None])
        self._freeze()

    def _freeze(self) -> None:
        """Takes a copy of the space whose layers have what was learnt as arguments."""
        given = self.space
        layers = {name: _with_arguments(layer) for name, layer in given.preprocessors.items()}
        features = {
            name: keras.utils.FeatureSpace.feature(feature.dtype, layers[name], feature.output_mode)
            for name, feature in given.features.items()
        }
        space = keras.utils.FeatureSpace(features, output_mode="concat", crosses=given.crosses)
        for cross in space.crosses:  # Keras names it by the columns, and a graph has no names with spaces
            space.crossers[cross.name] = keras.layers.HashedCrossing(cross.crossing_dim)
        space.build_from_config({})  # adapted
        for name, layer in layers.items():
            is_float = self.dtypes[name].startswith("float")
            mean = getattr(layer, "input_mean", None)
            self._fills |= {name: 0.0 if mean is None else float(np.reshape(mean, -1)[0])} if is_float else {}
        if not np.isfinite(list(self._fills.values())).all():
            cure = "It was adapted to missing numbers. Give a new one, which `fit` adapts without them."
            raise ValueError(checks.message(self._owner, "columns", "have finite means", self._fills, cure))
        self.space, self.width = space, space.get_encoded_features().shape[-1]
        if self.follow is not None:
            self.follow(self.width)

    def check_adapted(self) -> None:
        """ValueError if the space was not adapted."""
        if self.width is None:
            cure = "Call `fit` on rows, or `feature_space.adapt(dataset)` before the task is made."
            raise ValueError(checks.message(self._owner, "columns", "be adapted first", "a new FeatureSpace", cure))

    def checked(self, name: str, column: Any, first_row: int) -> np.ndarray:
        """One column as an array `(rows,)` of its dtype, with missing values filled as far as they can be here.

        Raises:
            TypeError: a value of another kind; the message names its row.
            ValueError: not one column; an integer that is too large, or an infinite number.
        """
        dtype, column = self.dtypes[name], column_values(column)
        values = np.asarray(column.numpy() if hasattr(column, "numpy") else column)
        if values.ndim != 1:
            rule = f"the column {name!r} must have one value per row, `(rows,)`"
            raise ValueError(checks.row_message(self._owner, rule, f"shape={values.shape}"))
        missing: Any = {"s": "", "f": np.nan}.get(dtype[0], -1)
        allowed: Any = (int, float, np.number, np.bool_)
        kind, cure = "numbers", f'Give {name!r} the feature "string_categorical", or convert the column to numbers.'
        if dtype == "string":
            allowed, kind, cure = (str, bytes), "strings", f"Convert it, such as `table[{name!r}].astype(str)`."
        if values.dtype.kind in "OUSM" or dtype == "string":
            values = np.fromiter((missing if _is_missing(value) else value for value in values), object, len(values))
            for row, value in enumerate(values, start=first_row):
                if not isinstance(value, allowed):
                    rule = f"the column {name!r} must hold {kind}"
                    raise TypeError(checks.row_message(self._owner, rule, f"{value!r} in row {row}", cure))
        if dtype == "string":
            texts = [value.decode(errors="replace") if isinstance(value, bytes) else value for value in values]
            return np.array(texts, object)
        numbers, cure = values.astype(np.float64), "A missing number is None or NaN."
        if "int" in dtype:
            cure = f'Give {name!r} a feature of floats, such as "float_normalized", or round the numbers.'
            numbers = np.where(np.isnan(numbers), -1, numbers)
            is_right = (numbers == np.trunc(numbers)) & (np.abs(numbers) <= np.iinfo(dtype).max)
        else:
            is_right = ~np.isinf(numbers.astype(dtype))
        rule = f"the column {name!r} must hold finite numbers of dtype {dtype}"
        checks.every_row(self._owner, rule, values, is_right, cure)
        return numbers.astype(dtype)

    def check_specs(self, specs: Sequence[Any]) -> None:
        """Refuses columns of a dataset that are of another kind; TypeError or ValueError."""
        for (name, dtype), spec in zip(self.dtypes.items(), specs, strict=True):
            if (spec.dtype == tf.string) != (dtype == "string"):
                rule = f"the column {name!r} must hold {'strings' if dtype == 'string' else 'numbers'}"
                cure = "Convert it, such as with `tf.strings.to_number` or `tf.strings.as_string`."
                raise TypeError(checks.row_message(self._owner, rule, f"dtype {spec.dtype.name}", cure))
            if spec.shape.rank != 1:
                rule, cure = f"the column {name!r} must be `(batch,)`", "Call `dataset.batch(32)` first."
                raise ValueError(checks.row_message(self._owner, rule, f"shape={spec.shape}", cure))

    def __call__(self, *columns: Tensor) -> Any:
        """The encoded features of a batch, float32 `[B, F]`, in graph."""
        self.check_adapted()
        given: dict[str, Any] = {}
        for (name, dtype), column in zip(self.dtypes.items(), columns, strict=True):
            values = tf.convert_to_tensor(column, dtype) if dtype == "string" else tf.cast(column, dtype)
            if name in self._fills:
                values = tf.where(tf.math.is_nan(values), tf.cast(self._fills[name], dtype), values)
            given[name] = values[:, None]
        return tf.ensure_shape(tf.cast(self.space(given), tf.float32), [None, self.width])

    def missing(self) -> Any:
        """The encoded features of a row without any value, float32 `[1, F]`, in graph."""
        return self(*(self.checked(name, [None], 0) for name in self.names))

    def by_column(self, scores: np.ndarray) -> tuple[list[str], np.ndarray]:
        """The columns and crosses in the order of their features, and the sums of the scores `(F,)` of each."""
        names = [*sorted(self.names), *sorted(cross.name for cross in self.space.crosses)]
        numbers = np.repeat(np.arange(len(names)), [part.shape[-1] for part in self.space.concat.input])
        return names, np.bincount(numbers, scores)


def _is_adapted(space: Any) -> bool:
    try:
        return all(map(_is_preset, space.preprocessors.values())) or space.get_encoded_features() is not None
    except ValueError:
        return False


def _is_preset(layer: keras.layers.Layer) -> bool:
    """Whether a layer learns nothing from data, or has what it learns as an argument."""
    config: Mapping[str, Any] = layer.get_config()
    return not hasattr(layer, "adapt") or any(config.get(name) is not None for name in _LEARNT)


def _with_arguments(layer: keras.layers.Layer) -> Any:
    """A layer with what it has learnt as arguments, and with a name that a graph can have."""
    config = {**layer.get_config(), "name": re.sub(r"[^A-Za-z0-9]", "_", layer.name).strip("_") or "layer"}
    if isinstance(layer, keras.layers.Normalization):
        parts = {"mean": layer.mean, "variance": layer.variance} if layer.input_mean is None else {}
        config |= {name: np.reshape(value, -1).tolist() for name, value in parts.items()}
    elif hasattr(layer, "get_vocabulary"):
        config["vocabulary"] = np.asarray(layer.get_vocabulary(include_special_tokens=False)).tolist()
    return type(layer).from_config(config)


def _is_missing(value: Any) -> bool:
    is_nan = isinstance(value, float) and np.isnan(value)
    return is_nan or value is None or type(value).__name__ in ("NAType", "NaTType")


def _is_known(values: np.ndarray, dtype: str) -> np.ndarray:
    """Which values of a checked column are not missing, bool `(rows,)`."""
    if dtype == "string":
        return values != ""
    return ~np.isnan(values) if "float" in dtype else values != -1
