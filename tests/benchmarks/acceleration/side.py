"""Starts a worker process of the benchmark and sends it commands, with a time limit for each answer."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import threading
from pathlib import Path
from typing import Any

from comparison.contender_error import ContenderError

ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # the other side needs memory of the same device
}
# At tiny size, compiling is what takes time, and two processes with one thread per core wait for each other.
SMOKE_ENVIRONMENT = {"XLA_FLAGS": "--xla_backend_optimization_level=0", "OMP_NUM_THREADS": "1"}
ROOT = Path(__file__).parents[3]


class Side:
    """A worker process, started at its first command, and again after it was ended for taking too long.

    Args:
        module: a module of this folder.
        python: the interpreter of its environment.
        log: the file for what the libraries print.
        smoke: whether everything is tiny.
        environment: what its environment has besides.
    """

    def __init__(self, module: str, python: str, log: Path, *, smoke: bool, environment: dict[str, str]):
        program = Path(__file__).with_name("worker.py")
        self._command = [python, str(program), module, *(["--smoke"] if smoke else [])]
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        tiny = SMOKE_ENVIRONMENT if smoke else {}
        self._environment = {**os.environ, **ENVIRONMENT, **tiny, **environment, "PYTHONPATH": path}
        self._log = log
        self._process: subprocess.Popen | None = None
        self._lines: queue.Queue[str] = queue.Queue()

    def begin(self, command: str, **arguments: Any) -> None:
        """Sends a command, whose answer `finish` returns."""
        if self._process is None:
            self._start()
            if command != "start":
                self.begin("start")
                self.finish(limit=120.0)
        line = json.dumps({"do": command, **arguments}) + "\n"
        with contextlib.suppress(BrokenPipeError):  # `finish` finds the end of the output
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def finish(self, limit: float) -> Any:
        """The answer to the last command; the process is killed if there is none after the given seconds."""
        try:
            line = self._lines.get(timeout=max(limit, 0.1))
        except queue.Empty:
            self.close(kill=True)
            raise ContenderError(f"took longer than {limit:.0f} s") from None
        if not line:
            code = self._process.wait()
            self.close()
            raise ContenderError(f"its process ended with code {code}")
        reply = json.loads(line)
        if "error" in reply:
            raise ContenderError(reply["error"])
        return reply["result"]

    def ask(self, command: str, *, limit: float, **arguments: Any) -> Any:
        """The answer to one command."""
        self.begin(command, **arguments)
        return self.finish(limit)

    def close(self, *, kill: bool = False) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is None:
            return
        if kill:
            process.kill()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def _start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment,
                text=True,
            )
        self._lines = queue.Queue()
        threading.Thread(target=_read, args=(self._process.stdout, self._lines), daemon=True).start()


def _read(output: Any, lines: queue.Queue[str]) -> None:
    with contextlib.suppress(ValueError):  # closed while it waited
        for line in output:
            lines.put(line)
    lines.put("")
