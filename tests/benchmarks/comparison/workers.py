"""Starts the workers of a run, sends them commands one at a time, and waits until the processors rest in between."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from comparison.contender_error import ContenderError
from comparison.machine import wait_until_idle

# Weights are packed for the products once, and kept: Intel's setting for TensorFlow where nothing trains.
FROZEN = {"TF_ONEDNN_ASSUME_FROZEN_WEIGHTS": "1"}
PROGRAM = Path(__file__).with_name("worker.py")
ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TOKENIZERS_PARALLELISM": "true",
    "KERAS_BACKEND": "tensorflow",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "PYTHONWARNINGS": "ignore",
}


class WorkerProcess:
    """A contender in its own process.

    Args:
        contender: a module of `contenders`.
        python: the interpreter of the contender's environment.
        log: the file for what the libraries print.
        environment: what its environment has besides.
    """

    def __init__(self, contender: str, python: str, log: Path, environment: dict[str, str]):
        self.contender = contender
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [python, str(PROGRAM), contender],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env={**os.environ, **ENVIRONMENT, **environment},
                text=True,
            )

    @property
    def number(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def ask(self, command: str, **arguments: Any) -> Any:
        """The answer to one command; waits for it."""
        try:
            self._process.stdin.write(json.dumps({"do": command, **arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise ContenderError(f"its process ended with code {self._process.wait()}")
        reply = json.loads(line)
        if "error" in reply:
            raise ContenderError(reply["error"])
        return reply["result"]

    def close(self) -> None:
        """Ends the process."""
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Crew:
    """The workers of a run, each started at its first command.

    Args:
        pythons: contender -> interpreter, for those that have an environment of their own.
        log: the file for what the libraries print.
    """

    def __init__(self, pythons: dict[str, str], log: Path):
        self._pythons = pythons
        self._log = log
        self._environment = FROZEN
        self._workers: dict[str, WorkerProcess] = {}
        self.versions: dict[str, dict[str, str]] = {}
        self.missing: dict[str, str] = {}

    def fresh(self, contender: str) -> WorkerProcess:
        """A new process, which the caller closes."""
        python = self._pythons.get(contender, sys.executable)
        return WorkerProcess(contender, python, self._log, self._environment)

    def worker(self, contender: str) -> WorkerProcess:
        """The contender's running process."""
        if contender in self.missing:
            raise ContenderError(self.missing[contender])
        if contender not in self._workers or not self._workers[contender].is_alive:
            worker = self.fresh(contender)
            try:
                self.versions[contender] = worker.ask("start")
            except ContenderError as error:
                worker.close()
                self.missing[contender] = f"cannot start: {error}"
                raise ContenderError(self.missing[contender]) from error
            self._workers[contender] = worker
        return self._workers[contender]

    def let_weights_change(self, weights_change: bool) -> None:
        """Ends all workers; those to come may train, or may not."""
        self.close()
        self._environment = {} if weights_change else FROZEN

    def rest(self) -> None:
        """Waits until no worker computes."""
        wait_until_idle(worker.number for worker in self._workers.values() if worker.is_alive)

    def forget(self) -> None:
        """Frees the models of all workers."""
        for worker in self._workers.values():
            if worker.is_alive:
                worker.ask("forget")

    def close(self) -> None:
        """Ends all workers."""
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()
