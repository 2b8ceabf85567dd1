"""SavedModel export: named signatures, checked for TensorFlow Serving, written completely or not at all."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.files.atomic_write import atomic_write
from keras_bert_layers._internal.lazy import LazyModule, tf
from keras_bert_layers._internal.shared_graphs import shared_graphs
from keras_bert_layers.export import _operations as operations
from keras_bert_layers.export._operations import nodes_of
from keras_bert_layers.export.batching import check_batches
from keras_bert_layers.export.model_card import write_model_card
from keras_bert_layers.export.signature import Signature

saved_model_pb2 = LazyModule("tensorflow.core.protobuf.saved_model_pb2", "tensorflow")

DEFAULT = "serving_default"

GRAPH, FINGERPRINT = "saved_model.pb", "fingerprint.pb"

NEXT = "next"

# Attributes that change no value, of operations that old servers have without them.
_MARKS = ("debug_name", "grad_a", "grad_b", "grad_x", "grad_y")

_REQUESTS = Path("assets.extra") / "tf_serving_warmup_requests"

#: Signature -> requests, each a dictionary of input -> array.
Requests = Mapping[str, Sequence[Mapping[str, Any]]]


def write_saved_model(
    path: str | PathLike[str],
    signatures: Sequence[Signature],
    *,
    version: int | str | None = None,
    serving_version: str = operations.OLDEST_SERVER,
    warm_up: Requests | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Writes `signatures`, and the variables that they use, as a TensorFlow SavedModel.

    The model is written to a temporary folder and renamed when it is complete, so that no server loads half a model.
    It is checked first: the server must have every operation of the graph, no operation may need Python or XLA, and
    the first axis of every input and output must be the batch, so that a server can batch requests.

    Args:
        path: the folder to write. An existing SavedModel is replaced; a folder with anything else is refused.
        signatures: at least one. Clients that name no signature get `"serving_default"`, or the first one without it.
        version: write to the folder `path/version`, as TensorFlow Serving expects: a new whole number, or `"next"` for
            one more than the largest.
        serving_version: the oldest TensorFlow Serving that has to run the model, `"2.13"` to `"2.21"`.
        warm_up: signature -> requests, each a dictionary of input -> array, that TensorFlow Serving runs before it
            serves the model. If one fails, the model is not served. At most 1,000.
        facts: further entries of the model card, which `read_model_card` reads; must be JSON.

    Returns:
        The folder that holds the model.

    Raises:
        RuntimeError: Keras runs on a backend other than TensorFlow.
        ValueError: `path` is on another machine, such as `gs://`; the server does not have an operation; a tensor has
            no batch axis.
        FileExistsError: `path` is a file, or a folder that is not a SavedModel; the version exists.
        OSError: the folder cannot be written; the disk is full, for example. What was there is unchanged.
        ModuleNotFoundError: `warm_up` needs tensorflow-serving-api, which is not installed.

    References:
        `keras.export.ExportArchive` saves functions and variables in the same way, but in an order that differs each
        time. `tf.saved_model.save` of a Keras 3 model loses variables in the C++ loader.
    """
    folder = check_destination(path, version)
    checks.one_of("export", "serving_version", serving_version, operations.SERVER_VERSIONS)
    try:
        with atomic_write(folder, owner="export", argument="path", replace=version is None) as unfinished:
            save_functions(unfinished, signatures)
            saved = finish_graph(unfinished)
            needed = operations.check_operations(saved, serving_version)
            check_batches(saved)
            write_model_card(unfinished, facts or {}, saved, needed)
            if warm_up:
                write_requests(unfinished, warm_up)
    except FileExistsError:
        if version != NEXT:
            raise
        # Another process has taken the number since.
        return write_saved_model(
            path, signatures, version=version, serving_version=serving_version, warm_up=warm_up, facts=facts
        )
    return folder


def check_destination(path: str | PathLike[str], version: int | str | None = None) -> Path:
    """The folder to write, if a SavedModel can be written there; raises what `write_saved_model` raises otherwise."""
    if keras.backend.backend() != "tensorflow":
        raise RuntimeError(
            "`export`: a SavedModel with strings can be written on the TensorFlow backend only. Received: "
            f"KERAS_BACKEND={keras.backend.backend()!r}. Save the model with `model.save('model.keras')`, start again "
            "with KERAS_BACKEND=tensorflow, load it, and export."
        )
    if "://" in str(path):
        cure = "Export to a local folder, and copy it there."
        raise ValueError(checks.message("export", "path", "be a local folder", str(path), cure))
    path = Path(path)
    if version is not None:
        if path.exists() and (not path.is_dir() or (path / GRAPH).exists()):
            raise FileExistsError(
                "`export`: `path` must be a folder of versions where `version` is given. Received: "
                f"path={str(path)!r}, which is something else."
            )
        path = version_folder(path, version)
    may_be_replaced = path.is_dir() and ((path / GRAPH).is_file() or not any(path.iterdir()))
    if path.exists() and not may_be_replaced:
        raise FileExistsError(
            f"`export`: `path` must be new, an empty folder, or a SavedModel to replace. Received: path={str(path)!r}, "
            "which holds something else."
        )
    return path


def version_folder(path: Path, version: object) -> Path:
    """The folder `path/N` for a new version.

    Args:
        path: the folder of a model; the names of its versions' folders are numbers.
        version: the number, or `"next"` for one more than the largest.

    Raises:
        TypeError, ValueError: `version` is neither.
        FileExistsError: the version exists. A server that has loaded it would not notice a change.
    """
    taken = [int(child.name) for child in path.iterdir() if child.name.isdecimal()] if path.is_dir() else []
    free = max(taken, default=0) + 1
    if version == NEXT:
        return path / str(free)
    if isinstance(version, str):
        raise TypeError(checks.message("export", "version", "be a whole number or 'next'", version))
    version = checks.positive_integer("export", "version", version)
    if version in taken:
        raise FileExistsError(
            f"`export`: `version` must be new, as a server loads a version only once. Received: version={version} of "
            f"{str(path)!r}, which exists. The next free version is {free}."
        )
    return path / str(version)


@contextmanager
def _functions_are_graphs() -> Iterator[None]:
    """Context in which calls of functions are not inlined, as they are where functions run eagerly for a debugger."""
    run_eagerly = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(False)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(run_eagerly)


@_functions_are_graphs()
def save_functions(folder: Path, signatures: Sequence[Signature]) -> None:
    """Writes the graphs of signatures, and the variables that they use, to a new folder.

    The saved module holds functions and variables, and no Keras model: the C++ loader would lose variables of one.
    """
    module = tf.Module()
    with shared_graphs():
        traced = {signature.name: _traced(signature) for signature in signatures}
    module.weights = _variables(list(traced.values()))
    module.tables = list({id(table): table for signature in signatures for table in signature.tables}.values())
    for name, function in traced.items():
        if not hasattr(module, name):  # `signatures` holds those too
            setattr(module, name, function)
    traced.setdefault(DEFAULT, traced[signatures[0].name])
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel(max(level, logging.WARNING))  # TensorFlow would log the name of a temporary folder
    try:
        tf.saved_model.save(module, str(folder), signatures=traced)
    finally:
        logger.setLevel(level)


def _traced(signature: Signature) -> Any:
    """The graph of a signature. Saving a function that is not traced yet would trace it twice."""
    specs = [tf.TensorSpec(shape, dtype, name=name) for name, (shape, dtype) in signature.inputs.items()]
    return tf.function(signature.function, input_signature=specs, autograph=False).get_concrete_function()


def _variables(graphs: Sequence[Any]) -> list[Any]:
    """The variables of graphs in the order of their first use, so that equal weights make equal files."""
    by_handle = {id(variable.handle): variable for graph in graphs for variable in graph.variables}
    handles = dict.fromkeys(id(tensor) for graph in graphs for tensor in graph.captured_inputs)
    return [by_handle[handle] for handle in handles if handle in by_handle]


def finish_graph(folder: Path) -> Any:
    """Removes what old servers cannot read from the graph that `save_functions` wrote.

    TensorFlow Serving before 2.15 does not know `debug_name`, the name that a variable has for a debugger; before 2.16
    it does not know the marks that matrix products of gradients have for XLA.

    Returns:
        The `SavedModel` message, as it is in the folder now.
    """
    saved = saved_model_pb2.SavedModel.FromString((folder / GRAPH).read_bytes())
    for node in nodes_of(saved):
        for mark in _MARKS if node.op == "VarHandleOp" or "MatMul" in node.op else ():
            node.attr.pop(mark, None)
    (folder / GRAPH).write_bytes(saved.SerializeToString(deterministic=True))
    (folder / FINGERPRINT).unlink(missing_ok=True)
    # No public function writes the fingerprint of a changed graph; it is optional.
    with suppress(ImportError, AttributeError):
        importlib.import_module("tensorflow.python.saved_model.fingerprinting_utils").write_fingerprint(str(folder))
    return saved


def write_requests(folder: Path, requests: Requests) -> None:
    """Writes requests beside a SavedModel, where TensorFlow Serving looks for them.

    References:
        `saved_model_warmup_util.cc` of tensorflow/serving: if a request fails, or there are more than 1,000, the
        version is not served.
    """
    try:
        log_pb2 = importlib.import_module("tensorflow_serving.apis.prediction_log_pb2")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "`export`: warm-up requests need tensorflow-serving-api, which is not installed here. Install it with "
            "`pip install tensorflow-serving-api`, or give `warm_up=False`.",
            name=error.name,
        ) from error
    path = folder / _REQUESTS
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, examples in requests.items():
            for inputs in examples:
                tensors = {name: tf.make_tensor_proto(values) for name, values in inputs.items()}
                request = {"model_spec": {"signature_name": signature}, "inputs": tensors}
                log = log_pb2.PredictionLog(predict_log={"request": request})
                writer.write(log.SerializeToString(deterministic=True))
