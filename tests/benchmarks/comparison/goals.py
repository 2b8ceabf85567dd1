"""The goals of the project, each beside the figure of the run."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from comparison.arithmetic import best_of, median_ratio
from comparison.lines import (
    BFLOAT16,
    FLOAT32,
    KERAS_HUB,
    KERAS_HUB_128,
    ONNX,
    PREDICT,
    SAVED_MODEL,
    TORCH,
    UNPACKED,
    VECTORS,
    Line,
)

SORTED, SENTENCES = ", sorted", "SST-2 sentences"
LARGEST_DIFFERENCE = 1e-4
LEAST_COSINE = 0.999
LEAST_COSINE_OF_FEWER_BITS = 0.997
MEGABYTES_BESIDE_WEIGHTS = 4.0
MEGABYTES_BESIDE_ONNX = 300.0


@dataclass(frozen=True)
class Goal:
    """A bound, and what was measured.

    Args:
        work: where.
        rule: what is asked.
        figure: what was measured.
        bound: the least figure, or the greatest where `at_most`.
        at_most: whether less is better.
        unit: what stands behind the figure.
        stretch: a better bound, to aim for.
    """

    work: str
    rule: str
    figure: float
    bound: float
    at_most: bool = False
    unit: str = "x"
    stretch: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether the figure keeps the bound."""
        return self.figure <= self.bound if self.at_most else self.figure >= self.bound


def label(who: tuple[str, str], dtype: str) -> str:
    """The label of a line."""
    return Line(*who, dtype).label


def judge(works: dict[str, Any], peaks: dict[str, float]) -> list[Goal]:
    """The goals that the run has figures for.

    Args:
        works: the results, by the work's name.
        peaks: dtype -> GFLOP/s of the machine's best matrix product.
    """
    judges: dict[str, Callable[[list[dict[str, Any]]], list[Goal]]] = {
        "vectors": _of_vectors,
        "latency": _of_latency,
        "training": _of_training,
        "tokenizing": _of_tokenizing,
        "growth": lambda results: _of_growth(results, peaks),
        "start-up": _of_start_up,
    }
    return [goal for name, judged in judges.items() for goal in judged(works.get(name, []))]


def best_peer(seconds: dict[str, list[float]], dtype: str) -> str | None:
    """The label of the fastest contender of a dtype that is not ours."""
    peers = [line.label for line in VECTORS if line.dtype == dtype and not line.is_ours]
    return best_of({name: statistics.median(seconds[name]) for name in peers if name in seconds})


def _ratio(
    work: str, seconds: dict[str, list[float]], ours: str, other: str | None, *, least: float, **more: Any
) -> list[Goal]:
    """The speed of ours as a multiple of another's, if both took part."""
    if other is None or not {ours, other} <= seconds.keys():
        return []
    return [Goal(work, f"{ours} against {other}", median_ratio(seconds[other], seconds[ours]), least, **more)]


def _of_vectors(results: list[dict[str, Any]]) -> list[Goal]:
    goals = []
    for result in results:
        seconds, equality = result["seconds"], result["equality"]
        work = f"vectors, {result['model']}, {result['texts']}"
        ours, halved = label(SAVED_MODEL, FLOAT32), label(SAVED_MODEL, BFLOAT16)
        goals += _of_reduced_precision(work, result["processor_seconds"], equality)
        if result["texts"].endswith(SORTED):  # nobody computes much padding then
            continue
        goals += _ratio(work, seconds, ours, best_peer(seconds, FLOAT32), least=1.6, stretch=2.5)
        for hub in (KERAS_HUB, KERAS_HUB_128):
            goals += _ratio(work, seconds, ours, label(hub, FLOAT32), least=4.0)
        goals += _ratio(work, seconds, halved, best_peer(seconds, BFLOAT16), least=1.9, stretch=2.5)
        if ours in equality:
            difference = equality[ours]["largest_difference"]
            goals.append(
                Goal(work, f"{ours}: largest difference", difference, LARGEST_DIFFERENCE, at_most=True, unit="")
            )
        if halved in equality:
            cosine = equality[halved]["least_cosine"]
            goals.append(Goal(work, f"{halved}: least cosine", cosine, LEAST_COSINE, unit=""))
    return goals


def _of_reduced_precision(work: str, seconds: dict[str, list[float]], equality: dict[str, Any]) -> list[Goal]:
    """Our best line in 8 or 16 bits that is exact enough, beside the best of others, however exact; processor time."""
    fewer_bits = [line for line in VECTORS if line.dtype != FLOAT32 and line.label in seconds]
    medians = {line.label: statistics.median(seconds[line.label]) for line in fewer_bits}
    exact = {name for name, found in equality.items() if found["least_cosine"] >= LEAST_COSINE_OF_FEWER_BITS}
    ours = best_of({name: medians[name] for name in exact & {line.label for line in fewer_bits if line.is_ours}})
    other = best_of({line.label: medians[line.label] for line in fewer_bits if not line.is_ours})
    return [] if ours is None else _ratio(f"{work}, processor time", seconds, ours, other, least=1.2)


def _of_latency(results: list[dict[str, Any]]) -> list[Goal]:
    pair = label(SAVED_MODEL, FLOAT32), label(ONNX, FLOAT32)
    return [
        goal
        for result in results
        for goal in _ratio(f"one text, {result['model']}", result["seconds"], *pair, least=1.0)
    ]


def _of_training(results: list[dict[str, Any]]) -> list[Goal]:
    goals = []
    for result in results:
        ours = label(PREDICT, FLOAT32)
        work = f"training step, batch {result['batch_size']}, {result['texts']}"
        if result["texts"] != SENTENCES:
            goals += _ratio(work, result["seconds"], ours, label(TORCH, FLOAT32), least=2.2)
            continue
        for other, least in ((TORCH, 1.5), (KERAS_HUB, 3.0), (KERAS_HUB_128, 3.0)):
            goals += _ratio(work, result["seconds"], ours, label(other, FLOAT32), least=least)
    return goals


def _of_tokenizing(results: list[dict[str, Any]]) -> list[Goal]:
    goals = []
    for result in results:
        seconds, ours = result["seconds"], "ours, huggingface"
        hub = best_of({name: statistics.median(each) for name, each in seconds.items() if name.startswith("KerasHub")})
        goals += _ratio("tokenizing", seconds, ours, hub, least=3.0)
        goals += _ratio("tokenizing", seconds, ours, "tokenizers encode_batch", least=5.0)
    return goals


def _of_growth(results: list[dict[str, Any]], peaks: dict[str, float]) -> list[Goal]:
    goals, ours = [], label(SAVED_MODEL, FLOAT32)
    for result in results:
        if result["axis"] == "full" and ours in result["seconds"] and FLOAT32 in peaks:
            speed = result["operations"] / statistics.median(result["seconds"][ours]) / 1e9
            share = 100 * speed / peaks[FLOAT32]
            goals.append(Goal("full 512-token batches", f"{ours}: share of the peak", share, 85.0, unit="%"))
    return goals


def _of_start_up(results: list[dict[str, Any]]) -> list[Goal]:
    goals, onnx = [], label(ONNX, FLOAT32)
    for result in results:
        if "imports" in result:
            more = statistics.median(each["keras_bert_layers"] for each in result["imports"])
            rule = "import keras_bert_layers, after keras"
            goals.append(Goal("import", rule, more, 0.5, at_most=True, unit=" s"))
            continue
        work, memory = f"serving, {result['model']}", result["peak_memory"]
        if result["sizes"]:
            beside, bound = result["sizes"]["beside"], MEGABYTES_BESIDE_WEIGHTS
            goals.append(Goal(work, "SavedModel beside its weights", beside, bound, at_most=True, unit=" MB"))
        for ours in (label(SAVED_MODEL, FLOAT32), label(UNPACKED, FLOAT32)):
            if {ours, onnx} <= memory.keys():
                more = statistics.median(memory[ours]) - statistics.median(memory[onnx])
                rule = f"peak memory of {ours} beyond {onnx}"
                goals.append(Goal(work, rule, more, MEGABYTES_BESIDE_ONNX, at_most=True, unit=" MB"))
    return goals
