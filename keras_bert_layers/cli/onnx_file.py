"""Running and inspecting the ONNX files that `convert` writes, without TensorFlow and Keras."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers._internal.files.wire_format import read_fields
from keras_bert_layers._internal.lazy import extensions_library
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.cli.text_rows import TextRow, check_file
from keras_bert_layers.export.signature import TEXT_INPUTS, strings_for_onnx

SUFFIX = ".onnx"

_NUM_TOKENS, _CARD = "num_tokens", b"model_card"
_TOKENIZER = "tokenizer.json"
# The inputs of a file of ids, and the names that a preprocessor has for them.
_IDS = {"input_ids": "token_ids", "attention_mask": "padding_mask", "token_type_ids": "segment_ids"}
# Of the messages of ONNX: the numbers of the fields that are read here, and the names of `TensorProto.DataType`.
_GRAPH, _METADATA, _INITIALIZER, _DIMS, _DTYPE, _NAME = 7, 14, 5, 1, 2, 8
_DTYPES = {1: "float32", 2: "uint8", 3: "int8", 6: "int32", 7: "int64", 8: "string", 9: "bool"}


class OnnxAnswerer:
    """Answers with an ONNX file, in ONNX Runtime.

    A file of strings needs onnxruntime-extensions. A file of ids, as transformers and `save_huggingface` write it, is
    given those of single texts where the tokenizer's files are beside it or in the folder above; its answers are its
    outputs, such as logits.

    Args:
        path: the file.
        owner: the command, for errors.

    Attributes:
        inputs: each input's name -> its number of axes.
        outputs: the names of the answers.

    Raises:
        ModuleNotFoundError: ONNX Runtime or its operations of text are not installed.
        ValueError: the file cannot be run, or takes neither strings nor ids of a tokenizer beside it.
    """

    def __init__(self, path: Path, *, owner: str):
        check_file(path, owner=owner)
        folders = (path.absolute().parent, path.absolute().parent.parent)
        tokenizer = next((folder for folder in folders if (folder / _TOKENIZER).is_file()), None)
        self._session = _session(path, owner, needs_extensions=tokenizer is None)
        found = {put.name: put for put in self._session.get_inputs()}
        self._preprocessor: Any = None
        if tokenizer is not None and set(found) <= set(_IDS):
            from keras_bert_layers.checkpoints import load_preprocessor

            self._preprocessor, self.inputs = load_preprocessor(tokenizer), {TEXT_INPUTS[0]: 1}
        else:
            self.inputs = {name: len(put.shape) for name, put in found.items() if put.type == "tensor(string)"}
            if not self.inputs or set(self.inputs) - set(TEXT_INPUTS) or len(self.inputs) != len(found):
                rule = "must take strings alone, as a file of `convert` and `export` does"
                rule += f", or ids with {_TOKENIZER} beside"
                received = [f"{name}: {put.type}" for name, put in found.items()]
                raise ValueError(f"`{owner}`: {path} {rule}. Received: {received}.")
        self.outputs = [put.name for put in self._session.get_outputs() if put.name != _NUM_TOKENS]
        self._owner = owner

    def answer(self, rows: Sequence[TextRow]) -> dict[str, np.ndarray]:
        """The answers to some rows: name -> array, rows first, strings as `str`."""
        columns = zip(*(row.texts for row in rows), strict=True)
        return self.run(dict(zip(self.inputs, columns, strict=True)))

    def run(self, columns: Mapping[str, Sequence[Any]]) -> dict[str, np.ndarray]:
        """The answers to columns of strings, or of rows of strings, by the name of the input; as `answer`."""
        try:
            if self._preprocessor is None:
                given = {name: strings_for_onnx(column) for name, column in columns.items()}
            else:
                ids = self._preprocessor(list(columns[TEXT_INPUTS[0]]))
                names = (put.name for put in self._session.get_inputs())
                given = {name: np.asarray(ids[_IDS[name]], np.int64) for name in names}
            values = self._session.run(self.outputs, given)
        except Exception as error:
            raise ValueError(f"`{self._owner}`: {error}") from error
        return dict(zip(self.outputs, values, strict=True))


def _session(path: Path, owner: str, *, needs_extensions: bool) -> Any:
    """A session of ONNX Runtime, with the operations of text where they are installed."""
    try:
        import onnxruntime

        try:
            extensions = [extensions_library()]
        except ModuleNotFoundError:
            if needs_extensions:
                raise
            extensions = []
    except ModuleNotFoundError as error:
        cure = 'Install both: `python -m pip install "keras-bert-layers[onnx]"`.'
        rule = f"{path} needs onnxruntime and onnxruntime-extensions"
        raise ModuleNotFoundError(f"`{owner}`: {rule}. {cure}", name=error.name) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are raised, in one line
    for library in extensions:
        options.register_custom_ops_library(library)
    try:
        return onnxruntime.InferenceSession(str(path), options)
    except Exception as error:  # ONNX Runtime's own, without a base class
        raise ValueError(f"`{owner}`: {path} cannot be run by ONNX Runtime: {error}") from error


def onnx_facts(path: Path, *, owner: str) -> dict[str, Any]:
    """The facts of an ONNX file, as of `inspect`: what it states about itself, and its tensors.

    Raises:
        CheckpointError: it is not an ONNX file of this package.
    """
    check_file(path, owner=owner)
    try:
        fields = read_fields(path.read_bytes())
        entries = [dict(read_fields(_message(value))) for number, value in fields if number == _METADATA]
        (card,) = (json.loads(_message(entry[2])) for entry in entries if entry[1] == _CARD)
        graphs = [read_fields(_message(value)) for number, value in fields if number == _GRAPH]
        tensors = [_tensor(_message(value)) for graph in graphs for number, value in graph if number == _INITIALIZER]
        read = card["preprocessing"]
        tokenizer = {"vocabulary_size": read["vocabulary_size"], **read["tokenizer"], "max_length": read["max_length"]}
        options = {name: value for name, value in card["options"].items() if value is not None and name != "name"}
        return {
            "source": str(path),
            "layout": "onnx",
            "tasks": [{"name": card["task"], "options": options}],
            "parameters": int(card["parameters"]),
            "config": card["backbone"],
            "tokenizer": tokenizer,
            "weights": tensors,
            "other_tensors": [],
            "read_differently": [],
            "problems": {},
        }
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"  # the `repr` of a UnicodeDecodeError shows all bytes
        raise CheckpointError(f"`{owner}`: {path} is not a complete ONNX file of this package: {reason}.") from error


def _message(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("an integer where a message must be")
    return value


def _tensor(message: bytes) -> dict[str, Any]:
    fields = read_fields(message)
    values = dict(fields)
    shape = [value for number, value in fields if number == _DIMS]
    dtype = _DTYPES.get(int(values[_DTYPE]), str(values[_DTYPE]))
    return {"ours": None, "part": None, "stored": _message(values[_NAME]).decode(), "dtype": dtype, "shape": shape}
