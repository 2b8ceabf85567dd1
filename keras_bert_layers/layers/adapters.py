"""Adapters of which a call chooses one: matrices of low rank beside the weights of dense layers and embeddings."""

import contextlib
import contextvars
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.keras_models import all_layers
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.layers.products import product

_chosen: contextvars.ContextVar[str | None] = contextvars.ContextVar("chosen", default=None)
_PREFIX = "adapter_"
_CURE = (
    "Load one adapter, merged into the weights: `load_task(source, adapter=...)`, or `load_backbone`. All of this "
    "works on it."
)


def chosen_adapter() -> str | None:
    """The adapter that layers use where they are called; None for none."""
    return _chosen.get()


@contextlib.contextmanager
def using_adapter(name: str | None) -> Iterator[None]:
    """Context in which layers use an adapter. What is traced in it keeps the adapter."""
    token = _chosen.set(name)
    try:
        yield
    finally:
        _chosen.reset(token)


class AdapterBank(keras.layers.Layer):
    """The matrices of all adapters beside one weight `(rows, width)`; they begin as zeros, and are never trained.

    Args:
        weight: the weight.
        ranks: name of an adapter -> its rank here.
        **kwargs: `name`, `dtype`.
    """

    def __init__(self, weight: keras.Variable, ranks: Mapping[str, int], **kwargs: Any):
        super().__init__(**kwargs)
        #: The path of the weight.
        self.beside = weight.path
        self.ranks = dict(ranks)
        rows, width = weight.shape
        #: Name of an adapter -> its matrices `(rows, rank)` and `(rank, width)`, whose product is added to the weight.
        self.pairs = {
            name: tuple(
                self._add(f"{_PREFIX}{end}_{index}", shape)
                for end, shape in (("a", (rows, rank)), ("b", (rank, width)))
            )
            for index, (name, rank) in enumerate(ranks.items())
        }
        self.built = True

    def quantize(self, *_: Any, **__: Any) -> None:
        """Refuses it: Keras leaves out the dense layer around a bank without a word."""
        refuse_adapters("quantize", self)

    def _add(self, name: str, shape: tuple[int, int]) -> Any:
        return self.add_weight(name=name, shape=shape, initializer="zeros", trainable=False, autocast=False)

    @property
    def pair(self) -> Any:
        """The matrices of the chosen adapter; None without one."""
        return self.pairs.get(_chosen.get() or "")


def is_of_bank(weight: keras.Variable) -> bool:
    """Whether a weight is a matrix of an `AdapterBank`."""
    return weight.name.startswith(_PREFIX)


def add_banks(model: keras.Model, ranks: Mapping[str, int]) -> None:
    """Gives every dense layer of an encoder, and its token and segment embedding, a bank for these adapters.

    The kernel of three products, query, key and value, has matrices of three times the rank, one after the other.
    """
    for layer in all_layers(model):
        weights = {name: getattr(layer, name, None) for name in ("_kernel", "token_embedding", "segment_embedding")}
        weights = {name: weight for name, weight in weights.items() if isinstance(weight, keras.Variable)}
        if not weights:
            continue
        factor = 3 if layer.name == "query_key_value" else 1
        own = {name: factor * rank for name, rank in ranks.items()}
        layer._tracker.unlock()
        layer.banks = {name: AdapterBank(each, own, dtype=layer.dtype_policy) for name, each in weights.items()}
        layer._tracker.lock()
        if "_kernel" in weights:
            layer.call = partial(_with_adapter, layer)


def _with_adapter(layer: keras.layers.Dense, inputs: Tensor, training: bool | None = None) -> Any:
    """The call of a dense layer with a bank: `x W + x A B + b`, and the activation."""
    pair = layer.banks["_kernel"].pair
    if pair is None:
        return type(layer).call(layer, inputs, training=training)
    first, second = (ops.cast(matrix, layer.compute_dtype) for matrix in pair)
    outputs = product(inputs, layer.kernel, layer.bias) + ops.matmul(ops.matmul(inputs, first), second)
    return outputs if layer.activation is None else layer.activation(outputs)


def refuse_adapters(owner: str, model: keras.Model) -> None:
    """ValueError for a model with adapters, whose weights are not all that its outputs depend on."""
    if any(isinstance(layer, AdapterBank) for layer in all_layers(model)):
        received = checks.Shown("a model of several adapters")
        raise ValueError(checks.message(owner, "model", "have no adapters beside its weights", received, _CURE))
