"""Graphs from ids to one vector per token, of queries and of documents."""

from collections.abc import Collection
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.layers.initializers import truncated_normal
from keras_bert_layers.layers.padding_free import computed_everywhere
from keras_bert_layers.tasks.graphs.vectors import id_inputs, scaling


class _QueryExpansion(keras.layers.Layer):
    """Puts a token in the place of padding, which has outputs then, and is attended to or not."""

    def __init__(self, token_id: int, is_attended: bool):
        super().__init__(name="query_expansion")
        self._token_id, self._is_attended = token_id, is_attended

    def call(self, token_ids: Tensor, padding_mask: Tensor) -> tuple[Any, Any]:
        """The token ids, and the mask of those that are attended to, int32 `(batch, sequence)` each."""
        token_ids = ops.where(ops.cast(padding_mask, "bool"), token_ids, self._token_id)
        return token_ids, ops.ones_like(padding_mask) if self._is_attended else computed_everywhere(padding_mask)

    def compute_output_spec(self, token_ids: Tensor, padding_mask: Tensor) -> Any:
        """Their shapes."""
        return tuple(keras.KerasTensor(ids.shape, "int32") for ids in (token_ids, padding_mask))


def token_vectors(
    backbone: BertBackbone, width: int, *, expansion: tuple[int, bool] | None, skipped: Collection[int]
) -> dict[str, Any]:
    """The inputs, the outputs and the parts of a task: `"query"` and `"document"`, `(batch, tokens, width)` each.

    Vectors of tokens have length 1. Those of padding, and of documents' skipped tokens, are 0.

    Args:
        backbone: a `BertBackbone`.
        width: the width of the vectors.
        expansion: the id of the token that stands for padding in queries, and whether it is attended to; None for no
            such token.
        skipped: ids of tokens that documents have no vector of.
    """
    initializer = truncated_normal(backbone.config.initializer_range)
    options: dict[str, Any] = {"use_bias": False, "kernel_initializer": initializer, "dtype": "float32"}
    project, scale = keras.layers.Dense(width, name="dense_projection", **options), scaling(True)
    expand = None if expansion is None else _QueryExpansion(*expansion)

    def encode(ids: dict[str, Any], is_query: bool) -> Any:
        is_there = ops.cast(ids["padding_mask"], "bool")
        if is_query and expand is not None:
            token_ids, mask = expand(ids["token_ids"], ids["padding_mask"])
            ids, is_there = {**ids, "token_ids": token_ids, "padding_mask": mask}, ops.ones_like(mask, "bool")
        elif not is_query and skipped:
            is_skipped = ops.any(ops.equal(ids["token_ids"][..., None], np.array(sorted(skipped), "int32")), axis=-1)
            is_there = ops.logical_and(is_there, ops.logical_not(is_skipped))
        return ops.where(is_there[..., None], scale(project(backbone(ids)["sequence_output"])), 0.0)

    parts, inputs = {}, {}
    for side in ("query", "document"):
        inputs[side] = id_inputs(side, backbone.input["token_ids"].shape[1:])
        own = {name: keras.Input((None,), dtype="int32", name=name) for name in inputs[side]}
        parts[side] = keras.Model(own, encode(own, side == "query"), name=f"{side}_encoder")
        if keras.backend.backend() == "tensorflow":
            parts[side].jit_compile = False  # XLA would compile `predict` again for every length
    return {"inputs": inputs, "outputs": {side: parts[side](inputs[side]) for side in parts}, "parts": parts}
