"""`WarmupLinearDecay`: linear warm-up, then linear decay."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.arguments import constructor_arguments
from keras_bert_layers._internal.registration import register


@register
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate schedule that rises linearly from 0 to a peak, then falls linearly to 0 at the last step.

    Args:
        peak: the highest rate, reached after the warm-up.
        num_steps: the total number of training steps; the rate is 0 after them.
        num_warmup_steps: the number of warm-up steps, less than `num_steps`; 0 starts at the peak.

    Returns:
        A call with a step, counted from 0, returns the rate, a float32 scalar.

    Raises:
        TypeError, ValueError: an argument out of range.

    Examples:
        >>> rate = WarmupLinearDecay(1.0, num_steps=10, num_warmup_steps=2)
        >>> [float(rate(step)) for step in (0, 1, 2, 6, 10)]
        [0.0, 0.5, 1.0, 0.5, 0.0]

    References:
        Devlin et al. 2018, arXiv:1810.04805, appendix A.2; `get_linear_schedule_with_warmup` of transformers.
    """

    def __init__(self, peak: float, num_steps: int, *, num_warmup_steps: int = 0):
        self.peak = checks.positive_number("WarmupLinearDecay", "peak", peak)
        self.num_steps = checks.positive_integer("WarmupLinearDecay", "num_steps", num_steps)
        self.num_warmup_steps = checks.whole_number("WarmupLinearDecay", "num_warmup_steps", num_warmup_steps)
        if num_warmup_steps >= num_steps:
            rule = f"be less than `num_steps` ({num_steps})"
            raise ValueError(checks.message("WarmupLinearDecay", "num_warmup_steps", rule, num_warmup_steps))

    def __call__(self, step: Any) -> Any:
        """The rate at a step; see the class."""
        step = ops.cast(step, "float32")
        warmed_up = step / max(self.num_warmup_steps, 1)
        left = (self.num_steps - step) / (self.num_steps - self.num_warmup_steps)
        return self.peak * ops.maximum(ops.where(step < self.num_warmup_steps, warmed_up, left), 0.0)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return constructor_arguments(WarmupLinearDecay, self)
