"""The oldest TensorFlow Serving that can run a graph, from a table of operations (`serving_ops.json`)."""

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: The versions of TensorFlow Serving whose operations are known, the oldest first.
SERVER_VERSIONS = [f"2.{minor}" for minor in range(13, 22)]
OLDEST_SERVER = SERVER_VERSIONS[0]
_TABLE = Path(__file__).with_name("serving_ops.json")
_PYTHON = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
_COMPILED = "_XlaMustCompile"


def check_operations(saved: Any, serving_version: str) -> str:
    """Checks that a server can load and run a graph.

    Args:
        saved: a `SavedModel` message.
        serving_version: the oldest TensorFlow Serving that has to run it, one of `SERVER_VERSIONS`.

    Returns:
        The oldest TensorFlow Serving that has all operations, and all attributes that differ from their defaults.

    Raises:
        ValueError: an operation or an attribute that no such server has, that runs Python or that XLA must compile.
    """
    needed = OLDEST_SERVER
    for meta_graph in saved.meta_graphs:
        functions = {function.signature.name for function in meta_graph.graph_def.library.function}
        ops = meta_graph.meta_info_def.stripped_op_list.op
        defaults = {(op.name, attribute.name): attribute.default_value for op in ops for attribute in op.attr}
        for location, node in _nodes(meta_graph.graph_def):
            if node.op in functions:
                continue
            version = _version_of(node, location, defaults)
            if _minor(version) > _minor(serving_version):
                cure = f"If no server is older, give `serving_version={version!r}`."
                raise _error(f"{node.op!r} in {location}, which came in {version}", cure, serving_version)
            needed = max(needed, version, key=_minor)
    return needed


def nodes_of(saved: Any) -> Iterator[Any]:
    """Every node of the graphs of a `SavedModel` message, and of the functions in their libraries."""
    return (node for meta_graph in saved.meta_graphs for _, node in _nodes(meta_graph.graph_def))


def _nodes(graph_def: Any) -> Iterator[tuple[str, Any]]:
    """Every node, with its location for errors."""
    yield from (("the graph", node) for node in graph_def.node)
    for function in graph_def.library.function:
        location = f"the function {function.signature.name!r}"
        _refuse_compiled(function, location)
        yield from ((location, node) for node in function.node_def)


def _version_of(node: Any, location: str, defaults: dict[tuple[str, str], Any]) -> str:
    """The first TensorFlow Serving that has the operation of a node.

    A server drops attributes that it does not know if they have their default; the others count too.
    """
    if node.op in _PYTHON:
        cure = (
            "Compute it with TensorFlow's operations, as `tf.py_function` and `tf.numpy_function` run here only. "
            "Tokenizers need tensorflow-text for that."
        )
        raise _error(f"{node.op!r} in {location}, which runs Python", cure)
    _refuse_compiled(node, location)
    operations, attributes = _known()
    if node.op not in operations:
        cure = f"None of the versions {OLDEST_SERVER} to {SERVER_VERSIONS[-1]} is known to link it."
        raise _error(f"{node.op!r} in {location}", cure)
    changed = [(node.op, name) for name, value in node.attr.items() if value != defaults.get((node.op, name))]
    return max([operations[node.op], *(attributes.get(key, OLDEST_SERVER) for key in changed)], key=_minor)


def _refuse_compiled(message: Any, location: str) -> None:
    """Raises a ValueError for a node or a function that asks for XLA."""
    if _COMPILED in message.attr and message.attr[_COMPILED].b:
        cure = "A server compiles only when it is started with its flags for XLA. Leave out `jit_compile=True`."
        raise _error(f"`jit_compile=True` in {location}, which XLA must compile", cure)


def _error(found: str, cure: str, serving_version: str = OLDEST_SERVER) -> ValueError:
    rule = f"be made of what TensorFlow Serving has since {serving_version}"
    return ValueError(f"`export`: the graph must {rule}. Received: {found}. {cure}")


def _minor(version: str) -> int:
    return int(version.split(".")[1])


@functools.cache
def _known() -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    """Operation -> the version that it came in, and (operation, attribute) -> that of an attribute added later."""
    table = json.loads(_TABLE.read_text(encoding="utf-8"))
    operations = {name: version for version, names in table["operations"].items() for name in names}
    attributes = {
        (name, attribute): version
        for version, changed in table["attributes"].items()
        for name, names in changed.items()
        for attribute in names
    }
    return operations, attributes
