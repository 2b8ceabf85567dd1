"""The worker process of one contender: answers commands, one JSON line each, and sleeps between them.

    python worker.py CONTENDER

`CONTENDER` is a module of `contenders`. What it may define:

- `start() -> dict`: imports the library, gives it all cores; returns the versions of its packages;
- `prepare(folder, dtype)`: makes the files that it loads from the HuggingFace directory `folder/huggingface`;
- `encoder_settings(dtype, longest) -> list[dict]` and `trainer_settings(dtype, longest)`: the settings to try, where
  one cannot know which is best;
- `encoder(folder, dtype, **setting)`: a function from texts and a batch size to unit vectors `(texts, width)`;
- `trainer(folder, dtype, **setting)`: a function from texts, labels and a batch size, that trains on them once and
  returns the mean loss;
- `matrix_product(dtype, size)`: a function without arguments that multiplies two square matrices.

A contender that cannot run a command raises; the reason is sent back, and shown in the table.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


class Worker:
    """The commands; each is a method, its arguments those of the JSON object."""

    def __init__(self, contender: str):
        self._module = importlib.import_module(f"comparison.contenders.{contender}")
        self._loaded: dict[str, Callable] = {}

    def start(self) -> dict[str, str]:
        """The versions of the contender's packages, after their import."""
        return self._module.start()

    def prepare(self, folder: str, dtype: str) -> None:
        """Makes the contender's files."""
        self._module.prepare(Path(folder), dtype)

    def settings(self, kind: str, dtype: str, longest: int) -> list[dict[str, Any]]:
        """The settings to try for an `"encoder"` or a `"trainer"`."""
        tried = getattr(self._module, f"{kind}_settings", None)
        return tried(dtype, longest) if tried else [{}]

    def load(self, key: str, kind: str, folder: str, dtype: str, setting: dict[str, Any]) -> None:
        """Loads an `"encoder"` or a `"trainer"`."""
        if key not in self._loaded:
            self._loaded[key] = getattr(self._module, kind)(Path(folder), dtype, **setting)

    def forget(self, key: str | None = None) -> None:
        """Drops what is loaded under a key; everything if None."""
        if key is None:
            self._loaded.clear()
        self._loaded.pop(key, None)

    def encode(self, key: str, texts: list[str], batch_size: int, save: str | None = None) -> dict[str, float]:
        """Texts to vectors, timed, behind one text that is not; `save` names a file for the vectors."""
        run = self._loaded[key]
        run(texts[:1], batch_size)
        vectors, timed = _timed(run, texts, batch_size)
        if save:
            np.save(save, np.asarray(vectors, np.float32))
        return timed

    def answer_one_by_one(self, key: str, text: str, repetitions: int) -> dict[str, Any]:
        """The seconds of each of several answers to one text."""
        run = self._loaded[key]
        run([text], 1)
        seconds = []
        for _ in range(repetitions):
            start = time.perf_counter()
            run([text], 1)
            seconds.append(time.perf_counter() - start)
        return {"seconds": seconds}

    def train(self, key: str, texts: list[str], labels: list[int], batch_size: int) -> dict[str, float]:
        """Steps over all texts, timed."""
        loss, timed = _timed(self._loaded[key], texts, labels, batch_size)
        return {**timed, "loss": float(loss)}

    def multiply(self, dtype: str, size: int, repetitions: int) -> dict[str, Any]:
        """The seconds of each of several products of square matrices."""
        run = self._module.matrix_product(dtype, size)
        run()
        return {"seconds": [_timed(run)[1]["seconds"] for _ in range(repetitions)]}

    def peak_memory(self) -> float:
        """The most memory that this process has held, in MB."""
        status = Path("/proc/self/status")
        if status.is_file():  # on Linux, `getrusage` also counts the process that started this one
            (line,) = (each for each in status.read_text().splitlines() if each.startswith("VmHWM:"))
            return int(line.split()[1]) * 1024 / 1e6
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # bytes on macOS


def _timed(run: Callable, *arguments: Any) -> tuple[Any, dict[str, float]]:
    start, processor_start = time.perf_counter(), time.process_time()
    result = run(*arguments)
    seconds, processor_seconds = time.perf_counter() - start, time.process_time() - processor_start
    return result, {"seconds": seconds, "processor_seconds": processor_seconds}


def main() -> None:
    """Reads commands until the input ends."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the libraries print goes to the log
    worker = Worker(sys.argv[1])
    for line in sys.stdin:
        command = json.loads(line)
        try:
            reply = {"result": getattr(worker, command.pop("do"))(**command)}
        except Exception as error:
            traceback.print_exc()
            lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
            told = lines[-1] if lines[0].endswith(":") else lines[0]
            reply = {"error": f"{type(error).__name__}: {told}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
