"""`watched`: reports every tensor that is read from a file or written to one, for progress bars."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import numpy as np

_watcher: ContextVar[Callable[[int], object] | None] = ContextVar("watcher", default=None)


@contextlib.contextmanager
def watched(watcher: Callable[[int], object]) -> Iterator[None]:
    """Calls `watcher` with the size of each weight that is read, or about to be written, inside the block.

    Args:
        watcher: called once for each tensor, with its number of bytes in float32.

    Examples:
        >>> seen = []
        >>> with watched(seen.append):
        ...     _ = moved(np.zeros((2, 3), "float32"))
        >>> seen
        [24]
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def moved(array: np.ndarray) -> np.ndarray:
    """Returns the same array after reporting it to the watcher."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(array.nbytes)
    return array
