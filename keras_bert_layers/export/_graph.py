"""Functions and their variables as a SavedModel, the same each time."""

from __future__ import annotations

import hashlib
import importlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keras_bert_layers._internal.lazy import LazyModule, tf
from keras_bert_layers._internal.shared_graphs import shared_graphs
from keras_bert_layers.export._canonical import make_canonical
from keras_bert_layers.export.signature import Signature

saved_model_pb2 = LazyModule("tensorflow.core.protobuf.saved_model_pb2", "tensorflow")
fingerprint_pb2 = LazyModule("tensorflow.core.protobuf.fingerprint_pb2", "tensorflow")

DEFAULT = "serving_default"
GRAPH, FINGERPRINT, INDEX = "saved_model.pb", "fingerprint.pb", "variables/variables.index"


def save_functions(folder: Path, signatures: Sequence[Signature]) -> None:
    """Writes the graphs of the functions of signatures and the variables that they use to a new folder.

    What is saved is a module of functions and variables, in the order in which the functions first use them. A module
    that held the model would lose variables in the C++ loader.
    """
    module = tf.Module()
    with shared_graphs():
        traced = {signature.name: _traced(signature) for signature in signatures}
    module.weights = _variables(list(traced.values()))
    for name, function in traced.items():
        if not hasattr(module, name):  # such a name is asked for by `signatures` alone
            setattr(module, name, function)
    traced.setdefault(DEFAULT, traced[signatures[0].name])
    with _no_information():
        tf.saved_model.save(module, str(folder), signatures=traced)


@contextmanager
def _no_information() -> Iterator[None]:
    """Within, TensorFlow logs warnings and errors only: in a notebook it would name a folder that is gone already."""
    logger = tf.get_logger()
    before = logger.level
    logger.setLevel(max(before, logging.WARNING))
    try:
        yield
    finally:
        logger.setLevel(before)


def _traced(signature: Signature) -> Any:
    """The graph of a signature; of a function that is not traced yet, saving it would make two."""
    specs = [tf.TensorSpec(shape, dtype, name=name) for name, (shape, dtype) in signature.inputs.items()]
    return tf.function(signature.function, input_signature=specs, autograph=False).get_concrete_function()


def _variables(graphs: Sequence[Any]) -> list[Any]:
    """The variables of graphs, in the order in which they are met; TensorFlow itself lists them in no order."""
    by_handle = {id(variable.handle): variable for graph in graphs for variable in graph.variables}
    met = dict.fromkeys(id(tensor) for graph in graphs for tensor in graph.captured_inputs)
    return [by_handle[handle] for handle in met if handle in by_handle]


def read_graph(folder: Path) -> Any:
    """The `SavedModel` message of a folder."""
    return saved_model_pb2.SavedModel.FromString((folder / GRAPH).read_bytes())


def write_graph(folder: Path, saved: Any) -> None:
    """Writes a `SavedModel` message in the place of the one that is there, in its canonical form."""
    make_canonical(saved)
    content = saved.SerializeToString(deterministic=True)
    (folder / GRAPH).write_bytes(content)
    _write_fingerprint(folder)


def _write_fingerprint(folder: Path) -> None:
    """A fingerprint of what is there now, whose random part follows from the rest; none where TensorFlow makes none."""
    path = folder / FINGERPRINT
    path.unlink(missing_ok=True)
    try:
        # No public function writes one.
        importlib.import_module("tensorflow.python.saved_model.fingerprinting_utils").write_fingerprint(str(folder))
    except (ImportError, AttributeError):
        return
    fingerprint = fingerprint_pb2.FingerprintDef.FromString(path.read_bytes())
    digest = hashlib.sha256((folder / GRAPH).read_bytes() + (folder / INDEX).read_bytes()).digest()
    fingerprint.uuid = str(int.from_bytes(digest[:16], "big"))
    path.write_bytes(fingerprint.SerializeToString(deterministic=True))
