"""`SequencePooling`: mean, max, CLS and other poolings of a sequence into one vector."""

from collections.abc import Sequence
from typing import Any, Unpack

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import LayerOptions, Tensor
from keras_bert_layers.layers.padding_free import RealTokens, first_tokens, known_tokens

MODES = ("cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")


def checked_modes(owner: str, argument: str, mode: str | Sequence[str]) -> tuple[str, ...]:
    """The modes of one mode or a sequence of them; ValueError for an unknown one, or none."""
    modes = (mode,) if isinstance(mode, str) else tuple(mode) if isinstance(mode, list | tuple) else ()
    if not modes or not all(mode in MODES for mode in modes):
        rule = f"be one of {list(MODES)}, or a sequence of them"
        raise ValueError(checks.message(owner, argument, rule, mode))
    return modes


@register
class SequencePooling(keras.layers.Layer):
    """Pools a sequence into one vector: the first token, or the mean or maximum of the real tokens.

    Several modes give their vectors side by side, in the order of the modes.

    With `pooling.packed_rows = True`, of a row that may hold several texts, the first text is pooled.

    Args:
        mode: "cls" for the first token, "lasttoken" for the last real one; over the real tokens, "mean", "max",
            "mean_sqrt_len_tokens" (the sum divided by the square root of their number) or "weightedmean" (a mean with
            the weights 1, 2, 3, ... from the first token on). Or a sequence of these.
        **kwargs: `name`, `dtype`.

    Call arguments:
        hidden: float `(batch, sequence, hidden_dim)`.
        padding_mask: int or bool `(batch, sequence)`, 1 = real token; None if all are real. "cls" ignores it. With
            `packed_rows`, int: the number of the text that a token belongs to, from 1; 0 = padding.

    Returns:
        Float `(batch, hidden_dim)`, or `(batch, modes * hidden_dim)`; zeros for a row without real tokens under any
        mode but "cls". Sums are computed in float32 under every dtype policy.

    Raises:
        ValueError: if `mode` is not one of the six, nor a sequence of them.

    Examples:
        >>> hidden = keras.ops.convert_to_tensor([[[1.0], [3.0], [8.0]]])
        >>> SequencePooling("mean")(hidden, padding_mask=keras.ops.convert_to_tensor([[1, 1, 0]])).numpy().tolist()
        [[2.0]]
        >>> SequencePooling(("cls", "max"))(hidden).numpy().tolist()
        [[1.0, 8.0]]

    References:
        Reimers and Gurevych 2019, https://arxiv.org/abs/1908.10084, section 3; `Pooling` of sentence-transformers has
        the same modes under the same names. Muennighoff 2022, https://arxiv.org/abs/2202.08904, for "weightedmean".
    """

    def __init__(self, mode: str | Sequence[str] = "mean", **kwargs: Unpack[LayerOptions]):
        super().__init__(**kwargs)
        self._modes = checked_modes(type(self).__name__, "mode", mode)
        self.mode = self._modes[0] if isinstance(mode, str) else self._modes
        self.packed_rows = False

    def call(self, hidden: Tensor, padding_mask: Tensor | None = None) -> Any:
        """Pools; see the class."""
        if self.packed_rows and padding_mask is not None:
            padding_mask = ops.equal(padding_mask, 1)
        pooled = [self._pooled(mode, hidden, padding_mask) for mode in self._modes]
        return pooled[0] if len(pooled) == 1 else ops.concatenate(pooled, axis=-1)

    def _pooled(self, mode: str, hidden: Tensor, padding_mask: Tensor | None) -> Any:
        if mode == "cls":
            return first_tokens(hidden)
        known = known_tokens(hidden, padding_mask)
        if known is not None and mode == "mean":
            return self._mean_of_tokens(*known)
        if padding_mask is None:
            padding_mask = ops.ones(ops.shape(hidden)[:2], dtype="bool")
        real = ops.cast(ops.expand_dims(padding_mask, -1), "bool")  # [B, S, 1]
        if mode == "max":
            # A row of only padding must not give the fill value.
            fill = ops.where(ops.any(real, axis=1, keepdims=True), -float("inf"), 0.0)  # [B, 1, 1]
            return ops.max(ops.where(real, hidden, ops.cast(fill, hidden.dtype)), axis=1)  # [B, H]
        return self._mean(mode, hidden, real)

    def _mean(self, mode: str, hidden: Tensor, real: Tensor) -> Any:
        """The weighted mean of the real tokens; the weights are 1 but for "weightedmean" and "lasttoken"."""
        dtype = keras.backend.result_type(hidden.dtype, "float32")
        values, weights = ops.where(real, ops.cast(hidden, dtype), 0), ops.cast(real, dtype)  # [B, S, H], [B, S, 1]
        if mode in ("weightedmean", "lasttoken"):
            weights = weights * ops.expand_dims(ops.arange(1, ops.shape(hidden)[1] + 1, dtype=dtype), -1)
            if mode == "lasttoken":
                last = ops.max(weights, axis=1, keepdims=True)  # 0 without a real token
                weights = ops.cast(ops.logical_and(real, ops.equal(weights, last)), dtype)
            values = values * weights
        count = ops.maximum(ops.sum(weights, axis=1), 1)  # [B, 1]
        count = ops.sqrt(count) if mode == "mean_sqrt_len_tokens" else count
        return ops.cast(ops.sum(values, axis=1) / count, self.compute_dtype)

    def _mean_of_tokens(self, real: RealTokens, tokens: Tensor) -> Any:
        dtype = keras.backend.result_type(tokens.dtype, "float32")
        mask = ops.cast(real.padding_mask, dtype)
        # A row of only padding has a token, which must not count.
        tokens = ops.cast(tokens, dtype) * real.select(mask[:, :, None])  # [T, H]
        # XLA has no sum over sorted segments.
        total = ops.segment_sum(tokens, real.rows(), num_segments=ops.shape(mask)[0])  # [B, H]
        return ops.cast(total / ops.maximum(ops.sum(mask, axis=1, keepdims=True), 1), self.compute_dtype)

    def compute_output_spec(self, hidden: Tensor, padding_mask: Tensor | None = None) -> Any:
        """The shape of the input, without the axis of the sequence and with a vector for each mode."""
        return keras.KerasTensor((hidden.shape[0], len(self._modes) * hidden.shape[-1]), dtype=self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "mode": self.mode if isinstance(self.mode, str) else list(self.mode)}
