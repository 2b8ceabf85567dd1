"""BERT-base on an accelerator, in bfloat16, beside transformers + torch: inference, fine-tuning, pretraining.

    python tests/benchmarks/accelerator.py --json figures.json
    python tests/benchmarks/accelerator.py --smoke --json figures.json     # at tiny size, on the CPU: does it work?

This side needs keras, jax and numpy (not TensorFlow), the other torch and transformers; where they are missing, the
other side is left out. `--python torch=PYTHON` names the interpreter of an environment of its own. Each side is a
process. Both compile at the same time, and then take turns. Figures are medians of the turns. The file is written
again after each case, what matters most first, so a run that is killed leaves the figures it had.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from acceleration.side import Side
from acceleration.works import BASE, SMOKE, Case, Scale, cases, operations, text_lengths
from comparison.contender_error import ContenderError

MODULES = {"ours": "ours", "torch": "transformers_torch"}
START_LIMIT = 120.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True, help="the file to write")
    parser.add_argument("--smoke", action="store_true", help="a tiny model, two turns")
    parser.add_argument("--only", nargs="+", default=[""], help="cases whose names contain one of these words")
    parser.add_argument("--minutes", type=float, default=8.0, help="all work ends after this many minutes")
    parser.add_argument("--case-seconds", type=float, default=150.0, help="the most that a case may take")
    parser.add_argument("--backend", choices=["jax", "torch"], default="jax", help="Keras's, for this side")
    parser.add_argument("--python", nargs="*", default=[], metavar="SIDE=PYTHON", help="for `ours` or `torch`")
    parser.add_argument(
        "--log", type=Path, help="the file for what the libraries print; beside the figures if left out"
    )
    return parser.parse_args()


class Run:
    """The cases one after the other, and the file of their figures.

    Args:
        sides: name -> process.
        scale: the sizes.
        path: the file.
        deadline: when, by `time.monotonic`, everything ends.
        case_seconds: the most that a case may take.
    """

    def __init__(self, sides: dict[str, Side], scale: Scale, path: Path, *, deadline: float, case_seconds: float):
        self._sides = sides
        self._scale = scale
        self._path = path
        self._deadline = deadline
        self._case_seconds = case_seconds
        self._found: dict[str, Any] = {
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": f"{platform.platform()}, {os.cpu_count()} processors, Python {platform.python_version()}",
            "scale": {**vars(scale)},
            "sides": {},
            "missing": {},
            "peak_operations_per_second": {},
            "cases": {},
        }

    def start(self) -> None:
        """Starts the sides, and measures the device's peak by each."""
        for name, side in list(self._sides.items()):
            try:
                self._found["sides"][name] = side.ask("start", limit=START_LIMIT)
                peak = side.ask("multiply", limit=START_LIMIT, size=self._scale.matrix_size)
                self._found["peak_operations_per_second"][name] = peak
            except ContenderError as error:
                self._found["missing"][name] = str(error)
                side.close()
                del self._sides[name]
        self._write()

    def measure(self, case: Case) -> None:
        """Measures a case, or states why it cannot."""
        lines: dict[str, Any] = {}
        limit = min(self._deadline, time.monotonic() + self._case_seconds)
        if time.monotonic() > self._deadline:
            found: dict[str, Any] = {"left_out": "no time was left"}
        elif not self._sides:
            found = {"left_out": "neither side could start"}
        else:
            lines = self._lines(case, limit)
            found = {"lines": lines, **self._compared(lines)}
        self._found["cases"][case.name] = {**case.to_dict(), **found}
        self._write()

    def _lines(self, case: Case, limit: float) -> dict[str, Any]:
        """The figures of each side and layout, or why there are none."""
        tokens, needed = int(text_lengths(case, self._scale).sum()), operations(case, self._scale)
        peak = max(self._found["peak_operations_per_second"].values())
        lines = self._loaded(case, limit)
        for name, seconds in self._turns(lines, limit).items():
            if seconds:
                median = statistics.median(seconds)
                lines[name]["seconds"] = seconds
                lines[name]["tokens_per_second"] = tokens / median
                lines[name]["share_of_peak"] = needed / median / peak
        return lines

    def _loaded(self, case: Case, limit: float) -> dict[str, Any]:
        """What the sides report of each layout, after all of them have compiled at the same time."""
        failed = {}
        for name, side in self._sides.items():
            try:
                side.begin("load", case=case.to_dict())
            except ContenderError as error:
                failed[name] = {"error": str(error)}
        lines = {}
        for name, side in self._sides.items():
            if name in failed:
                continue
            try:
                for layout, told in side.finish(limit - time.monotonic()).items():
                    lines[f"{name}, {layout}"] = told
            except ContenderError as error:
                failed[name] = {"error": str(error)}
        return lines | failed

    def _turns(self, lines: dict[str, Any], limit: float) -> dict[str, list[float]]:
        """The seconds of a pass in each turn of each line; a line that fails has no more turns."""
        turns: dict[str, list[float]] = {name: [] for name, line in lines.items() if "error" not in line}
        names = list(turns)
        for number in range(self._scale.num_rounds):
            first = number % len(names) if names else 0
            for name in names[first:] + names[:first]:
                if "error" in lines[name]:
                    continue
                side, layout = name.split(", ")
                passes = max(1, math.ceil(self._scale.turn_seconds / lines[name]["first_pass_seconds"]))
                try:
                    left = limit - time.monotonic()
                    seconds = self._sides[side].ask("turn", limit=left, layout=layout, passes=passes)
                    turns[name].append(seconds / passes)
                except ContenderError as error:
                    lines[name]["error"] = str(error)
        return turns

    @staticmethod
    def _compared(lines: dict[str, Any]) -> dict[str, float]:
        """How many times as fast as the other side's best layout this side's best is."""
        best = dict.fromkeys(MODULES, 0.0)
        for line, figures in lines.items():
            name = line.partition(",")[0]
            best[name] = max(best[name], figures.get("tokens_per_second", 0.0))
        return {"times_torch": best["ours"] / best["torch"]} if all(best.values()) else {}

    def _write(self) -> None:
        beside = self._path.with_name(f"{self._path.name}.part")
        beside.write_text(json.dumps(self._found, indent=1) + "\n", encoding="utf-8")
        beside.replace(self._path)

    def table(self) -> str:
        """The figures as a Markdown table."""
        rows = ["| case | side, layout | tokens/s | share of peak |", "|---|---|--:|--:|"]
        for name, case in self._found["cases"].items():
            for line, figures in case.get("lines", {"": {"error": case.get("left_out")}}).items():
                if "seconds" not in figures:
                    rows.append(f"| {name} | {line} | {figures['error']} | |")
                else:
                    speed, share = figures["tokens_per_second"], figures["share_of_peak"]
                    rows.append(f"| {name} | {line} | {speed:,.0f} | {share:.1%} |")
        return "\n".join([*rows, *(f"Without {name}: {why}." for name, why in self._found["missing"].items())])


def main() -> None:
    given = arguments()
    deadline = time.monotonic() + 60 * given.minutes
    pythons = dict(each.split("=", 1) for each in given.python)
    log = given.log or given.json.with_suffix(".log")
    environment = {"ours": {"KERAS_BACKEND": given.backend}, "torch": {}}
    sides = {
        name: Side(module, pythons.get(name, sys.executable), log, smoke=given.smoke, environment=environment[name])
        for name, module in MODULES.items()
    }
    scale = SMOKE if given.smoke else BASE
    run = Run(dict(sides), scale, given.json, deadline=deadline, case_seconds=given.case_seconds)
    try:
        run.start()
        for case in cases(scale):
            if any(word in case.name for word in given.only):
                run.measure(case)
    finally:
        for side in sides.values():
            side.close(kill=True)
    print(run.table())


if __name__ == "__main__":
    main()
