"""`WarmupStableDecay`: linear warm-up, a constant rate, then decay."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.arguments import constructor_arguments
from keras_bert_layers._internal.registration import register


@register
class WarmupStableDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate schedule that rises linearly, stays at its peak for most of the training, and falls to 0 at last.

    As the rate does not depend on the end before the decay begins, a training can go on from a checkpoint of its
    constant part, with more steps or other data, and decay whenever a model is wanted. The rate falls by one minus the
    square root of the share of the decay that is done.

    Args:
        peak: the constant rate.
        num_steps: the total number of training steps; the rate is 0 after them.
        num_warmup_steps: the number of steps in which the rate rises; 0 starts at the peak.
        num_decay_steps: the number of last steps in which the rate falls. About a tenth of all steps is usual.

    Returns:
        A call with a step, counted from 0, returns the rate, a float32 scalar.

    Raises:
        TypeError, ValueError: an argument of another kind or out of range.

    Examples:
        >>> rate = WarmupStableDecay(1.0, num_steps=10, num_warmup_steps=2, num_decay_steps=4)
        >>> [float(rate(step)) for step in (0, 1, 2, 6, 7, 10)]
        [0.0, 0.5, 1.0, 1.0, 0.5, 0.0]

    References:
        Hu et al. 2024, arXiv:2404.06395, section 4; its decay is exponential, the square root is that of Hägele et al.
        2024, arXiv:2405.18392, and of ModernBERT, Warner et al. 2024, arXiv:2412.13663.
    """

    def __init__(self, peak: float, num_steps: int, *, num_warmup_steps: int = 0, num_decay_steps: int):
        owner = "WarmupStableDecay"
        self.peak = checks.positive_number(owner, "peak", peak)
        self.num_steps = checks.positive_integer(owner, "num_steps", num_steps)
        self.num_warmup_steps = checks.whole_number(owner, "num_warmup_steps", num_warmup_steps)
        self.num_decay_steps = checks.positive_integer(owner, "num_decay_steps", num_decay_steps)
        if num_warmup_steps + num_decay_steps > num_steps:
            rule = f"be at most `num_steps` ({num_steps}) less `num_warmup_steps` ({num_warmup_steps})"
            raise ValueError(checks.message(owner, "num_decay_steps", rule, num_decay_steps))

    def __call__(self, step: Any) -> Any:
        """The rate at a step; see the class."""
        step = ops.cast(step, "float32")
        warmed_up = ops.minimum(step / self.num_warmup_steps, 1.0) if self.num_warmup_steps else 1.0
        decayed = (step - (self.num_steps - self.num_decay_steps)) / self.num_decay_steps
        return self.peak * warmed_up * (1 - ops.sqrt(ops.clip(decayed, 0.0, 1.0)))

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return constructor_arguments(WarmupStableDecay, self)
