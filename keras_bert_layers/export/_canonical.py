"""A SavedModel's graph without what differs from one process to the next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from keras_bert_layers.export._operations import nodes_of

# TensorFlow ends the names of functions, and of gradients, with how much the process has traced before.
_COUNTER = re.compile(r"[_-]\d+$")
_GRADIENT = "_gradient_op_type"
_GIVEN_NAME = "_user_specified_name"


def make_canonical(saved: Any) -> None:
    """Renames and sorts in place what has no meaning, so that equal models are equal bytes.

    Functions are numbered in the order in which the graph calls them. The names that variables have for a debugger go:
    TensorFlow Serving before 2.15 does not know the attribute.

    Args:
        saved: a `SavedModel` message.
    """
    for meta_graph in saved.meta_graphs:
        graph = meta_graph.graph_def
        names = _new_names(graph)
        rank = {name: place for place, name in enumerate(names)}
        library = sorted(graph.library.function, key=lambda function: rank[function.signature.name])
        functions = [type(function).FromString(function.SerializeToString()) for function in library]
        del graph.library.function[:]
        graph.library.function.extend(functions)
        asked = set(meta_graph.object_graph_def.concrete_functions)
        for function in graph.library.function:
            if function.signature.name not in asked:  # of those, a caller knows the arguments by name
                _number_arguments(function)
            function.signature.name = names[function.signature.name]
            _rename_attributes(function.attr, names)
            for argument in function.arg_attr.values():
                if argument.attr[_GIVEN_NAME].s.isdigit():  # the count again, of what has no name
                    del argument.attr[_GIVEN_NAME]
        for gradient in graph.library.gradient:
            gradient.function_name = names.get(gradient.function_name, gradient.function_name)
            gradient.gradient_func = names.get(gradient.gradient_func, gradient.gradient_func)
        gradients = _Numbers()
        for node in nodes_of(graph):
            node.op = names.get(node.op, node.op)
            _rename_attributes(node.attr, names)
            if _GRADIENT in node.attr:
                node.attr[_GRADIENT].s = gradients.name(node.attr[_GRADIENT].s.decode(), "-").encode()
            if node.op == "VarHandleOp" and "debug_name" in node.attr:
                del node.attr["debug_name"]
        for registered in graph.library.registered_gradients:
            registered.registered_op_type = gradients.name(registered.registered_op_type, "-")
            registered.gradient_func = names.get(registered.gradient_func, registered.gradient_func)
        _rename_objects(meta_graph, names)


class _Numbers:
    """Names with a count of their own in the place of the process's."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}

    def name(self, old: str, separator: str) -> str:
        """The new name of an old one, the same each time."""
        if old not in self.given:
            self.given[old] = f"{_COUNTER.sub('', old)}{separator}{len(self.given)}"
        return self.given[old]


def _new_names(graph: Any) -> dict[str, str]:
    """Old name -> new one of every function, in the order of the calls."""
    functions = {function.signature.name: function for function in graph.library.function}
    numbers = _Numbers()

    def visit(nodes: Any) -> None:
        for name in _called(nodes):
            if name in functions and name not in numbers.given:
                numbers.name(name, "_")
                visit(functions[name].node_def)

    visit(graph.node)
    for name in sorted(functions, key=lambda name: _COUNTER.sub("", name)):  # what nothing calls
        numbers.name(name, "_")
    return numbers.given


def _called(nodes: Any) -> Iterator[str]:
    for node in nodes:
        yield node.op
        for key in sorted(node.attr):
            value = node.attr[key]
            yield value.func.name
            yield from (function.name for function in value.list.func)


def _number_arguments(function: Any) -> None:
    """Gives a function's arguments and results numbers for names; many have the process's count in theirs."""
    taken = {node.name for node in function.node_def}
    new = {}
    for number, argument in enumerate(function.signature.input_arg):
        name = f"argument_{number}"
        while name in taken:
            name += "_"
        new[argument.name] = name
        argument.name = name
    for node in function.node_def:
        node.input[:] = [_with_new_name(value, new) for value in node.input]
    results = {argument.name: f"result_{number}" for number, argument in enumerate(function.signature.output_arg)}
    for argument in function.signature.output_arg:
        argument.name = results[argument.name]
    values = {results[name]: _with_new_name(value, new) for name, value in function.ret.items()}
    function.ret.clear()
    function.ret.update(values)


def _with_new_name(tensor: str, new: dict[str, str]) -> str:
    """A tensor as `name`, `name:0` or `node:output:0`, the name of an argument replaced; `^node` as it is."""
    name, colon, rest = tensor.partition(":")
    return f"{new.get(name, name)}{colon}{rest}"


def _rename_attributes(attributes: Any, names: dict[str, str]) -> None:
    for key in attributes:
        value = attributes[key]
        for function in ([value.func] if value.HasField("func") else []) + list(value.list.func):
            function.name = names.get(function.name, function.name)


def _rename_objects(meta_graph: Any, names: dict[str, str]) -> None:
    """Renames the functions where the objects and the aliases name them."""
    objects = meta_graph.object_graph_def
    concrete = dict(objects.concrete_functions)
    objects.concrete_functions.clear()
    for name, function in concrete.items():
        objects.concrete_functions[names.get(name, name)].CopyFrom(function)
    for node in objects.nodes:
        found = [names.get(name, name) for name in node.function.concrete_functions]
        if found:
            node.function.concrete_functions[:] = found
        bare = node.bare_concrete_function
        if bare.concrete_function_name:
            bare.concrete_function_name = names.get(bare.concrete_function_name, bare.concrete_function_name)
        if node.captured_tensor.concrete_function:
            captured = node.captured_tensor
            captured.concrete_function = names.get(captured.concrete_function, captured.concrete_function)
    aliases = dict(meta_graph.meta_info_def.function_aliases)
    meta_graph.meta_info_def.function_aliases.clear()
    for name, alias in aliases.items():
        meta_graph.meta_info_def.function_aliases[names.get(name, name)] = alias
