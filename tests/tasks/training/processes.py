"""Runs programs in several processes, or on virtual devices of JAX; imports no JAX."""

import os
import socket
import subprocess
import sys
from collections.abc import Sequence

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("KERAS_", "XLA_", "SLURM_"))}


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


def run(commands: Sequence[Sequence[object]], variables: Sequence[dict[str, str]], **streams: int) -> tuple[list, list]:
    """The exit codes and the outputs of Python programs that run at the same time, with these variables beside."""
    running = [
        subprocess.Popen(
            [sys.executable, *map(str, command)], env=ENVIRONMENT | more, stdout=subprocess.PIPE, text=True, **streams
        )
        for command, more in zip(commands, variables, strict=True)
    ]
    try:
        texts = [process.communicate(timeout=540)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    return [process.returncode for process in running], texts
