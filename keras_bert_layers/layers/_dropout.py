"""Dropout whose random state can be repeated, for gradient checkpointing."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Unpack

import keras

from keras_bert_layers._internal.keras_models import Untracked
from keras_bert_layers._internal.types import LayerOptions, Tensor


class Dropout(keras.layers.Dropout):
    """`keras.layers.Dropout`, whose seeds can be drawn beforehand, for steps that are computed twice."""

    def __init__(self, rate: float, **kwargs: Unpack[LayerOptions]):
        super().__init__(rate, **kwargs)
        self._drawn_seeds: Untracked[list[Any]] = Untracked([])

    def draw(self, count: int) -> list[Any]:
        """Draws the seeds of the next `count` calls; an empty list if `rate` is 0."""
        return [self.seed_generator.next() for _ in range(count)] if self.rate > 0 else []

    @contextmanager
    def replay(self, seeds: Sequence[Any]) -> Iterator[None]:
        """Makes the calls inside the context drop values by these seeds, one per call, as in training."""
        self._drawn_seeds.value = list(seeds)
        try:
            yield
        finally:
            self._drawn_seeds.value = []

    def call(self, inputs: Tensor, training: bool = False) -> Any:
        """Drops values by new seeds, or by those of `replay`."""
        if not self._drawn_seeds.value:
            return super().call(inputs, training=training)
        return keras.random.dropout(inputs, self.rate, seed=_DrawnSeed(self._drawn_seeds.value.pop(0)))


class _DrawnSeed(keras.random.SeedGenerator):
    """A seed generator that returns one given seed, for Keras's functions."""

    _initial_seed = 0  # on torch, Keras would use torch's own random numbers for None

    def __init__(self, seed: Tensor):
        self.seed = seed  # without the state that the base class would create

    def next(self, ordered: bool = True) -> Any:
        return self.seed
