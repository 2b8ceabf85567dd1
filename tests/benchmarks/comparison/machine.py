"""The machine that is measured on: its processor, cores and memory, and waiting until it is idle."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil

LOOK_SECONDS = 0.05
LONGEST_WAIT_SECONDS = 2.0
INSTRUCTIONS = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8")


def num_cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe_machine() -> dict[str, Any]:
    """Processor, cores, memory, and how busy the machine was before the comparison began."""
    return {
        "processor": _processor_name(),
        "cores": num_cores(),
        "instructions": _instructions(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "busy_share_before": round(psutil.cpu_percent(interval=2.0) / 100, 3),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def wait_until_idle(processes: Iterable[int]) -> None:
    """Waits until none of the processes computes: the threads of the one before may spin for a while."""
    watched = [psutil.Process(number) for number in processes]
    deadline = time.perf_counter() + LONGEST_WAIT_SECONDS
    before = [process.cpu_times()[:2] for process in watched]
    while time.perf_counter() < deadline:
        time.sleep(LOOK_SECONDS)
        now = [process.cpu_times()[:2] for process in watched]
        if now == before:
            return
        before = now


def folder_bytes(folder: Path) -> int:
    """The size of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _instructions() -> list[str]:
    """Those of the processor's instructions that decide how fast matrix products are."""
    cpuinfo = Path("/proc/cpuinfo")
    flags = cpuinfo.read_text(encoding="utf-8").split() if cpuinfo.is_file() else []
    return [name for name in INSTRUCTIONS if name in flags]


def _processor_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
