"""`OptimizerLogger`: the learning rate and the norm of the gradients in the logs of `fit`."""

from typing import Any

import keras

from keras_bert_layers._internal import checks


class OptimizerLogger(keras.callbacks.Callback):
    """A callback that adds `learning_rate` and `gradient_norm` to the logs of `fit`.

    What reads the logs finds them there: the history, and the callbacks after it in the list, such as `CSVLogger` and
    `TensorBoard`. The rate is that of the next update, as in Keras's own callbacks. The norm is that of the last
    update's gradients before they were clipped, which the optimizers of this package keep; with others, the rate is
    logged alone. The parts of a `MultiOptimizer` have their names after these.

    Args:
        each_step: also in the logs of each step, such as those of `TensorBoard(update_freq=100)`. `fit` then waits for
            each step before it starts the next one.

    Raises:
        TypeError: `each_step` is not True or False.

    Examples:
        >>> import numpy as np
        >>> from keras_bert_layers.optimizers import adamw
        >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="zeros")])
        >>> model.compile(adamw(0.5), "mse")
        >>> x = np.ones((4, 1))
        >>> history = model.fit(x, 3 * x, verbose=0, callbacks=[OptimizerLogger()]).history
        >>> history["learning_rate"], round(history["gradient_norm"][0], 3)  # two gradients of 6
        ([0.5], 8.485)
    """

    def __init__(self, *, each_step: bool = False):
        super().__init__()
        self.each_step = checks.boolean(type(self).__name__, "each_step", each_step)
        self.async_safe = not each_step  # Keras then need not wait for a step's logs

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Adds to the logs of a step."""
        if self.each_step:
            if keras.backend.backend() == "jax":  # training holds the values of variables
                self.model.jax_state_sync()
            self._add_to(logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Adds to the logs of an epoch."""
        self._add_to(logs)

    def _add_to(self, logs: dict[str, Any]) -> None:
        optimizer = getattr(self.model.optimizer, "inner_optimizer", self.model.optimizer)  # of a LossScaleOptimizer
        parts = getattr(optimizer, "optimizers", None)  # of a MultiOptimizer
        named = {"": optimizer} if parts is None else {f"_{part.name}": part for part in parts}
        for suffix, one in named.items():
            logs[f"learning_rate{suffix}"] = float(keras.ops.convert_to_numpy(one.learning_rate))
            if (norm := getattr(one, "gradient_norm", None)) is not None:
                logs[f"gradient_norm{suffix}"] = float(keras.ops.convert_to_numpy(norm))
