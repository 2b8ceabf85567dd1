"""`WindowPooling`: one vector for a text from the vectors of its windows."""

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers.sequence_pooling import SequencePooling

WINDOW_POOLINGS = ("mean", "max", "attention")
# The score of an absent window: 0 after a softmax in float32.
_ABSENT_SCORE = -1e9


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

    def __init__(self, mode: str = "mean", **kwargs: Any):
        super().__init__(**kwargs)
        self.mode = checks.one_of(type(self).__name__, "mode", mode, WINDOW_POOLINGS)
        self._pooling = None if mode == "attention" else SequencePooling(mode, dtype=self.dtype_policy)

    def build(self, input_shape: Any) -> None:
        """Creates the query of `"attention"`."""
        self._num_features = input_shape[-1]  # a graph of all sizes does not know it
        if self._pooling is None:
            self.query = self.add_weight(shape=(self._num_features,), initializer="zeros", name="query")

    def call(self, windows: Any, window_mask: Any) -> Any:
        """Pools; see the class."""
        windows = ops.reshape(windows, (*ops.shape(window_mask), self._num_features))  # [B, windows, F]
        if self._pooling is not None:
            return self._pooling(windows, padding_mask=window_mask)
        real = ops.cast(window_mask, "bool")
        scores = ops.where(real, ops.sum(windows * self.query, axis=-1), _ABSENT_SCORE)
        # Keras's softmax warns of an axis of one window.
        powers = ops.exp(scores - ops.max(scores, axis=-1, keepdims=True))
        weights = ops.expand_dims(powers / ops.sum(powers, axis=-1, keepdims=True), -1)  # [B, windows, 1]
        return ops.sum(ops.where(ops.expand_dims(real, -1), windows, 0) * weights, axis=1)

    def compute_output_spec(self, windows: Any, window_mask: Any) -> Any:
        """Shape and dtype of the output."""
        return keras.KerasTensor((window_mask.shape[0], windows.shape[-1]), dtype=self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "mode": self.mode}
