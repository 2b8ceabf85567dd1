"""`Positions`: the base of parts that tell an encoder the order of its tokens."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.arguments import constructor_arguments


class Positions(keras.layers.Layer):
    """How an encoder knows the order of its tokens, in place of BERT's trained position embedding.

    A subclass overrides what it needs: `embedding_table` adds to the embeddings, `rotated` and `bias` act in every
    attention. One part serves all blocks of an encoder, with one set of weights. Both actions in attention must depend
    on the distance between two tokens only, so that rows of several texts give what each text gives alone.

    Axes: B batch, S sequence, N heads, D head, P positions.

    Args:
        **kwargs: `name`, `dtype`, `trainable`.

    Examples:
        >>> from keras_bert_layers.layers import SelfAttention
        >>> class Nearness(Positions):
        ...     def bias(self, num_queries, num_keys):
        ...         distances = keras.ops.arange(num_queries)[:, None] - keras.ops.arange(num_keys)[None]
        ...         return -keras.ops.cast(keras.ops.abs(distances), "float32")[None]
        >>> tuple(SelfAttention(2, positions=Nearness())(keras.ops.ones((3, 5, 8))).shape)
        (3, 5, 8)
    """

    def embedding_table(self, num_positions: int, width: int) -> np.ndarray | None:
        """What is added to the token embeddings, float32 `[P, width]`; None for nothing."""
        return None

    def rotated(self, heads: Any) -> Any:
        """Queries or keys `[B, N, S, D]` of the positions 0, 1, 2, ..., as the products of both see them."""
        return heads

    def bias(self, num_queries: Any, num_keys: Any) -> Any:
        """What is added to the scaled scores, `[N or 1, queries, keys]`; None for nothing."""
        return None

    def build(self, input_shape: Any) -> None:
        """Creates the weights, if there are any; `input_shape` is that of the queries, `(B, N, S, D)`."""

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        cls = type(self)
        own = constructor_arguments(cls, self) if "__init__" in vars(cls) else {}
        return {**super().get_config(), **own}


def part_of(owner: str, argument: str, value: Any, kind: type[Any]) -> Any:
    """None, or a part of that kind, also from its serialized form; TypeError otherwise."""
    if isinstance(value, dict):
        value = keras.saving.deserialize_keras_object(value)
    return None if value is None else checks.instance(owner, argument, value, kind)


def serialized(part: Any) -> Any:
    """The serialized form of a part, for configs, not built, as the layer that has it builds it; None for None."""
    if part is None:
        return None
    return {key: value for key, value in keras.saving.serialize_keras_object(part).items() if key != "build_config"}
