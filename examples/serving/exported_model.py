"""One exported model: it checks requests, and answers them row by row.

It needs TensorFlow and tensorflow-text, and of this package the checks of requests; it does not import Keras.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the tokenizer's operations
from google.protobuf.json_format import MessageToDict
from tensorflow.core.protobuf import saved_model_pb2

from keras_bert_layers.export.json_request import arrays, plain

# They read all of a text, through windows; the others read the first `max_length` tokens.
READS_ALL = ("BertQuestionAnswerer", "BertTokenClassifier")

# The padding of outputs whose width depends on the batch.
FILLS = {tf.string: b"", tf.float32: -1.0, tf.int32: -1}


class ExportedModel:
    """A SavedModel, warmed up by an empty request to each of its signatures.

    Args:
        path: the SavedModel.
        number: its version.

    Attributes:
        signature_def: the signatures with their inputs and outputs, as TensorFlow Serving's `/metadata` has them.
        card: the model card; empty for a SavedModel without one.
        max_length: the tokens that the model reads of a sequence; None if it reads all, or without a card.
    """

    def __init__(self, path: Path, number: int):
        self.number = number
        self.signature_def = _signature_def(path)
        card = path / "model_card.json"
        self.card: dict[str, Any] = json.loads(card.read_text(encoding="utf-8")) if card.is_file() else {}
        reads_all = self.card.get("task") in READS_ALL
        self.max_length: int | None = None if reads_all else self.card.get("preprocessing", {}).get("max_length")
        self._module = tf.saved_model.load(str(path))
        self._functions = dict(self._module.signatures)
        self._signatures = {
            name: {key: (tuple(spec.shape), spec.dtype.name) for key, spec in _inputs(function).items()}
            for name, function in self._functions.items()
        }
        for function in self._functions.values():
            specs = _inputs(function)
            function(**{name: tf.zeros([size or 1 for size in spec.shape], spec.dtype) for name, spec in specs.items()})

    def check(self, signature: str, inputs: Any) -> dict[str, np.ndarray]:
        """The inputs of a request as arrays.

        Args:
            signature: a signature's name.
            inputs: name -> a list, one entry per row; or the list alone, if the signature has one input.

        Raises:
            RequestError: the signature would reject the inputs; the message names the row.
        """
        return arrays(signature, inputs, self._signatures)

    def answer(self, signature: str, inputs: dict[str, np.ndarray]) -> list[dict[str, Any]]:
        """The answers of a signature, one dictionary of JSON values per row.

        Padding is removed, so that a row's answer does not depend on the other rows of its batch.
        """
        function = self._functions[signature]
        outputs = function(**{name: tf.constant(array) for name, array in inputs.items()})
        cut = not signature.endswith("tokenize")  # ids are padded with 0, which is also an id
        columns = {
            name: _rows(tensor, cut and function.structured_outputs[name].shape[1:2] == [None])
            for name, tensor in outputs.items()
        }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def inputs_of(self, signature: str) -> list[str]:
        """The names of a signature's inputs; none if there is no such signature."""
        return sorted(_inputs(self._functions[signature])) if signature in self._functions else []

    def outputs_of(self, signature: str) -> list[str]:
        """The names of a signature's outputs; none if there is no such signature."""
        return sorted(self._functions[signature].structured_outputs) if signature in self._functions else []

    def num_tokens(self, inputs: dict[str, np.ndarray]) -> list[int]:
        """The tokens that the model reads for each row of strings, special tokens included."""
        return self._ids(inputs)["padding_mask"].numpy().sum(axis=-1).tolist()

    def logits(self, inputs: dict[str, np.ndarray]) -> list[list[float]]:
        """The model's own outputs for rows of strings, before any activation."""
        return self._functions["token_ids"](**self._ids(inputs))["logits"].numpy().tolist()

    def _ids(self, inputs: dict[str, np.ndarray]) -> dict[str, tf.Tensor]:
        return self._functions["tokenize"](**{name: tf.constant(array) for name, array in inputs.items()})


def _signature_def(path: Path) -> dict[str, Any]:
    saved_model = saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes())
    signatures = saved_model.meta_graphs[0].signature_def
    options = {"preserving_proto_field_name": True, "always_print_fields_with_no_presence": True}
    return {"signature_def": {name: MessageToDict(signatures[name], **options) for name in sorted(signatures)}}


def _inputs(function: Any) -> dict[str, tf.TensorSpec]:
    return function.structured_input_signature[1]


def _rows(tensor: tf.Tensor, cut: bool) -> list[Any]:
    """A tensor as one list, number or string per row."""
    array = tensor.numpy()
    if not (cut and tensor.dtype in FILLS and array.ndim > 1):
        return [plain(row) for row in array]
    kept = array != FILLS[tensor.dtype]
    kept = kept.any(axis=tuple(range(2, array.ndim)))  # [rows, columns]
    widths = (
        np.where(kept.any(axis=1), kept.shape[1] - kept[:, ::-1].argmax(axis=1), 0) if kept.size else [0] * len(kept)
    )
    return [plain(row[:width]) for row, width in zip(array, widths, strict=True)]
