"""Layer normalization over the last axis, as one fused operation where TensorFlow has one."""

from __future__ import annotations

import platform
from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.layers.padding_free import in_tensorflow_graph, on_tokens

# For fewer values, starting a second thread, as oneDNN does, takes longer than the separate steps: 0.1 ms.
_SMALL = 2**15
# Elsewhere TensorFlow does not fuse the operations below, and they are slower than the separate steps.
_FUSES = platform.machine() in ("x86_64", "AMD64")


class LayerNorm(keras.layers.LayerNormalization):
    """`keras.layers.LayerNormalization` over the last axis: the same weights and values, in fewer operations.

    With `center=False` there is no beta.

    It computes in float32 under every dtype policy, on torch by torch's own operation. In TensorFlow's graphs, rows
    `(rows, width)` are normalized as a batch normalization of `rows` channels, times gamma, plus beta; oneDNN runs this
    form as one operation. A small number of rows is normalized step by step.

    References:
        `FindMklLayerNorm` in tensorflow, core/grappler/optimizers/remapper.cc.
    """

    def call(self, inputs: Tensor, training: bool | None = None) -> Any:
        """Normalizes float `(..., width)`."""
        if not _can_be_one(inputs):
            normalize = self._on_torch if keras.backend.backend() == "torch" else self._step_by_step
            return normalize(inputs, self.gamma, self.beta)
        if training:
            return self._in_one_operation(inputs, self.gamma, self.beta)
        # The weights are read before `tf.cond`: a conditional that reads variables has side effects to TensorFlow,
        # which then runs it even if its result is not used.
        gamma, beta = (None if each is None else tf.convert_to_tensor(each) for each in (self.gamma, self.beta))
        inputs = tf.identity(inputs)  # without it, TensorFlow fuses nothing into the matrix product before `tf.cond`
        return tf.cond(
            tf.size(inputs) < _SMALL,
            lambda: tf.cast(self._step_by_step(inputs, gamma, beta), inputs.dtype),
            lambda: self._in_one_operation(inputs, gamma, beta),
        )

    def _step_by_step(self, inputs: Tensor, gamma: Any, beta: Any) -> Any:
        hidden = ops.cast(inputs, keras.backend.result_type(inputs.dtype, "float32"))
        centred = hidden - ops.mean(hidden, axis=-1, keepdims=True)
        scale = ops.rsqrt(ops.mean(ops.square(centred), axis=-1, keepdims=True) + self.epsilon)
        normalized = centred * (scale * ops.cast(gamma, hidden.dtype))
        return ops.cast(_plus(normalized, beta), self.compute_dtype)

    def _on_torch(self, inputs: Tensor, gamma: Any, beta: Any) -> Any:
        import torch

        hidden = ops.cast(inputs, keras.backend.result_type(inputs.dtype, "float32"))
        gamma, beta = (None if each is None else ops.cast(each, hidden.dtype) for each in (gamma, beta))
        normalized = torch.nn.functional.layer_norm(hidden, hidden.shape[-1:], gamma, beta, self.epsilon)
        return ops.cast(normalized, self.compute_dtype)

    def _in_one_operation(self, inputs: Tensor, gamma: Any, beta: Any) -> Any:
        # Half precision is not cast first: the operation sums in float32, and is not fused after a cast.
        num_rows, width = tf.shape(inputs)[0], inputs.shape[-1]
        normalized = tf.raw_ops.FusedBatchNormV3(
            x=tf.reshape(inputs, (1, num_rows, width, 1)),
            scale=tf.ones([num_rows]),
            offset=tf.zeros([num_rows]),
            mean=tf.constant([]),
            variance=tf.constant([]),
            epsilon=self.epsilon,
            data_format="NCHW",
            is_training=True,
        ).y
        rows = tf.reshape(normalized, (num_rows, width))
        return _plus(rows * ops.cast(gamma, inputs.dtype), beta)


def _plus(values: Tensor, beta: Tensor) -> Any:
    return values if beta is None else values + ops.cast(beta, values.dtype)


def _can_be_one(inputs: Tensor) -> bool:
    is_known = len(inputs.shape) == 2 and keras.backend.standardize_dtype(inputs.dtype) in ("float32", "bfloat16")
    return _FUSES and is_known and in_tensorflow_graph(inputs)


@register
class FinalLayerNorm(LayerNorm):
    """A `LayerNorm` of hidden states `(batch, sequence, width)`, of the real tokens only where they are known."""

    def call(self, inputs: Tensor, training: bool | None = None) -> Any:
        """Normalizes float `(..., width)`."""
        normalize = super().call
        return on_tokens(lambda tokens: normalize(tokens, training=training), inputs)

    def compute_output_spec(self, inputs: Tensor, training: bool | None = None) -> Any:
        """Shape and dtype of the output: the input's shape."""
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
