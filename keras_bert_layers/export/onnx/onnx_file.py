"""ONNX export: a task as one file that takes strings, for ONNX Runtime."""

from __future__ import annotations

import contextlib
import importlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.files.atomic_write import atomic_write
from keras_bert_layers._internal.files.disk_space import check_writable, disk_fault
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.export.onnx._encoder_graph import (
    Int8Products,
    MeasuredProducts,
    Products,
    activation,
    dense,
    first_tokens,
    hidden_states,
    layer_norm,
)
from keras_bert_layers.export.onnx._graph import INT32, INT64, Answer, Graph, Tensor
from keras_bert_layers.export.onnx._rows_graph import Rows, rows_of
from keras_bert_layers.export.onnx._tokenizer_graph import TokenizerGraph, Tokens, bounded
from keras_bert_layers.export.signature import DEFAULT_MAX_BYTES, check_max_bytes
from keras_bert_layers.export.text_task import refuse_columns
from keras_bert_layers.layers import HeadTransform
from keras_bert_layers.layers.adapters import refuse_adapters
from keras_bert_layers.preprocessing import BertTokenizer

if TYPE_CHECKING:
    import keras

    from keras_bert_layers.export.text_task import TextTask
    from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
    from keras_bert_layers.preprocessing.tokenizer import Tokenizer

if TYPE_CHECKING:
    import keras

# A protocol buffer holds 2 GB, of which the vocabulary and the tables take some. Smaller tensors stay in it.
MAX_BYTES, _LEAST_MOVED = 2**31 - 2**27, 1024
_IDS = ("input_ids", "attention_mask", "token_type_ids")
_SUFFIX = ".onnx"
_NUM_TOKENS, _BYTES_CUT = "num_tokens", "bytes_cut"
CARD = "model_card"
_CURE = "Export a SavedModel."
_FLOAT32, _INT8 = "float32", "int8"
# Rows of random ids, by which the columns with large numbers are found.
_NUM_MEASURED, _LENGTH_MEASURED = 16, 64

#: The signatures of a task that an ONNX file can have: name -> a function of an `OnnxModel` and the texts.
Functions = Mapping[str, Callable[..., Mapping[str, Answer]]]


def write_onnx(
    path: str | PathLike[str],
    task: TextTask,
    *,
    dtype: str = "float32",
    signature: str = "serving_default",
    max_bytes: int | None = DEFAULT_MAX_BYTES,
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> Path:
    """Writes an ONNX file with the tokenizer and the weights inside: texts in, answers out.

    ONNX Runtime runs it with the operations of onnxruntime-extensions.

    Args:
        path: the file, `*.onnx`. It is written completely or not at all; a file there is replaced. Of more than 2 GB
            of weights, the large ones are in a file beside it, `*.onnx.data`.
        task: a task whose tokenizer is a `BertTokenizer`.
        dtype: `"float32"`; or `"int8"` for products of integers in the encoder's blocks, with a scale for each token
            and each column of the weights; the few columns of large numbers stay float32, as embeddings and the head
            do. It needs the package onnxruntime.
        signature: whose inputs and outputs the file has, a key of the task's `onnx_functions`.
        max_bytes: how many bytes of each text the file reads, at least 16, or None for all; the output `"bytes_cut"`,
            int32 `(batch,)`, is how many it has not read.
        facts: what the file states about itself, as JSON under the key `"model_card"` of its metadata.

    Returns:
        The path.

    Raises:
        ModuleNotFoundError: the package onnx is not installed, or onnxruntime for int8.
        ValueError: the path has another suffix; the task has something that an ONNX file cannot hold, which the message
            names.
    """
    path = check_path(path)
    checks.one_of("export", "dtype", dtype, [_FLOAT32, _INT8])
    check_task(task, signature)  # before the extra is asked for, which would not help
    return write_model(path, lambda: _model(task, dtype, signature, check_max_bytes("export", max_bytes)), facts)


def write_onnx_of_ids(path: Path, task: TextTask, *, dtype: str = "float32") -> Path:
    """Writes an ONNX file of ids with the names of transformers' own exports, such as transformers.js reads.

    The inputs are `input_ids`, `attention_mask` and, for an encoder with segments, `token_type_ids`, int64 `(batch,
    sequence)`; the outputs are the task's `onnx_outputs`.

    Args:
        path: the file.
        task: a task that has `onnx_outputs`.
        dtype: as for `write_onnx`.

    Raises:
        ModuleNotFoundError, ValueError: as for `write_onnx`.
    """

    def make() -> Any:
        model, shape = OnnxModel(task, dtype), (None, None)
        names = _IDS[: 3 if task.backbone.config.num_segments else 2]
        ids, mask, *segments = (model.graph.input(name, INT64) for name in names)
        rows = Rows(ids, segments[0].cast(INT32) if segments else None, mask.cast(INT32))
        answers = task.onnx_outputs(model, rows)
        return model.graph.model(dict.fromkeys(names, shape), answers, INT64)

    return write_model(path, make, {})


def check_path(path: str | PathLike[str]) -> Path:
    """The path of an ONNX file; ValueError for another suffix."""
    path = Path(path)
    if path.suffix != _SUFFIX:
        raise ValueError(checks.message("export", "filepath", f"end with {_SUFFIX!r}", str(path)))
    return path


def write_model(path: Path, make: Callable[[], Any], facts: Mapping[str, Any]) -> Path:
    """Writes a model that is made once the package onnx is found; the weights of a large one go to a file beside it."""
    with needed("onnx"):
        onnx = importlib.import_module("onnx")
    check_writable(path, owner="export", argument="filepath")
    model = make()
    if facts:
        onnx.helper.set_model_props(model, {CARD: json.dumps(dict(facts), sort_keys=True)})
    weights = path.with_name(f"{path.name}.data")
    with contextlib.ExitStack() as both:  # neither of the two replaces an old file before both are complete
        unfinished = both.enter_context(atomic_write(path, owner="export", argument="filepath"))
        tensors = model.graph.initializer
        num_bytes = sum(len(tensor.raw_data) + sum(map(len, tensor.string_data)) for tensor in tensors)
        is_large = num_bytes > MAX_BYTES
        if is_large:
            old = both.enter_context(_back_after_errors(path, unfinished.with_name("old")))
            moved = both.enter_context(atomic_write(weights, owner="export", argument="filepath"))
            with moved.open("wb") as file:
                _move_weights(model, weights.name, file)
        unfinished.write_bytes(model.SerializeToString(deterministic=True))
        was_there = path.is_file()
        if is_large and was_there:  # a killed process must not leave an old model beside new weights
            path.rename(old)
    if was_there and not is_large:
        weights.unlink(missing_ok=True)  # of an old file
    return path


@contextlib.contextmanager
def _back_after_errors(path: Path, moved: Path) -> Iterator[Path]:
    """Yields where the block may move a file to; after an exception it is moved back."""
    try:
        yield moved
    except BaseException:
        if moved.exists():
            moved.rename(path)
        raise


@contextlib.contextmanager
def needed(package: str) -> Iterator[None]:
    """ModuleNotFoundError with the cure if a package of the extra `onnx` is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        cure = 'Install it: `python -m pip install "keras-bert-layers[onnx]"`.'
        raise ModuleNotFoundError(f"`export`: an ONNX file needs the package {package}. {cure}") from error


def _move_weights(model: keras.Model, name: str, file: Any) -> None:
    """Moves the large tensors of a model to a file, which ONNX Runtime looks for beside the model's."""
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) >= _LEAST_MOVED:
            place = {"location": name, "offset": file.tell(), "length": file.write(tensor.raw_data)}
            for key, value in place.items():
                tensor.external_data.add(key=key, value=str(value))
            tensor.data_location = tensor.EXTERNAL
            tensor.ClearField("raw_data")


class OnnxModel:
    """What a task builds its answers of, in an ONNX file: rows of ids, hidden states and vectors.

    Args:
        task: the task.
        dtype: in what its encoders multiply with their weights, `"float32"` or `"int8"`.
        graph: what operations are added to; None for a new one.

    Attributes:
        graph: what operations are added to.
        num_tokens: how many tokens are read of each text or pair, int32 `(batch,)`; None before `rows` has read them.
    """

    def __init__(self, task: TextTask, dtype: str, graph: Graph | None = None):
        refuse_adapters("export", task)
        self.graph = graph or Graph()
        self.num_tokens: Tensor | None = None
        self._task, self._dtype = task, dtype
        self._products: dict[int, Products] = {}
        self._tokenizers: dict[int, TokenizerGraph] = {}

    def tokenizer(self, tokenizer: Tokenizer) -> TokenizerGraph:
        """The operations of a tokenizer."""
        return self._tokenizers.setdefault(id(tokenizer), TokenizerGraph(tokenizer))

    def rows(self, *texts: Tensor, preprocessor: Any = None, prompt: str | None = None) -> Rows:
        """Texts or pairs as rows of ids.

        Args:
            *texts: strings `(batch,)`, one tensor or two.
            preprocessor: a `BertPreprocessor`; None for the task's.
            prompt: what is put before the first text; None for the task's.
        """
        preprocessor = self._task.preprocessor if preprocessor is None else preprocessor
        prompt = self._task.pipeline.prompt if prompt is None else prompt
        first, *others = texts
        first = self.graph.add("StringConcat", self.graph.constant(prompt), first) if prompt else first
        tokenizer = self.tokenizer(preprocessor.tokenizer)
        return self.framed([tokenizer.tokens(text) for text in (first, *others)], preprocessor)

    def framed(self, tokens: list[Tokens], preprocessor: TextLayer | None) -> Rows:
        """The tokens of texts or of pairs as rows of ids."""
        rows = rows_of(tokens, preprocessor)
        self.num_tokens = rows.num_tokens
        return rows

    def hidden(self, rows: Rows, backbone: BertBackbone | None = None, **options: bool) -> Tensor:
        """The last hidden states, by `hidden_states`, of the task's backbone if it is None."""
        backbone = self._task.backbone if backbone is None else backbone
        if id(backbone) not in self._products:
            preprocessor = getattr(self._task, "preprocessor", None)
            is_exact = self._dtype == _FLOAT32
            products = Products() if is_exact else Int8Products(_largest_inputs(backbone, preprocessor))
            self._products[id(backbone)] = products
        return hidden_states(rows, backbone, self._products[id(backbone)], **options)

    def pooled_output(self, rows: Rows) -> Tensor:
        """The backbone's `"pooled_output"`, float32 `(batch, hidden_dim)`."""
        return self.pooler(self.hidden(rows, first_token_only=True))

    def pooler(self, hidden: Tensor) -> Tensor:
        """What the backbone's pooler makes of hidden states."""
        backbone = self._task.backbone
        pooler = backbone.get_layer("pooler")
        if backbone.parts.pooling == "mean":
            raise ValueError(checks.message("export", "backbone.parts.pooling", "be 'first'", "mean", _MEAN))
        return _transformed(first_tokens(hidden), pooler)

    def head_states(self, rows: Rows) -> Tensor:
        """The hidden states that a head on tokens reads."""
        hidden = self.hidden(rows)
        transform = next((layer for layer in self._task.layers if layer.name == "head_transform"), None)
        return hidden if transform is None else _transformed(hidden, transform)


_MEAN = "An ONNX file has no pooler of a mean yet. Export a SavedModel."


def _transformed(hidden: Tensor, layer: keras.layers.Layer) -> Tensor:
    """What a `Pooler` or a `HeadTransform` makes of vectors."""
    hidden = activation(dense(hidden, layer.dense), layer.activation)
    return layer_norm(hidden, layer.layer_norm) if isinstance(layer, HeadTransform) else hidden


def _largest_inputs(backbone: BertBackbone, preprocessor: TextLayer | None) -> dict[int, np.ndarray]:
    """The largest number in each column of the inputs of a backbone's dense layers, by the layer's `id`.

    It is measured on rows of random ids, in which the columns with large numbers are those of texts.
    """
    with needed("onnxruntime"):
        runtime = importlib.import_module("onnxruntime")
    graph, products = Graph(), MeasuredProducts()
    shape = _NUM_MEASURED, min(_LENGTH_MEASURED, backbone.config.max_sequence_length)
    ids = np.random.default_rng(0).integers(backbone.config.vocabulary_size, size=shape)
    if preprocessor is not None:
        ids[:, 0], ids[:, -1] = preprocessor.tokenizer.start_id, preprocessor.tokenizer.separator_id
    tensor = graph.constant(ids)
    hidden_states(Rows(tensor, None, tensor.filled(1, INT32)), backbone, products)
    model = graph.model({}, {str(key): Answer(largest, (None,)) for key, largest in products.largest.items()})
    try:
        with tempfile.TemporaryDirectory() as folder:  # a message of more than 2 GB cannot be passed
            path = Path(folder) / f"measured{_SUFFIX}"
            importlib.import_module("onnx").save_model(model, path, save_as_external_data=True)
            found = runtime.InferenceSession(path).run(None, {})
    except OSError as error:  # not of the disk that the file goes to
        raise disk_fault(error, Path(tempfile.gettempdir()), owner="export", argument="TMPDIR") or error from error
    return dict(zip(products.largest, found, strict=True))


def last_hidden_state(model: OnnxModel, rows: Rows) -> dict[str, Answer]:
    """The outputs for rows of ids in an ONNX file, with the names of transformers' exports: `last_hidden_state`."""
    return {"last_hidden_state": Answer(model.hidden(rows), (None, None, None))}


def check_task(task: TextTask, signature: str = "serving_default") -> Any:
    """The function of a signature; ValueError for what an ONNX file cannot have."""
    functions, name = task.onnx_functions(), type(task).__name__
    if not functions or not isinstance(task.backbone, BertBackbone):
        rule = "be a task that has `onnx_functions`, of a BertBackbone, in an ONNX file with strings"
        raise ValueError(checks.message("export", "task", rule, name, _CURE))
    rule = "read texts by a BertPreprocessor of a BertTokenizer in an ONNX file"
    tokenizer = getattr(task.preprocessor, "tokenizer", None)
    if not isinstance(tokenizer, BertTokenizer):
        raise ValueError(checks.message("export", "task", rule, type(tokenizer).__name__, _CURE))
    refuse_columns("export", task, f"A FeatureSpace runs in TensorFlow, and an ONNX file without it. {_CURE}")
    checks.one_of("export", "signatures", signature, list(functions))
    if task.long_texts is not None:
        rule = "be None in an ONNX file, which cuts long texts at their end"
        raise ValueError(checks.message("export", "long_texts", rule, task.long_texts, _CURE))
    return functions[signature]


def _model(task: TextTask, dtype: str, signature: str, max_bytes: int | None) -> Any:
    function, inputs = check_task(task, signature), task.text_inputs()
    model, cut = OnnxModel(task, dtype), []
    texts = [model.graph.input(name) for name in inputs]
    if max_bytes is not None:
        for index, (text, (shape, _)) in enumerate(zip(texts, inputs.values(), strict=True)):
            texts[index], lost = _bounded(text, len(shape), max_bytes)
            cut.append(lost)
    answers = function(model, *texts)
    if model.num_tokens is not None:
        answers = {**answers, _NUM_TOKENS: Answer(model.num_tokens, (None,))}
    if cut:
        answers = {**answers, _BYTES_CUT: Answer(sum(cut[1:], cut[0]).cast(INT32), (None,))}
    return model.graph.model({name: shape for name, (shape, _) in inputs.items()}, answers)


def bounded_input(texts: Tensor, max_bytes: int | None) -> tuple[Tensor, dict[str, Answer]]:
    """Texts `[batch]` without what follows their first bytes, and how many bytes these are as an answer of the file."""
    if max_bytes is None:
        return texts, {}
    texts, lost = bounded(texts, max_bytes)
    return texts, {_BYTES_CUT: Answer(lost.cast(INT32), (None,))}


def _bounded(texts: Tensor, axes: int, max_bytes: int) -> tuple[Tensor, Tensor]:
    """Texts of one axis or two, each without what follows its first bytes, and how many bytes each row has lost."""
    found, lost = bounded(texts if axes == 1 else texts.reshape(-1), max_bytes)
    if axes == 1:
        return found, lost
    return found.reshape(texts.shape()), lost.reshape(texts.shape()).reduced("Sum", 1)
