"""`WindowPooling`: one vector for a text from the vectors of its windows."""

from typing import Any, Unpack

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import LayerOptions, Shape, Tensor

WINDOW_POOLINGS = ("mean", "max", "attention")


@register
class WindowPooling(keras.layers.Layer):
    """Pools the vectors of a text's windows into one vector: their mean, their maximum, or a learned weighted mean.

    For `"attention"`, the weight of the window `v` among all windows of its text is the softmax of `v · q`. The query
    `q` is learned, and begins as zeros, so that the weights begin equal. A text of one window keeps its vector, bit for
    bit, under every mode.

    Args:
        mode: `"mean"`, `"max"` (for each feature) or `"attention"`.
        **kwargs: `name`, `dtype`.

    Call arguments:
        windows: float `(batch, windows, features)`, or `(batch * windows, features)`.
        window_mask: int or bool `(batch, windows)`, 1 = the window exists.

    Returns:
        Float `(batch, features)`.

    Raises:
        ValueError: if `mode` is not one of the three.

    Examples:
        >>> windows = keras.ops.convert_to_tensor([[[1.0, 6.0], [3.0, 2.0], [9.0, 9.0]]])
        >>> mask = keras.ops.convert_to_tensor([[1, 1, 0]])
        >>> WindowPooling("mean")(windows, mask).numpy().tolist(), WindowPooling("max")(windows, mask).numpy().tolist()
        ([[2.0, 4.0]], [[3.0, 6.0]])

    References:
        Dai and Callan 2019, https://arxiv.org/abs/1905.09217, section 3, for the maximum of the scores of passages;
        Yang et al. 2016, https://aclanthology.org/N16-1174, section 2.2, for a learned query over the parts of a text.
    """

    def __init__(self, mode: str = "mean", **kwargs: Unpack[LayerOptions]):
        super().__init__(**kwargs)
        self.mode = checks.one_of(type(self).__name__, "mode", mode, WINDOW_POOLINGS)

    def build(self, input_shape: Shape) -> None:
        """Creates the query of `"attention"`."""
        self._num_features = input_shape[-1]  # a graph of all sizes does not know it
        if self.mode == "attention":
            self.query = self.add_weight(shape=(self._num_features,), initializer="zeros", name="query")

    def call(self, windows: Tensor, window_mask: Tensor) -> Any:
        """Pools; see the class."""
        windows = ops.reshape(windows, (*ops.shape(window_mask), self._num_features))  # [B, windows, F]
        real = ops.cast(window_mask, "bool")
        if self.mode == "max":
            return ops.max(ops.where(real[..., None], windows, -float("inf")), axis=1)
        weights = ops.cast(real, windows.dtype)
        if self.mode == "attention":
            scores = ops.where(real, ops.sum(windows * self.query, axis=-1), -float("inf"))
            weights = ops.exp(scores - ops.max(scores, axis=-1, keepdims=True))
        total = ops.sum(ops.where(real[..., None], windows, 0) * weights[..., None], axis=1)
        return total / ops.sum(weights, axis=-1, keepdims=True)

    def compute_output_spec(self, windows: Tensor, window_mask: Tensor) -> Any:
        """Shape and dtype of the output."""
        return keras.KerasTensor((window_mask.shape[0], windows.shape[-1]), dtype=self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "mode": self.mode}
