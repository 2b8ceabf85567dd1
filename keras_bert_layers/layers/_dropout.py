"""`Dropout`: Keras's, which can drop the same numbers again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras


class Dropout(keras.layers.Dropout):
    """`keras.layers.Dropout`, with seeds that can be drawn ahead, for steps that are computed twice."""

    def __init__(self, rate: float, **kwargs: Any):
        super().__init__(rate, **kwargs)
        self._ahead = _Ahead()

    def draw(self, count: int) -> list[Any]:
        """The seeds of the next `count` calls; none where nothing is dropped."""
        return [self.seed_generator.next() for _ in range(count)] if self.rate > 0 else []

    @contextmanager
    def replay(self, seeds: Sequence[Any]) -> Iterator[None]:
        """Within, one call after the other drops by these seeds, as in training."""
        self._ahead.seeds = list(seeds)
        try:
            yield
        finally:
            self._ahead.seeds = []

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Drops, as Keras's layer, or as told."""
        if not self._ahead.seeds:
            return super().call(inputs, training=training)
        return keras.random.dropout(inputs, self.rate, seed=_DrawnSeed(self._ahead.seeds.pop(0)))


class _Ahead:
    """Seeds that were drawn ahead, where Keras does not look for weights."""

    def __init__(self) -> None:
        self.seeds: list[Any] = []


class _DrawnSeed(keras.random.SeedGenerator):
    """One seed that was drawn already, for Keras's functions, which ask a generator for it."""

    def __init__(self, seed: Any):
        self.seed = seed  # and no state, which the base class would make

    def next(self, ordered: bool = True) -> Any:
        return self.seed
