"""`SequencePooling`: first-token, mean or max pooling."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers._packing import Packing, first_tokens, known_tokens

MODES = ("cls", "mean", "max")


@register
class SequencePooling(keras.layers.Layer):
    """Pools a sequence into one vector: the first token, or the mean or maximum of the real tokens.

    Args:
        mode: "cls" for the first token, "mean" or "max" over the real tokens.
        **kwargs: `name`, `dtype`.

    Call arguments:
        hidden: float `(batch, sequence, hidden_dim)`.
        padding_mask: int or bool `(batch, sequence)`, 1 = real token; None if all are real. "cls" ignores it.

    Returns:
        Float `(batch, hidden_dim)`; zeros for a row without real tokens under "mean" and "max". The mean is computed in
        float32 under every dtype policy.

    Raises:
        ValueError: if `mode` is not one of the three.

    Examples:
        >>> hidden = keras.ops.convert_to_tensor([[[1.0], [3.0], [8.0]]])
        >>> SequencePooling("mean")(hidden, padding_mask=keras.ops.convert_to_tensor([[1, 1, 0]])).numpy().tolist()
        [[2.0]]

    References:
        Reimers and Gurevych 2019, https://arxiv.org/abs/1908.10084, section 3.
    """

    def __init__(self, mode: str = "mean", **kwargs: Any):
        super().__init__(**kwargs)
        self.mode = checks.one_of(type(self).__name__, "mode", mode, MODES)

    def call(self, hidden: Any, padding_mask: Any = None) -> Any:
        """Pools; see the class."""
        if self.mode == "cls":
            return first_tokens(hidden)
        known = known_tokens(hidden, padding_mask)
        if known is not None and self.mode == "mean":
            return self._mean_of_tokens(*known)
        if padding_mask is None:
            padding_mask = ops.ones(ops.shape(hidden)[:2], dtype="bool")
        real = ops.cast(ops.expand_dims(padding_mask, -1), "bool")  # [B, S, 1]
        return self._mean(hidden, real) if self.mode == "mean" else self._maximum(hidden, real)

    def _mean(self, hidden: Any, real: Any) -> Any:
        dtype = keras.backend.result_type(hidden.dtype, "float32")
        count = ops.maximum(ops.sum(ops.cast(real, dtype), axis=1), 1)  # [B, 1]
        total = ops.sum(ops.where(real, ops.cast(hidden, dtype), 0), axis=1)  # [B, H]
        return ops.cast(total / count, self.compute_dtype)

    def _mean_of_tokens(self, packing: Packing, tokens: Any) -> Any:
        dtype = keras.backend.result_type(tokens.dtype, "float32")
        mask = ops.cast(packing.padding_mask, dtype)
        # A row of only padding has a token, which must not count.
        tokens = ops.cast(tokens, dtype) * packing.pack(mask[:, :, None])  # [T, H]
        total = ops.segment_sum(tokens, packing.rows(), sorted=True)  # [B, H]
        return ops.cast(total / ops.maximum(ops.sum(mask, axis=1, keepdims=True), 1), self.compute_dtype)

    def _maximum(self, hidden: Any, real: Any) -> Any:
        # A row of only padding must not give the fill value.
        fill = ops.where(ops.any(real, axis=1, keepdims=True), -float("inf"), 0.0)  # [B, 1, 1]
        return ops.max(ops.where(real, hidden, ops.cast(fill, hidden.dtype)), axis=1)  # [B, H]

    def compute_output_spec(self, hidden: Any, padding_mask: Any = None) -> Any:
        """The shape of the input, without the axis of the sequence."""
        return keras.KerasTensor((hidden.shape[0], hidden.shape[-1]), dtype=self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "mode": self.mode}
