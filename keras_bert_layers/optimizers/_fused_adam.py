"""TensorFlow's one operation for a step of Adam."""

from __future__ import annotations

from typing import Any

from keras_bert_layers._internal.lazy import tf


def fused_adam(
    optimizer: Any, gradient: Any, variable: Any, *, learning_rate: Any, powers: tuple[Any, Any] | None = None
) -> None:
    """Moves a weight and its moments by one step.

    Keras computes a step in some twenty operations over each weight; TensorFlow has one operation for thirteen of them.

    Args:
        optimizer: an AdamW of Keras that was built, without amsgrad.
        gradient: the gradient of `variable`.
        variable: a `tf.Variable`.
        learning_rate: the rate of the step.
        powers: the betas to the power of the step, for the correction of the moments' bias. Without them there is none:
            the operation multiplies the rate by `sqrt(1 - powers[1]) / (1 - powers[0])`.

    References:
        `ApplyAdamNonCuda` in tensorflow, core/kernels/training_ops.cc.
    """
    index = optimizer._get_variable_index(variable)
    zero = tf.zeros((), variable.dtype)
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=optimizer._momentums[index].value.handle,
        v=optimizer._velocities[index].value.handle,
        beta1_power=powers[0] if powers else zero,
        beta2_power=powers[1] if powers else zero,
        lr=tf.cast(learning_rate, variable.dtype),
        beta1=optimizer.beta_1,
        beta2=optimizer.beta_2,
        epsilon=optimizer.epsilon,
        grad=tf.cast(gradient, variable.dtype),
    )
