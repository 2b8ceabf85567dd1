"""`ModelTensors`: a model's weights as a layout names and lays them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers.checkpoints._progress import moved
from keras_bert_layers.checkpoints.tensor_file import TensorInfo
from keras_bert_layers.checkpoints.weight_row import Layout, StoredWeight, WeightRow


class ModelTensors:
    """A model's weights as a layout names and lays them out: a `TensorFile` that writers take.

    Nothing is copied before it is asked for, and then one tensor at a time.

    Args:
        model: a built model; its weights' paths end in the rows' `ours`.
        rows: the table, with a row for every weight that is to be written.
        layout: the column.
        num_heads: the config's, for layouts that give heads an axis.
        rename: from the table's name of a tensor to the file's.

    Raises:
        LookupError: a row has no weight in the model, or no cell in the column.

    Examples:
        >>> from keras_bert_layers import BertBackbone, BertConfig
        >>> from keras_bert_layers.checkpoints.weight_table import backbone_rows
        >>> config = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=7)
        >>> tensors = ModelTensors(BertBackbone(config), backbone_rows(config), Layout.HUGGINGFACE, num_heads=2)
        >>> tensors.infos["encoder.layer.0.intermediate.dense.weight"]
        TensorInfo(dtype='F32', shape=(7, 8))
    """

    def __init__(
        self,
        model: Any,
        rows: Sequence[WeightRow],
        layout: Layout,
        *,
        num_heads: int,
        rename: Callable[[str], str] = str,
    ):
        self._num_heads = num_heads
        self._last: tuple[str, Any] = ("", None)
        self._variables = weights_by_row(model, rows, all_weights=False)
        self._rows: dict[str, tuple[WeightRow, StoredWeight]] = {}
        self.infos: dict[str, TensorInfo] = {}
        for row in rows:
            stored = row.stored(layout)
            if stored is None:
                raise LookupError(f"The table of weight names has no name for {row.ours!r} in the layout {layout}.")
            shape = row.part_shape(tuple(self._variables[row.ours].shape))
            name = rename(stored.name)
            self._rows[name] = row, stored
            self.infos[name] = TensorInfo("F32", stored.transform.stored_shape(shape, num_heads))

    def read(self, name: str) -> np.ndarray:
        """One weight as float32, in the layout's shape; often a view of the model's own memory."""
        row, stored = self._rows[name]
        return moved(stored.transform.to_stored(row.part(self._array(row.ours)), self._num_heads))

    def _array(self, path: str) -> np.ndarray:
        """The weight; the last one is kept, as a merged one is asked for three times."""
        if self._last[0] != path:
            value = self._variables[path].value
            # Keras's own way from TensorFlow to NumPy copies twice.
            array = value.numpy() if keras.backend.backend() == "tensorflow" else keras.ops.convert_to_numpy(value)
            self._last = path, np.asarray(array, np.float32)
        return self._last[1]


def weights_by_row(model: Any, rows: Sequence[WeightRow], *, all_weights: bool = True) -> dict[str, Any]:
    """Our path in the table -> the model's variable.

    Args:
        model: a built model.
        rows: the table.
        all_weights: whether every weight of the model must have a row.

    Returns:
        A variable for every row's `ours`.

    Raises:
        LookupError: a row without a weight, a weight without a row, or two weights for one row.
    """
    paths = {row.ours for row in rows}
    found: dict[str, Any] = {}
    for variable in model.weights:
        parts = variable.path.split("/")
        matches = {"/".join(parts[start:]) for start in range(len(parts))} & paths
        if len(matches) > 1 or matches & found.keys() or (all_weights and not matches):
            raise LookupError(f"The table of weight names needs one row for the weight {variable.path!r}.")
        found.update(dict.fromkeys(matches, variable))
    absent = sorted(paths - found.keys())
    if absent:
        raise LookupError(f"The table of weight names has rows without a weight in the model: {', '.join(absent)}.")
    return found
