"""Batches the requests that arrive while the model is busy, up to a number of tokens."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Columns = dict[str, np.ndarray]


@dataclass
class _Job:
    """A request in progress: its rows, and the answers of its first rows."""

    key: Hashable
    columns: Columns
    tokens: list[int]
    done: asyncio.Future[list[Any]]
    answers: list[Any] = field(default_factory=list)

    def rows_within(self, max_tokens: int) -> int:
        """How many of the next rows have no more tokens than that together."""
        start, total = len(self.answers), 0
        for number, tokens in enumerate(self.tokens[start:]):
            total += tokens
            if total > max_tokens:
                return number
        return len(self.tokens) - start

    def part(self, num_rows: int) -> _Part:
        """The next rows."""
        rows = slice(len(self.answers), len(self.answers) + num_rows)
        columns = {name: column[rows] for name, column in self.columns.items()}
        return _Part(self, columns, num_rows, sum(self.tokens[rows]))


@dataclass
class _Part:
    """Some rows of a request, in one step."""

    job: _Job
    columns: Columns
    num_rows: int
    num_tokens: int


class Batcher:
    """Runs one step of the model at a time, filled with rows of all waiting requests.

    A single request does not wait. Rows are taken in the order of their requests until the next one would exceed the
    tokens of a step; a row that alone has more runs alone. A request of several steps goes to the end of the queue
    after each, so that it does not delay the small ones after it. If a step fails, its requests run one by one, so that
    each gets the answer, or the error, that it would get alone.

    The tokens of a step are the sum over its rows, because the exported graph skips padding.

    Args:
        run: takes a request's key and the columns of some rows of that key, and returns one answer per row. It runs in
            a thread.
        max_tokens: the tokens of one step.
        observe: called with the rows and the tokens of each step before it runs.
    """

    def __init__(
        self,
        run: Callable[[Any, Columns], list[Any]],
        *,
        max_tokens: int = 2048,
        observe: Callable[[int, int], None] = lambda rows, tokens: None,
    ):
        self._run = run
        self._max_tokens = max_tokens
        self._observe = observe
        self._jobs: deque[_Job] = deque()
        self._work: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")

    def __len__(self) -> int:
        """The requests in the queue, without those of the step that runs."""
        return len(self._jobs)

    async def answer(self, key: Hashable, columns: Columns, tokens: list[int]) -> list[Any]:
        """One answer per row.

        Args:
            key: rows of equal keys may share a step.
            columns: name -> array, batch first, of equal length and at least one row.
            tokens: the tokens of each row.

        Raises:
            Exception: the error of `run` for this request.
        """
        job = _Job(key, columns, tokens, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        if self._work is None:
            self._work = asyncio.create_task(self._work_off())
        return await job.done

    async def _work_off(self) -> None:
        try:
            while self._jobs:
                await self._step(self._next())
        finally:
            self._work = None

    def _next(self) -> list[_Part]:
        """The rows of the next step: those of the oldest request, and of others with the same key."""
        parts: list[_Part] = []
        kept: deque[_Job] = deque()
        left = self._max_tokens
        while self._jobs:
            job = self._jobs.popleft()
            if job.done.done():  # its client has disconnected, or its time is over
                continue
            if parts and job.key != parts[0].job.key:
                kept.append(job)
                continue
            num_rows = job.rows_within(left) or (0 if parts else 1)
            if not num_rows:  # nobody overtakes it
                kept.append(job)
                break
            parts.append(job.part(num_rows))
            left -= parts[-1].num_tokens
        self._jobs.extendleft(reversed(kept))
        return parts

    async def _step(self, parts: list[_Part]) -> None:
        if not parts:
            return
        columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
        self._observe(sum(part.num_rows for part in parts), sum(part.num_tokens for part in parts))
        try:
            answers = await self._in_thread(parts[0].job.key, columns)
        except Exception as error:  # it becomes the answer of its own request
            if len(parts) > 1:
                for part in parts:
                    await self._step([part])
            elif not parts[0].job.done.done():
                parts[0].job.done.set_exception(error)
            return
        for part in parts:
            part.job.answers += answers[: part.num_rows]
            answers = answers[part.num_rows :]
            self._finish(part.job)

    def _finish(self, job: _Job) -> None:
        """Completes a request, or appends it to the queue for its remaining rows."""
        if job.done.done():
            return
        if len(job.answers) == len(job.tokens):
            job.done.set_result(job.answers)
        else:
            self._jobs.append(job)

    async def _in_thread(self, key: Hashable, columns: Columns) -> list[Any]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, key, columns)
