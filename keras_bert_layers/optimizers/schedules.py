"""Learning rate schedules with a linear warm-up."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops
from keras.optimizers.schedules import LearningRateSchedule

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import constructor_arguments
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Tensor


@register
class Warmup(LearningRateSchedule):
    """A learning rate schedule that rises linearly from 0, then follows another schedule from its first step.

    With Keras's own schedules: `CosineDecay` for cosine, `PolynomialDecay` for polynomial decay; a number is a constant
    rate. For linear decay see `WarmupLinearDecay`.

    Args:
        schedule: what follows the warm-up: a schedule, whose step 0 is the end of the warm-up, or a constant rate.
        num_steps: the number of warm-up steps.

    Returns:
        A call with a step, counted from 0, returns the rate, a float32 scalar.

    Raises:
        TypeError, ValueError: an argument of another kind or out of range.

    Examples:
        >>> rate = Warmup(keras.optimizers.schedules.CosineDecay(1.0, decay_steps=8), num_steps=2)
        >>> [round(float(rate(step)), 3) for step in (0, 1, 2, 6, 10)]
        [0.0, 0.5, 1.0, 0.5, 0.0]

    References:
        Goyal et al. 2017, arXiv:1706.02677, section 2.2.
    """

    def __init__(self, schedule: float | LearningRateSchedule, num_steps: int):
        if not isinstance(schedule, LearningRateSchedule):
            schedule = checks.positive_number("Warmup", "schedule", schedule)
        self.schedule = schedule
        self.num_steps = checks.positive_integer("Warmup", "num_steps", num_steps)

    def __call__(self, step: Any) -> Any:
        """The rate at a step; see the class."""
        step = ops.cast(step, "float32")
        after = ops.maximum(step - self.num_steps, 0.0)
        rate = self.schedule(after) if isinstance(self.schedule, LearningRateSchedule) else self.schedule
        return ops.cast(rate, "float32") * ops.minimum(step / self.num_steps, 1.0)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {"schedule": keras.saving.serialize_keras_object(self.schedule), "num_steps": self.num_steps}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Warmup:
        """The schedule of a `get_config` dictionary."""
        return cls(keras.saving.deserialize_keras_object(config["schedule"]), config["num_steps"])


@register
class WarmupLinearDecay(LearningRateSchedule):
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
        return self.peak * ops.maximum(ops.where(step < self.num_warmup_steps, warmed_up, self._decayed(step)), 0.0)

    def _decayed(self, step: Tensor | int) -> Any:
        """The share of the peak that is left after the warm-up; negative after the last step."""
        return (self.num_steps - step) / (self.num_steps - self.num_warmup_steps)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return constructor_arguments(WarmupLinearDecay, self)


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

    def _decayed(self, step: Tensor | int) -> Any:
        return 1 - step / self.num_steps


@register
class WarmupStableDecay(LearningRateSchedule):
    """A learning rate schedule that rises linearly, stays at its peak for most of the training, and falls to 0 at last.

    As the rate does not depend on the end before the decay begins, a training can resume from a checkpoint of its
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
