"""Writing functions and their variables as a SavedModel."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from keras_bert_layers._internal.lazy import LazyModule, tf
from keras_bert_layers._internal.shared_graphs import shared_graphs
from keras_bert_layers.export._operations import nodes_of
from keras_bert_layers.export.signature import Signature

saved_model_pb2 = LazyModule("tensorflow.core.protobuf.saved_model_pb2", "tensorflow")

DEFAULT = "serving_default"
GRAPH, FINGERPRINT = "saved_model.pb", "fingerprint.pb"


def save_functions(folder: Path, signatures: Sequence[Signature]) -> None:
    """Writes the graphs of signatures, and the variables that they use, to a new folder.

    The saved module holds functions and variables, and no Keras model: the C++ loader would lose variables of one.
    """
    module = tf.Module()
    with shared_graphs():
        traced = {signature.name: _traced(signature) for signature in signatures}
    module.weights = _variables(list(traced.values()))
    for name, function in traced.items():
        if not hasattr(module, name):  # `signatures` holds those too
            setattr(module, name, function)
    traced.setdefault(DEFAULT, traced[signatures[0].name])
    with _no_information():
        tf.saved_model.save(module, str(folder), signatures=traced)


@contextmanager
def _no_information() -> Iterator[None]:
    """Keeps TensorFlow from logging the name of a temporary folder, which a notebook would show."""
    logger = tf.get_logger()
    before = logger.level
    logger.setLevel(max(before, logging.WARNING))
    try:
        yield
    finally:
        logger.setLevel(before)


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

    TensorFlow Serving before 2.15 does not know `debug_name`, the name that a variable has for a debugger.

    Returns:
        The `SavedModel` message, as it is in the folder now.
    """
    saved = saved_model_pb2.SavedModel.FromString((folder / GRAPH).read_bytes())
    for node in nodes_of(saved):
        if node.op == "VarHandleOp":
            node.attr.pop("debug_name", None)
    (folder / GRAPH).write_bytes(saved.SerializeToString(deterministic=True))
    (folder / FINGERPRINT).unlink(missing_ok=True)
    # No public function writes the fingerprint of a changed graph; it is optional.
    with suppress(ImportError, AttributeError):
        importlib.import_module("tensorflow.python.saved_model.fingerprinting_utils").write_fingerprint(str(folder))
    return saved
