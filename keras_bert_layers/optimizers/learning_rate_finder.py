"""`LearningRateFinder`: a learning rate range test, as a callback."""

import math
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks

# Of the average over the losses before; each step of a small batch has another loss.
_SMOOTHING = 0.9
# Training has diverged when the smoothed loss is so many times its minimum.
_DIVERGED = 4.0


class LearningRateFinder(keras.callbacks.Callback):
    """A callback that tries learning rates: the rate of a short `fit` rises from step to step until the loss diverges.

    Afterwards the weights, the optimizer and its learning rate are as before. `visualization.LearningRateCurve` draws
    the losses.

    Args:
        lowest: the rate of the first step.
        highest: the rate of the last step; each step multiplies the rate by the same factor.
        num_steps: how many steps to train at most; give `fit` as many, with more epochs if need be.

    Attributes:
        rates: the learning rate of each step.
        losses: the loss of each step.
        smoothed: the losses as an exponential average.

    Raises:
        TypeError, ValueError: an argument of another kind or out of range; `fit` of a model whose optimizer follows a
            schedule.

    Examples:
        >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> finder = LearningRateFinder(num_steps=20)
        >>> x = np.ones((40, 1))
        >>> _ = model.fit(x, 3 * x, batch_size=2, verbose=0, callbacks=[finder])
        >>> len(finder.rates), finder.rates[0], float(model.optimizer.learning_rate)
        (20, 1e-07, 0.009999999776482582)

    References:
        Smith 2015, arXiv:1506.01186, section 3.3.
    """

    def __init__(self, lowest: float = 1e-7, highest: float = 1e-2, *, num_steps: int = 100):
        super().__init__()
        owner = type(self).__name__
        self.lowest = checks.positive_number(owner, "lowest", lowest)
        self.highest = checks.positive_number(owner, "highest", highest)
        if highest <= lowest:
            raise ValueError(checks.message(owner, "highest", f"be greater than `lowest` ({lowest})", highest))
        self.num_steps = checks.integer(owner, "num_steps", num_steps, smallest=2)
        self.rates: list[float] = []
        self.losses: list[float] = []

    @property
    def smoothed(self) -> list[float]:
        """The losses as an exponential average, corrected for its start at 0."""
        average, found = 0.0, []
        for step, loss in enumerate(self.losses, 1):
            average = _SMOOTHING * average + (1 - _SMOOTHING) * loss
            found.append(average / (1 - _SMOOTHING**step))
        return found

    @property
    def suggestion(self) -> float:
        """A tenth of the rate at which the smoothed loss was lowest, for a training with this optimizer.

        Raises:
            RuntimeError: no `fit` with this callback has run.
        """
        if not self.losses:
            raise RuntimeError(
                f"`{type(self).__name__}`: there is no suggestion before training. "
                "Call `model.fit(..., callbacks=[finder])`."
            )
        return self.rates[int(np.argmin(self.smoothed))] / 10

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Copies the weights and the optimizer's state, to restore them at the end."""
        optimizer = self.model.optimizer
        if isinstance(optimizer.get_config()["learning_rate"], dict):
            rule = "have a number as its learning rate"
            cure = "The finder sets the rate. Compile with a number, such as `adamw(5e-5)`."
            raise ValueError(checks.message(type(self).__name__, "optimizer", rule, type(optimizer), cure))
        if not optimizer.built:
            optimizer.build(self.model.trainable_variables)
        self.rates, self.losses = [], []
        self._before = [(variable, variable.numpy()) for variable in (*self.model.weights, *optimizer.variables)]

    def on_train_batch_begin(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Sets the rate of the step."""
        self._synchronize()
        share = len(self.rates) / (self.num_steps - 1)
        self.rates.append(self.lowest * (self.highest / self.lowest) ** share)
        self.model.optimizer.learning_rate = self.rates[-1]
        self.model.reset_metrics()  # so that the loss is that of this step alone

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Notes the loss, and stops after the last step or if the loss diverges."""
        loss = float((logs or {})["loss"])
        if math.isfinite(loss):
            self.losses.append(loss)
        else:
            self.rates.pop()
        smoothed = self.smoothed
        has_diverged = not math.isfinite(loss) or smoothed[-1] > _DIVERGED * min(smoothed)
        if has_diverged or len(self.rates) == self.num_steps:
            self.model.stop_training = True

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Restores the weights and the optimizer."""
        self._synchronize()
        for variable, value in self._before:
            variable.assign(value)
        del self._before

    def _synchronize(self) -> None:
        """On JAX, training holds the values of variables, and takes new ones after this call."""
        if keras.backend.backend() == "jax":
            self.model.jax_state_sync()
