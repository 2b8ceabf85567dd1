"""The worker process of one side: answers commands, one JSON line each.

    python worker.py MODULE

`MODULE` is a module of this folder with the functions `start`, `layouts`, `runner` and `matrix_product`.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

PRODUCTS_A_TURN = 20


class Worker:
    """The commands; each is a method, its arguments those of the JSON object."""

    def __init__(self, module: str, *, smoke: bool):
        self._side = importlib.import_module(f"acceleration.{module}")
        self._works = importlib.import_module("acceleration.works")
        self._smoke = smoke
        self._runners: dict[str, Callable[[], Any]] = {}

    def start(self) -> dict[str, Any]:
        """The device and the versions."""
        return self._side.start()

    def load(self, case: dict[str, Any]) -> dict[str, Any]:
        """Makes what a case needs, and compiles it; layout -> the seconds that it took, and those of a pass."""
        self._runners.clear()
        gc.collect()  # models are parts of cycles; two processes share the device's memory
        case, scale = self._works.Case(**case), self._works.SMOKE if self._smoke else self._works.BASE
        told = {}
        for layout in self._side.layouts(case):
            start = time.perf_counter()
            try:
                run = self._runners[layout] = self._side.runner(case, scale, layout, smoke=self._smoke)
                run()  # compiles
                run()  # settles; the second call of some programs is slow too
                loaded = time.perf_counter() - start
                told[layout] = {"load_and_compile_seconds": loaded, "first_pass_seconds": _seconds(run)}
            except Exception as error:  # the other layouts may work
                told[layout] = {"error": _told(error)}
        return told

    def turn(self, layout: str, passes: int) -> float:
        """The seconds of that many passes over the texts of the loaded case."""
        run = self._runners[layout]

        def all_passes() -> None:
            for _ in range(passes):
                run()

        return _seconds(all_passes)

    def multiply(self, size: int) -> float:
        """Operations per second of a product of square matrices in bfloat16."""
        run = self._side.matrix_product(size)
        run(1)
        return 2 * size**3 * PRODUCTS_A_TURN / min(_seconds(lambda: run(PRODUCTS_A_TURN)) for _ in range(3))


def _seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _told(error: Exception) -> str:
    traceback.print_exception(error)
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


def main() -> None:
    """Reads commands until the input ends."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the libraries print goes to the log
    worker = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if worker is None:
                worker = Worker(sys.argv[1], smoke="--smoke" in sys.argv)
            reply = {"result": getattr(worker, command.pop("do"))(**command)}
        except Exception as error:
            reply = {"error": _told(error)}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
