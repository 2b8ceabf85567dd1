"""The progress bar and the callbacks of a long prediction."""

from __future__ import annotations

from typing import Any

import keras


class Progress:
    """Shows Keras's progress bar over rows, and calls Keras callbacks at every step.

    Args:
        model: the model that the callbacks see.
        num_rows: the number of rows, or None if it is unknown.
        verbose: as in `keras.Model.predict`: 0 shows nothing, 1 and "auto" a bar, 2 one line at the end.
        callbacks: Keras callbacks, or None.
    """

    def __init__(self, model: keras.Model, *, num_rows: int | None, verbose: Any, callbacks: Any):
        self._bar = None
        if verbose != 0:
            self._bar = keras.utils.Progbar(num_rows, verbose=1 if verbose == "auto" else verbose, unit_name="row")
        if not isinstance(callbacks, keras.callbacks.CallbackList):
            callbacks = keras.callbacks.CallbackList(callbacks, model=model, verbose=verbose, epochs=1, steps=None)
        self._callbacks = callbacks
        self._num_steps = 0
        self._rows_done = 0.0
        self._block_size = 0

    def begin(self) -> None:
        """Called before the first step."""
        self._callbacks.on_predict_begin()

    def begin_block(self, num_rows: int) -> None:
        """Called before the steps of a block of `num_rows` rows."""
        self._rows_done = round(self._rows_done)
        self._block_size = num_rows

    def begin_step(self) -> None:
        """Called before each step."""
        self._callbacks.on_predict_batch_begin(self._num_steps)

    def end_step(self, outputs: Any, share: float) -> None:
        """Called after each step with its outputs, and the share of its block that it computed."""
        self._callbacks.on_predict_batch_end(self._num_steps, {"outputs": outputs})
        self._num_steps += 1
        self._rows_done += share * self._block_size
        rows_done = round(self._rows_done)
        if self._bar is not None and rows_done != self._bar.target:  # the last line is `end`'s
            self._bar.update(rows_done, finalize=False)

    def end(self) -> None:
        """Called after the last step."""
        if self._bar is not None:
            self._bar.update(round(self._rows_done), finalize=True)
        self._callbacks.on_predict_end()
