"""`GoogleWarmupLinearDecay`: the schedule of google-research/bert."""

from __future__ import annotations

from typing import Any

from keras import ops

from keras_bert_layers._internal.registration import register
from keras_bert_layers.optimizers.warmup_linear_decay import WarmupLinearDecay


@register
class GoogleWarmupLinearDecay(WarmupLinearDecay):
    """The learning rate schedule of Google's BERT: linear decay from step 0, replaced by a warm-up in the first steps.

    Where the warm-up ends, the rate drops from almost `peak` to `peak * (1 - num_warmup_steps / num_steps)`. In
    `WarmupLinearDecay`, the decay starts at `peak` there. The rates of both are 0 at the last step.

    Args:
        peak: the rate to which the warm-up rises, and from which the decay starts at step 0.
        num_steps: the total number of training steps; the rate is 0 after them.
        num_warmup_steps: the number of warm-up steps, less than `num_steps`.

    Returns:
        A call with a step, counted from 0, returns the rate, a float32 scalar.

    Raises:
        TypeError, ValueError: an argument out of range.

    Examples:
        >>> rate = GoogleWarmupLinearDecay(1.0, num_steps=10, num_warmup_steps=5)
        >>> [round(float(rate(step)), 2) for step in (0, 4, 5, 6, 10)]
        [0.0, 0.8, 0.5, 0.4, 0.0]

    References:
        `create_optimizer` in google-research/bert `optimization.py`.
    """

    def __call__(self, step: Any) -> Any:
        """The rate at a step; see the class."""
        step = ops.cast(step, "float32")
        warmed_up = step / max(self.num_warmup_steps, 1)
        left = 1 - step / self.num_steps
        return self.peak * ops.maximum(ops.where(step < self.num_warmup_steps, warmed_up, left), 0.0)
