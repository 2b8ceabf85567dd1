"""Which TensorFlow Serving has all that a graph is made of."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks

#: The first and the last TensorFlow Serving whose operations are known.
OLDEST_SERVER, NEWEST_SERVER = "2.13", "2.21"
_TABLE = Path(__file__).with_name("serving_ops.json")
_PYTHON = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
_COMPILED = "_XlaMustCompile"


def server_versions() -> list[str]:
    """The versions of TensorFlow Serving whose operations are known, the oldest first."""
    first, last = (int(version.split(".")[1]) for version in (OLDEST_SERVER, NEWEST_SERVER))
    return [f"2.{minor}" for minor in range(first, last + 1)]


def check_operations(saved: Any, serving_version: str = OLDEST_SERVER) -> str:
    """Refuses a graph that a server could not load or run.

    Args:
        saved: a `SavedModel` message.
        serving_version: the oldest TensorFlow Serving that has to run it, one of `server_versions()`.

    Returns:
        The oldest TensorFlow Serving that has all operations, and all attributes that are not left at their defaults.

    Raises:
        ValueError: an operation or an attribute that no such server has; one that runs Python; what XLA must compile.
    """
    needed = OLDEST_SERVER
    for meta_graph in saved.meta_graphs:
        functions = {function.signature.name for function in meta_graph.graph_def.library.function}
        defaults = _defaults(meta_graph)
        for place, node in _nodes(meta_graph.graph_def):
            if node.op in functions:
                continue
            version = _version_of(node, place, defaults)
            if _number(version) > _number(serving_version):
                _refuse(f"{node.op!r} in {place}, which came in {version}", serving_version, version)
            needed = max(needed, version, key=_number)
    return needed


def nodes_of(graph_def: Any) -> Iterator[Any]:
    """Every node of a graph and of the functions in its library."""
    return (node for _, node in _nodes(graph_def))


def _nodes(graph_def: Any) -> Iterator[tuple[str, Any]]:
    """The same, and where each stands, for errors."""
    yield from (("the graph", node) for node in graph_def.node)
    for function in graph_def.library.function:
        place = f"the function {function.signature.name!r}"
        if function.attr[_COMPILED].b:
            _refuse_compiled(place)
        yield from ((place, node) for node in function.node_def)


def _version_of(node: Any, place: str, defaults: dict[tuple[str, str], Any]) -> str:
    """The TensorFlow Serving in which a node's operation, and those of its attributes that matter, came."""
    if node.op in _PYTHON:
        cure = "Compute it with TensorFlow's operations, as `tf.py_function` and `tf.numpy_function` run here only."
        raise ValueError(_sentence(f"{node.op!r} in {place}, which runs Python", cure))
    if node.attr[_COMPILED].b if _COMPILED in node.attr else False:
        _refuse_compiled(place)
    operations, attributes = _known()
    if node.op not in operations:
        cure = f"None of the versions {OLDEST_SERVER} to {NEWEST_SERVER} is known to link it."
        raise ValueError(_sentence(f"{node.op!r} in {place}", cure))
    version = operations[node.op]
    for name, value in node.attr.items():
        came = attributes.get((node.op, name))
        if came is not None and value != defaults.get((node.op, name)):
            version = max(version, came, key=_number)
    return version


def _refuse_compiled(place: str) -> None:
    cure = "A server compiles only when it is started with its flags for XLA. Leave out `jit_compile=True`."
    raise ValueError(_sentence(f"`jit_compile=True` in {place}, which XLA must compile", cure))


def _refuse(found: str, serving_version: str, version: str) -> None:
    cure = f"Where no server is older, give `serving_version={version!r}`."
    raise ValueError(_sentence(found, cure, serving_version))


def _sentence(found: str, cure: str, serving_version: str = OLDEST_SERVER) -> str:
    rule = f"be made of what TensorFlow Serving has since {serving_version}"
    return f"`export`: the graph must {rule}. Received: {found}. {cure}"


def check_serving_version(version: Any) -> str:
    """`version` if its operations are known; ValueError otherwise."""
    return checks.one_of("export", "serving_version", version, server_versions())


def _number(version: str) -> int:
    return int(version.split(".")[1])


def _defaults(meta_graph: Any) -> dict[tuple[str, str], Any]:
    """The default of each attribute: a server drops attributes that it does not know where they have that."""
    ops = meta_graph.meta_info_def.stripped_op_list.op
    return {(op.name, attr.name): attr.default_value for op in ops for attr in op.attr}


@functools.cache
def _known() -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    """The version in which each operation came, and each attribute of an older one."""
    table = json.loads(_TABLE.read_text(encoding="utf-8"))
    operations = {name: version for version, names in table["operations"].items() for name in names}
    attributes = {
        (name, attribute): version
        for version, changed in table["attributes"].items()
        for name, names in changed.items()
        for attribute in names
    }
    return operations, attributes
