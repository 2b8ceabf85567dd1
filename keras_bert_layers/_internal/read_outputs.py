"""Models in models on torch: of an inner model, only the outputs that the outer one reads are computed.

TensorFlow and JAX drop from a compiled step what nobody reads. torch runs every layer: a task of hidden states would
also compute BERT's last block and pooler for the first token, and a classifier the last block for every token.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

import keras

Places = tuple[int, ...]

# The places of the outputs of each inner model, by its `id`, that the model which runs now reads.
_read_now: ContextVar[Mapping[int, Places] | None] = ContextVar("_read_now", default=None)


def run_through_graph(run: Callable[..., Any], model: keras.Model, inputs: Any, **functions: Any) -> Any:
    """Runs a functional model; an output that the model around it does not read is None on torch.

    Args:
        run: Keras's method, of a model or function.
        model: the model.
        inputs: its inputs, flat.
        **functions: what else the method takes.
    """
    if keras.backend.backend() != "torch" or any(keras.backend.is_keras_tensor(x) for x in keras.tree.flatten(inputs)):
        return run(model, inputs, **functions)
    places = (_read_now.get() or {}).get(id(model), ())
    own = vars(model).get("_read_outputs")
    if own is None or own.owner != id(model):
        own = vars(model)["_read_outputs"] = _Graphs(model, run)
    token = _read_now.set(own.read)
    try:
        if len(places) in (0, len(model.outputs)):
            return run(model, inputs, **functions)
        if places not in own.graphs:
            own.graphs[places] = keras.Function(model.inputs, [model.outputs[place] for place in places])
        computed = dict(zip(places, run(own.graphs[places], inputs, **functions), strict=True))
    finally:
        _read_now.reset(token)
    return keras.tree.pack_sequence_as(model.output, [computed.get(place) for place in range(len(model.outputs))])


class _Graphs:
    """What is known of a model's graph, in an attribute that Keras neither tracks nor saves.

    Attributes:
        owner: the `id` of the model, which is another one in a copy.
        read: the places of the outputs of each inner model, by its `id`, that the model reads; none where an inner
            model, which does not run through here, may read others.
        graphs: the graph of some of the model's outputs, by their places.
    """

    def __init__(self, model: keras.Model, run: Callable[..., Any]):
        self.owner = id(model)
        found: dict[int, set[int]] = {}
        nodes = [node for nodes in model._nodes_by_depth.values() for node in nodes]
        for tensor in [*model.outputs, *(tensor for node in nodes for tensor in node.input_tensors)]:
            history = tensor._keras_history
            found.setdefault(id(history.operation), set()).add(history.tensor_index)
        is_unknown = any(getattr(type(node.operation), "_run_through_graph", None) is run for node in nodes)
        self.read = {} if is_unknown else {operation: tuple(sorted(places)) for operation, places in found.items()}
        self.graphs: dict[Places, keras.Function] = {}
