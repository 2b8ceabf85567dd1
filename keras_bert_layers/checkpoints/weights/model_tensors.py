"""`ModelTensors`: a model's weights with a layout's names, shapes and orders of axes."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal.keras_models import all_layers
from keras_bert_layers.checkpoints.files.tensor_file import TensorInfo
from keras_bert_layers.checkpoints.weights.reports import moved
from keras_bert_layers.checkpoints.weights.table import Layout, StoredWeight, WeightRow
from keras_bert_layers.layers.adapters import is_of_bank
from keras_bert_layers.layers.lora import has_lora, is_lora, lora_product


class ModelTensors:
    """A model's weights with a layout's names and shapes, as a `TensorFile` for writers.

    Each tensor is copied when it is read, one at a time. What LoRA learnt is added to its kernel.

    Args:
        model: a built model; its weights' paths end in the rows' `ours`.
        rows: the table, with a row for every weight to write.
        layout: the column.
        num_heads: the config's, for layouts with an axis for heads.
        rename: from the table's name of a tensor to the file's.

    Raises:
        LookupError: a row has no weight in the model, or no cell in the column.

    Examples:
        >>> from keras_bert_layers import BertBackbone, BertConfig
        >>> from keras_bert_layers.checkpoints.weights.table import backbone_rows
        >>> config = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=7)
        >>> tensors = ModelTensors(BertBackbone(config), backbone_rows(config), Layout.HUGGINGFACE, num_heads=2)
        >>> tensors.infos["encoder.layer.0.intermediate.dense.weight"]
        TensorInfo(dtype='F32', shape=(7, 8))
    """

    def __init__(
        self,
        model: keras.Model,
        rows: Sequence[WeightRow],
        layout: Layout,
        *,
        num_heads: int,
        rename: Callable[[str], str] = str,
    ):
        self._num_heads = num_heads
        self._last: tuple[str, Any] = ("", None)
        self._variables = weights_by_row(model, rows, all_weights=False)
        self._lora = {layer._kernel.path: layer for layer in all_layers(model) if has_lora(layer)}
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
        """Returns one weight as float32, in the layout's shape; often a view of the model's own memory."""
        row, stored = self._rows[name]
        return moved(stored.transform.to_stored(row.part(self._array(row.ours)), self._num_heads))

    def _array(self, path: str) -> np.ndarray:
        """The weight; the last one is kept, as a merged one is read three times."""
        if self._last[0] != path:
            value = self._variables[path].value
            # Keras's own conversion from TensorFlow to NumPy copies twice.
            array = value.numpy() if keras.backend.backend() == "tensorflow" else keras.ops.convert_to_numpy(value)
            array = np.asarray(array, np.float32)
            if (layer := self._lora.get(self._variables[path].path)) is not None:
                array = array + lora_product(layer)
            self._last = path, array
        return self._last[1]


def weights_by_row(model: keras.Model, rows: Sequence[WeightRow], *, all_weights: bool = True) -> dict[str, Any]:
    """Our path in the table -> the model's variable.

    Args:
        model: a built model.
        rows: the table.
        all_weights: whether every weight of the model must have a row.

    Returns:
        A variable for every row's `ours`.

    Raises:
        LookupError: a row has no weight, a weight has no row, or a row has two weights.
    """
    paths = {row.ours for row in rows}
    found: dict[str, Any] = {}
    for variable in model.weights:
        if all_weights and (is_lora(variable) or is_of_bank(variable)):
            continue  # it is added to the weight beside it
        parts = variable.path.split("/")
        matches = {"/".join(parts[start:]) for start in range(len(parts))} & paths
        if len(matches) > 1 or matches & found.keys() or (all_weights and not matches):
            raise LookupError(f"The table of weight names needs one row for the weight {variable.path!r}.")
        found.update(dict.fromkeys(matches, variable))
    absent = sorted(paths - found.keys())
    if absent:
        raise LookupError(f"The table of weight names has rows without a weight in the model: {', '.join(absent)}.")
    return found
