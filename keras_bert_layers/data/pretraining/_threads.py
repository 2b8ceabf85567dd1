"""`in_order`: a function on many things at the same time, with the results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(function: Callable[[Item], Result], items: Iterable[Item], *, num_threads: int) -> Iterator[Result]:
    """The results for items, in their order; `num_threads` of them are worked on while the next item is read.

    Args:
        function: it should spend its time in code that does not hold Python's lock.
        items: they are read one by one, in the caller's thread, and at most `num_threads + 1` ahead.
        num_threads: the number of threads.
    """
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(num_threads)
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > num_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
