"""AdamW with BERT's settings."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register

UNDECAYED = ("bias", "gamma", "beta")
# Keras adds epsilon before the bias correction of the second moment, PyTorch after it: in the first step, the same
# value has 30 times the effect in Keras. With 1e-6, MiniLM's weights moved 0.7 times as far in 40 steps as in PyTorch.
EPSILON = 1e-8


@register
class BertAdamW(keras.optimizers.AdamW):
    """Keras's AdamW that does not decay biases and LayerNorm, with one fused operation on TensorFlow.

    Keras's config does not include the excluded weights, so a plain AdamW loaded from a `.keras` file would decay all
    weights. Keras computes a step in some twenty operations over each weight; TensorFlow has one operation for thirteen
    of them.

    References:
        `ApplyAdamNonCuda` in tensorflow, core/kernels/training_ops.cc.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.exclude_from_weight_decay(var_names=UNDECAYED)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one weight and its moments."""
        if not self._has_one_operation():
            super().update_step(gradient, variable, learning_rate)
            return
        index = self._get_variable_index(variable)
        step = tf.cast(self.iterations + 1, variable.dtype)
        rate = tf.cast(learning_rate, variable.dtype)
        if self.weight_decay is not None and self._use_weight_decay(variable):
            variable.assign_sub(variable * (rate * self.weight_decay))
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=self.beta_1**step,
            beta2_power=self.beta_2**step,
            lr=rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=tf.cast(gradient, variable.dtype),
        )

    def _apply_weight_decay(self, variables: Any) -> None:
        if not self._has_one_operation():  # `update_step` decays the weights
            super()._apply_weight_decay(variables)

    def _clip_gradients(self, gradients: Any) -> Any:
        # Under `tf.distribute`, Keras clips the gradients of each replica and adds them up afterwards; the clipped norm
        # then depends on the number of replicas. One replica adds nothing up: TensorFlow would keep its graph for ever.
        if keras.backend.backend() == "tensorflow" and tf.distribute.get_strategy().num_replicas_in_sync > 1:
            gradients = [gradient for gradient, _ in super()._all_reduce_sum_gradients([(g, None) for g in gradients])]
        return self._clipped(gradients)

    def _all_reduce_sum_gradients(self, grads_and_vars: Any) -> Any:
        return list(grads_and_vars)  # `_clip_gradients` has added them up

    def _clipped(self, gradients: Any) -> Any:
        if self.global_clipnorm is None or not self._has_one_operation():
            return super()._clip_gradients(gradients)
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        norm = tf.sqrt(2.0 * tf.add_n([tf.nn.l2_loss(tf.cast(gradient, "float32")) for gradient in gradients]))
        scale = self.global_clipnorm / tf.maximum(norm, self.global_clipnorm)
        return [gradient * tf.cast(scale, gradient.dtype) for gradient in gradients]

    def _has_one_operation(self) -> bool:
        return keras.backend.backend() == "tensorflow" and not self.amsgrad


def adamw(learning_rate: Any = 5e-5, *, weight_decay: float = 0.01, clip_norm: float = 1.0) -> keras.optimizers.AdamW:
    """AdamW without decay of biases and LayerNorm, also after loading a model, and with global norm clipping.

    Unlike Google's optimizer, it corrects the bias of its moments, as those of transformers and Keras do.

    Args:
        learning_rate: a float or a schedule, such as `WarmupLinearDecay`. The paper fine-tunes with 2e-5 to 5e-5.
        weight_decay: the share of a weight to subtract in each step, times the learning rate.
        clip_norm: the largest global norm of the gradients.

    Returns:
        A new optimizer, with epsilon 1e-8, the default of transformers.

    Examples:
        >>> adamw(3e-5).get_config()["epsilon"]
        1e-08

    References:
        Loshchilov and Hutter 2017, arXiv:1711.05101; Devlin et al. 2018, arXiv:1810.04805, appendix A.3;
        `create_optimizer` in google-research/bert `optimization.py`.
    """
    return BertAdamW(learning_rate=learning_rate, weight_decay=weight_decay, epsilon=EPSILON, global_clipnorm=clip_norm)
