"""Runs programs in several processes, or on virtual devices of JAX; imports no JAX."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("KERAS_", "XLA_", "SLURM_"))}
SECONDS = 540  # after them programs that hang are ended


def devices(count: int) -> dict[str, str]:
    """The environment of a process with virtual devices. Compiling takes most of the time, so XLA compiles little."""
    quick = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    return {"KERAS_BACKEND": "jax", "XLA_FLAGS": f"{quick} --xla_force_host_platform_device_count={count}"}


def environments(count: int) -> list[dict[str, str]]:
    """What each of several processes of a job is told; one process is told nothing."""
    if count == 1:
        return [{}]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"JOB_ADDRESSES": f"127.0.0.1:{port}", "NUM_PROCESSES": str(count)}
    return [
        {f"KERAS_DISTRIBUTION_{name}": value for name, value in {**common, "PROCESS_ID": str(index)}.items()}
        for index in range(count)
    ]


class Programs:
    """Runs Python programs in copies of one process; see forked.py.

    Args:
        folder: an empty one, for their output, and for what XLA has compiled: programs that compile the same share it.
        modules: what that process imports.
        variables: of its environment.
    """

    def __init__(self, folder: Path, modules: Sequence[str], variables: dict[str, str]):
        self.folder = folder
        compiled = {
            "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("forked.py"), *modules],
            env=ENVIRONMENT | compiled | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(
        self, commands: Sequence[Sequence[object]], variables: Sequence[dict[str, str]], *, errors: bool = False
    ) -> tuple[list[int], list[str]]:
        """The exit codes and the outputs of programs that run at the same time, with these variables beside."""
        files = [self.folder / f"output_{index}" for index in range(len(commands))]
        programs: list[dict[str, Any]] = [
            {"arguments": list(map(str, command)), "variables": more, "output": str(file), "errors": errors}
            for command, more, file in zip(commands, variables, files, strict=True)
        ]
        self.process.stdin.write(f"{json.dumps(programs)}\n")
        self.process.stdin.flush()
        timer = threading.Timer(SECONDS, self.end)
        timer.start()
        try:
            codes = json.loads(self.process.stdout.readline())
        finally:
            timer.cancel()
        return codes, [file.read_text(encoding="utf-8") for file in files]

    def end(self) -> None:
        """Ends the process, and its copies."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
