"""The base of the optimizers: gradient clipping, weights excluded from weight decay by name, and a fused Adam step."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.keras_models import Untracked
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Tensor

# Searched in a weight's path, such as "encoder_block_0/attention/output/bias". On BERT they find the weights that
# Google's "LayerNorm", "layer_norm" and "bias" find.
UNDECAYED = ("bias$", "gamma$", "beta$")


class BertOptimizer(keras.optimizers.Optimizer):
    """Clipping and weight decay of BERT's optimizers; stands before an optimizer of Keras among the bases of a class.

    Attributes:
        gradient_norm: the global norm of the last update's gradients before clipping, a float32 variable.
    """

    def __init__(
        self,
        *args: Any,
        exclude_from_weight_decay: Sequence[str] = UNDECAYED,
        rate_factors: Mapping[str, float] | None = None,
        **kwargs: Any,
    ):
        super().__init__(*args, **kwargs)
        self._excluded_from_weight_decay = checked_expressions("exclude_from_weight_decay", exclude_from_weight_decay)
        self._rate_factors = Untracked(dict(rate_factors or {}))
        checked_expressions("rate_factors", list(self._rate_factors.value))
        for factor in self._rate_factors.value.values():
            checks.positive_number("optimizers", "rate_factors", factor)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        own = {"exclude_from_weight_decay": list(self._excluded_from_weight_decay)}
        return {**super().get_config(), **own, "rate_factors": self._rate_factors.value}

    def build(self, variables: Sequence[Tensor]) -> None:
        """Makes the moments and the norm, and finds the weights that do not decay."""
        if self.built:
            return
        super().build(variables)
        self._undecayed = self._found(self._excluded_from_weight_decay, variables)
        self._factors: Any = Untracked({})
        for expression, factor in reversed(self._rate_factors.value.items()):  # the first one that is found counts
            self._factors.value |= dict.fromkeys(self._found([expression], variables), factor)
        self.gradient_norm = self.add_variable((), dtype="float32", aggregation="only_first_replica", name="norm")

    def _found(self, expressions: Sequence[str], variables: Sequence[Any]) -> set[Any]:
        """The keys of the weights in whose path one of the regular expressions is found."""
        found = (v for v in variables if any(re.search(one, getattr(v, "path", v.name)) for one in expressions))
        return {self._var_key(variable) for variable in found}

    def _rate_of(self, variable: Tensor, learning_rate: float | keras.optimizers.schedules.LearningRateSchedule) -> Any:
        """The learning rate of one weight."""
        factor = self._factors.value.get(self._var_key(variable))
        return learning_rate if factor is None else learning_rate * factor

    def _use_weight_decay(self, variable: Tensor) -> bool:
        return self._var_key(variable) not in self._undecayed and super()._use_weight_decay(variable)

    def _get_current_learning_rate(self) -> Any:
        # Keras 3.15 asks the schedule for the rate of a batch, also where several batches make one update.
        rate = self._learning_rate
        if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
            return rate(self.iterations)
        return super()._get_current_learning_rate()

    def _apply_weight_decay(self, variables: Sequence[Tensor]) -> None:
        """Does nothing: `update_step` decays the weight. Keras 3.15 on PyTorch refuses a model where none decays."""

    def _move_moments(self, gradient: Tensor, variable: Tensor) -> tuple[Any, Any]:
        """Updates Adam's two moments of a weight, and returns them."""
        index, gradient = self._get_variable_index(variable), ops.cast(gradient, variable.dtype)
        first = self.beta_1 * self._momentums[index] + (1 - self.beta_1) * gradient
        second = self.beta_2 * self._velocities[index] + (1 - self.beta_2) * ops.square(gradient)
        self.assign(self._momentums[index], first)
        self.assign(self._velocities[index], second)
        return first, second

    def _decay(self, variable: Tensor, learning_rate: float | keras.optimizers.schedules.LearningRateSchedule) -> None:
        if self.weight_decay is not None and self._use_weight_decay(variable):
            rate = ops.cast(learning_rate, variable.dtype) * self.weight_decay
            if keras.backend.backend() == "torch":
                cast(Any, variable).value.data.mul_(1 - rate)
            else:
                self.assign_sub(variable, variable * rate)

    def _clip_gradients(self, gradients: Sequence[Tensor]) -> Any:
        gradients = self._summed(gradients)
        norm = _global_norm(gradients)
        self.gradient_norm.assign(norm)
        if not self.global_clipnorm:
            return super()._clip_gradients(gradients)
        scale = self.global_clipnorm / ops.maximum(norm, self.global_clipnorm)
        if keras.backend.backend() == "torch":  # in place, as torch's own `clip_grad_norm_`
            return [cast(Any, gradient).mul_(scale) for gradient in gradients]
        return [gradient * ops.cast(scale, gradient.dtype) for gradient in gradients]

    def _summed(self, gradients: Sequence[Tensor]) -> Any:
        if keras.backend.backend() != "tensorflow":
            return gradients
        # Under `tf.distribute`, Keras clips the gradients of each replica and adds them up afterwards; the clipped norm
        # then depends on the number of replicas. One replica adds nothing up: TensorFlow would keep its graph for ever.
        if tf.distribute.get_strategy().num_replicas_in_sync > 1:
            gradients = [gradient for gradient, _ in super()._all_reduce_sum_gradients([(g, None) for g in gradients])]
        return [tf.convert_to_tensor(gradient) for gradient in gradients]  # one row per token

    def _all_reduce_sum_gradients(self, grads_and_vars: Sequence[Any]) -> Any:
        return list(grads_and_vars)  # `_summed` has added them up


def _global_norm(gradients: Sequence[Tensor]) -> Any:
    if keras.backend.backend() == "tensorflow":  # one operation per gradient
        return tf.sqrt(2.0 * tf.add_n([tf.nn.l2_loss(tf.cast(gradient, "float32")) for gradient in gradients]))
    if keras.backend.backend() == "torch":
        import torch

        return torch.nn.utils.get_total_norm([cast(Any, gradient).float() for gradient in gradients])
    return ops.sqrt(sum(ops.sum(ops.square(ops.cast(gradient, "float32"))) for gradient in gradients))


def checked_expressions(argument: str, values: Sequence[str]) -> list[str]:
    """Regular expressions as a list; TypeError or ValueError if they are not."""
    rule = "be a list of regular expressions, which are searched in the paths of weights"
    if isinstance(values, str):
        raise TypeError(checks.message("optimizers", argument, rule, values))
    try:
        for value in values:
            re.compile(value)
    except re.error as error:
        raise ValueError(checks.message("optimizers", argument, rule, values)) from error
    return list(values)


def settings(
    learning_rate: float | keras.optimizers.schedules.LearningRateSchedule,
    weight_decay: float,
    clip_norm: float | None,
    excluded: Sequence[str],
    num_batches: int,
) -> dict[str, Any]:
    """The constructor arguments that the functions of this package share."""
    num_batches = checks.positive_integer("optimizers", "gradient_accumulation_steps", num_batches)
    return {
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "global_clipnorm": clip_norm,
        "exclude_from_weight_decay": excluded,
        "gradient_accumulation_steps": num_batches if num_batches > 1 else None,
    }


def fused_adam(
    optimizer: keras.optimizers.Optimizer,
    gradient: Tensor,
    variable: keras.Variable,
    *,
    learning_rate: float | keras.optimizers.schedules.LearningRateSchedule,
    epsilon: Any,
    powers: tuple[Any, Any] | None = None,
) -> None:
    """Updates a weight and its moments by one step of Adam, as one operation of TensorFlow.

    Keras computes a step in some twenty operations over each weight; TensorFlow has one operation for thirteen of them.

    Args:
        optimizer: an AdamW of Keras that was built, without amsgrad.
        gradient: the gradient of `variable`.
        variable: a `tf.Variable`.
        learning_rate: the rate of the step.
        epsilon: what is added to the root of the second moment, whose bias is not corrected.
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
        epsilon=epsilon,
        grad=tf.cast(gradient, variable.dtype),
    )


def in_place_adam(
    optimizer: keras.optimizers.Optimizer, gradient: Tensor, variable: keras.Variable, *, rate: Any, epsilon: Any
) -> None:
    """Updates a weight and its moments by one step of Adam on torch, without the tensors that Keras makes in between.

    On a CPU, all of it is torch's one pass over memory, which takes about a seventh of the time of single operations.

    Args:
        optimizer: as for `fused_adam`.
        gradient: the gradient of `variable`.
        variable: the weight.
        rate: what the first moment over the root of the second is multiplied by.
        epsilon: what is added to this root.
    """
    import torch
    from torch.optim.adam import adam

    index = optimizer._get_variable_index(variable)
    first, second = optimizer._momentums[index].value, optimizer._velocities[index].value
    with torch.no_grad():
        gradient = cast(Any, gradient).to(first.dtype)
        if first.is_cpu:
            options: dict[str, Any] = {"beta1": optimizer.beta_1, "beta2": optimizer.beta_2, "eps": float(epsilon)}
            options |= {"lr": float(rate), "weight_decay": 0.0, "amsgrad": False, "maximize": False, "fused": True}
            # After so many steps torch corrects no bias; `rate` and `epsilon` have done so.
            step = [torch.tensor(1e9)]
            adam([cast(Any, variable).value], [cast(Any, gradient)], [first], [second], [], step, **options)
            return
        first.mul_(optimizer.beta_1).add_(gradient, alpha=1 - optimizer.beta_1)
        second.mul_(optimizer.beta_2).addcmul_(gradient, gradient, value=1 - optimizer.beta_2)
        variable.value.sub_((first / second.sqrt().add_(epsilon)).mul_(rate))
