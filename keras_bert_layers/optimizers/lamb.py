"""LAMB, the optimizer for large batches."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.optimizers._bert_optimizer import UNDECAYED, BertOptimizer, checked_expressions, settings


@register
class BertLamb(BertOptimizer, keras.optimizers.Lamb):
    """LAMB whose decay is part of the step that is scaled; see `lamb`."""

    def __init__(self, *args: Any, exclude_from_layer_adaptation: Sequence[str] = UNDECAYED, **kwargs: Any):
        super().__init__(*args, **kwargs)
        argument = "exclude_from_layer_adaptation"
        self._excluded_from_layer_adaptation = checked_expressions(argument, exclude_from_layer_adaptation)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "exclude_from_layer_adaptation": list(self._excluded_from_layer_adaptation)}

    def build(self, variables: Sequence[Tensor]) -> None:
        """Makes the moments, and finds the weights that are left out."""
        if self.built:
            return
        super().build(variables)
        self._unadapted = self._found(self._excluded_from_layer_adaptation, variables)

    def update_step(
        self, gradient: Tensor, variable: Tensor, learning_rate: float | keras.optimizers.schedules.LearningRateSchedule
    ) -> None:
        """Updates one weight and its moments."""
        dtype, weight = variable.dtype, ops.convert_to_tensor(variable)
        first, second = self._move_moments(gradient, variable)
        step = ops.cast(self.iterations + 1, dtype)
        corrected = ops.sqrt(second / (1 - ops.power(self.beta_2, step))) + self.epsilon
        change = first / (1 - ops.power(self.beta_1, step)) / corrected
        if self.weight_decay is not None and self._use_weight_decay(variable):
            change = change + self.weight_decay * weight
        rate = ops.cast(self._rate_of(variable, learning_rate), dtype)
        if self._var_key(variable) not in self._unadapted:
            rate = rate * ops.cast(_trust_ratio(weight, change), dtype)
        self.assign_sub(variable, rate * change)


def _trust_ratio(weight: Tensor, change: Tensor) -> Any:
    """The norm of a weight over the norm of its change, or 1 where one of them is 0."""
    weight_norm, change_norm = (ops.sqrt(ops.sum(ops.square(ops.cast(one, "float32")))) for one in (weight, change))
    is_defined = ops.logical_and(weight_norm > 0, change_norm > 0)
    return ops.where(is_defined, weight_norm / ops.where(is_defined, change_norm, 1.0), 1.0)


def lamb(
    learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 1e-3,
    *,
    weight_decay: float = 0.01,
    clip_norm: float | None = 1.0,
    exclude_from_weight_decay: Sequence[str] = UNDECAYED,
    exclude_from_layer_adaptation: Sequence[str] | None = None,
    gradient_accumulation_steps: int = 1,
) -> keras.optimizers.Lamb:
    """LAMB, the optimizer for pretraining with batches of thousands of rows.

    Adam's step with decay, `c = m' / (sqrt(v') + 1e-6) + 0.01 w`, is scaled for each weight to the norm of the weight:
    `w = w - rate * |w| / |c| * c`. Keras's own `Lamb` leaves the decay out of `c`, and scales biases too.

    Args:
        learning_rate: a float or a schedule: the share by which the norm of each weight may change in a step.
        weight_decay: the share of a weight that is added to its step.
        clip_norm: the largest global norm of the gradients; None does not clip.
        exclude_from_weight_decay: regular expressions. A weight whose path contains one of them does not decay; without
            the argument, biases and LayerNorm do not.
        exclude_from_layer_adaptation: regular expressions. A weight whose path contains one of them has Adam's step,
            which is not scaled; None takes those of `exclude_from_weight_decay`.
        gradient_accumulation_steps: how many batches make one update, with the mean of their gradients. Schedules count
            updates, and decay and clipping are done once per update.

    Returns:
        A new optimizer. It corrects the bias of its moments, as the paper does.

    Raises:
        TypeError, ValueError: an argument of another kind or out of range.

    Examples:
        >>> lamb(1e-3, exclude_from_weight_decay=["bias"]).get_config()["exclude_from_layer_adaptation"]
        ['bias']

    References:
        You et al. 2019, arXiv:1904.00962, algorithm 2, where phi is the identity; the exclusions are those of
        `LAMBOptimizer` in google-research/albert `lamb_optimizer.py`, which does not correct the bias.
    """
    shared = settings(learning_rate, weight_decay, clip_norm, exclude_from_weight_decay, gradient_accumulation_steps)
    unadapted = exclude_from_weight_decay if exclude_from_layer_adaptation is None else exclude_from_layer_adaptation
    return BertLamb(epsilon=1e-6, exclude_from_layer_adaptation=unadapted, **shared)
