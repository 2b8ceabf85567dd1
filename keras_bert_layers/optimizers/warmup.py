"""`Warmup`: linear warm-up before any schedule."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops
from keras.optimizers.schedules import LearningRateSchedule

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register


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
