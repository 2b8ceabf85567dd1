"""Batches the requests that arrive while the model is busy."""

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
    num_rows: int
    done: asyncio.Future[list[Any]]
    answers: list[Any] = field(default_factory=list)

    def part(self, num_rows: int) -> Columns:
        """The next rows."""
        start = len(self.answers)
        return {name: column[start : start + num_rows] for name, column in self.columns.items()}


class Batcher:
    """Runs one step of the model at a time, filled with rows of all waiting requests.

    A single request does not wait. A request of many rows is split over several steps, so that it does not delay the
    small ones after it. If a step fails, its requests run one by one, so that each gets the answer, or the error, that
    it would get alone.

    Args:
        run: takes a request's key and the columns of some rows of that key, and returns one answer per row. It runs in
            a thread.
        max_rows: the number of rows of one step.
    """

    def __init__(self, run: Callable[[Any, Columns], list[Any]], *, max_rows: int = 32):
        self._run = run
        self._max_rows = max_rows
        self._jobs: deque[_Job] = deque()
        self._work: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")

    async def answer(self, key: Hashable, columns: Columns) -> list[Any]:
        """One answer per row.

        Args:
            key: rows of equal keys may share a step.
            columns: name -> array, batch first, of equal length and at least one row.

        Raises:
            Exception: the error of `run` for this request.
        """
        num_rows = len(next(iter(columns.values())))
        job = _Job(key, columns, num_rows, asyncio.get_running_loop().create_future())
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

    def _next(self) -> list[tuple[_Job, Columns]]:
        """The rows of the next step: those of the oldest request, and of others with the same key."""
        parts: list[tuple[_Job, Columns]] = []
        kept: deque[_Job] = deque()
        num_left = self._max_rows
        while self._jobs and num_left:
            job = self._jobs.popleft()
            if job.done.done():  # its client has disconnected
                continue
            if parts and job.key != parts[0][0].key:
                kept.append(job)
                continue
            part = job.part(num_left)
            num_left -= len(next(iter(part.values())))
            parts.append((job, part))
        self._jobs.extendleft(reversed(kept))
        return parts

    async def _step(self, parts: list[tuple[_Job, Columns]]) -> None:
        if not parts:
            return
        columns = {name: np.concatenate([part[name] for _, part in parts]) for name in parts[0][1]}
        try:
            answers = await self._in_thread(parts[0][0].key, columns)
        except Exception as error:  # it becomes the answer of its own request
            if len(parts) > 1:
                for part in parts:
                    await self._step([part])
            elif not parts[0][0].done.done():
                parts[0][0].done.set_exception(error)
            return
        for job, part in parts:
            num_rows = len(next(iter(part.values())))
            job.answers += answers[:num_rows]
            answers = answers[num_rows:]
            self._finish(job)

    def _finish(self, job: _Job) -> None:
        """Completes a request, or appends it to the queue for its remaining rows."""
        if job.done.done():
            return
        if len(job.answers) == job.num_rows:
            job.done.set_result(job.answers)
        else:
            self._jobs.append(job)

    async def _in_thread(self, key: Hashable, columns: Columns) -> list[Any]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, key, columns)
