"""The tables of a run: their content; `table.py` prints them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from comparison.arithmetic import median_ratio
from comparison.goals import Goal, best_peer, label
from comparison.lines import BFLOAT16, FLOAT32, PREDICT, SAVED_MODEL

MODEL_NAMES = {"minilm": "MiniLM-L6 (real weights)", "base": "BERT-base size (random weights)"}
MEMORY = ("memory_imported", "memory_loaded", "peak_memory")
_TEXTS = {"sst2": "SST-2 dev sentences", "squad": "SQuAD paragraphs", "reviews": "film reviews"}
TEXT_NAMES = _TEXTS | {f"{key}, sorted": f"{name}, sorted by length" for key, name in _TEXTS.items()}


@dataclass(frozen=True)
class Table:
    """A title, headings, rows of text, and notes below."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()


def peaks_of(result: dict[str, Any]) -> dict[str, float]:
    """Dtype -> GFLOP/s of the best matrix product, whatever its library."""
    peaks: dict[str, float] = {}
    for each in result["peaks"]:
        peaks[each["dtype"]] = max(peaks.get(each["dtype"], 0.0), *each["gigaflops"])
    return peaks


def tables_of(result: dict[str, Any], goals: Sequence[Goal]) -> list[Table]:
    """All tables of a run, the goals last."""
    works, peaks = result["works"], peaks_of(result)
    tables = [_peaks(result)]
    tables += [_tokenizing(each) for each in works.get("tokenizing", [])]
    tables += [_vectors(each, peaks) for each in works.get("vectors", [])]
    tables += [_latency(each) for each in works.get("latency", [])]
    tables += [_training(each) for each in works.get("training", [])]
    tables += [_start_up(each) for each in works.get("start-up", []) if "seconds" in each]
    for axis in ("length", "batch", "full"):
        chosen = [each for each in works.get("growth", []) if each["axis"] == axis]
        tables += [_growth(axis, chosen, peaks)] if chosen else []
    return [*tables, _goals(goals)]


def _peaks(result: dict[str, Any]) -> Table:
    rows = [
        [each["library"], each["dtype"], str(each["size"]), f"{max(each['gigaflops']):.0f}"] for each in result["peaks"]
    ]
    machine = result["machine"]
    took = f"{result['seconds']} s in all, {result['processor_seconds']} s of processors"
    told = f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB; {took}"
    busy = f"{machine['busy_share_before']:.0%} busy before the run"
    instructions = f"instructions: {', '.join(machine.get('instructions', [])) or 'unknown'}"
    return Table("The matrix-product peak", ["library", "dtype", "rows", "GFLOP/s"], rows, [told, instructions, busy])


def _ours_for(name: str, seconds: dict[str, list[float]], who: tuple[str, str]) -> str | None:
    """Our line that another is compared with: of the same dtype, float32 for int8."""
    dtype = BFLOAT16 if name.endswith(BFLOAT16) else FLOAT32
    ours = label(who, dtype)
    return ours if ours in seconds else None


def _times(name: str, seconds: dict[str, list[float]], ours: str | None) -> str:
    return "" if ours is None else f"{median_ratio(seconds[name], seconds[ours]):.2f}x"


def _share(operations: float, seconds: list[float], peak: float | None) -> str:
    return f"{operations / statistics.median(seconds) / 1e9 / peak:.0%}" if peak else ""


def _vectors(result: dict[str, Any], peaks: dict[str, float]) -> Table:
    rows, seconds = [], result["seconds"]
    for name, rounds in seconds.items():
        equality = result["equality"].get(name, {})
        processor = statistics.median(result["processor_seconds"][name])
        rows.append(
            [
                name,
                f"{result['num_texts'] / statistics.median(rounds):.1f}",
                f"{processor / result['num_texts'] * 1e3:.1f}",
                _times(name, seconds, _ours_for(name, seconds, SAVED_MODEL)),
                _share(result["operations"], rounds, peaks.get(name.rpartition(", ")[2])),
                f"{equality['largest_difference']:.0e}" if equality else "",
                f"{equality['least_cosine']:.5f}" if equality else "",
            ]
        )
    title = f"Strings to vectors: {MODEL_NAMES[result['model']]}, {TEXT_NAMES[result['texts']]}"
    num_rounds = len(next(iter(seconds.values()), []))
    told = (
        f"{result['num_texts']} texts of {result['num_tokens']} tokens, the longest {result['longest']} (of the file: "
        f"{result['longest_of_file']}), in batches of {result['batch_size']}; {num_rounds} rounds"
    )
    headings = ["contender", "texts/s", "CPU ms/text", "ours is", "of peak", "difference", "cosine"]
    best = [f"best {dtype} peer: {best_peer(seconds, dtype)}" for dtype in (FLOAT32, BFLOAT16)]
    return Table(title, headings, rows, [told, *best, *_notes(result)])


def _latency(result: dict[str, Any]) -> Table:
    rows, seconds = [], result["seconds"]
    for name in seconds:
        found = result["quantiles"][name]
        ratio = _times(name, seconds, _ours_for(name, seconds, SAVED_MODEL))
        rows.append([name, f"{found['p50'] * 1e3:.2f}", f"{found['p99'] * 1e3:.2f}", ratio])
    title = f"One text of {result['num_tokens']} tokens at a time: {MODEL_NAMES[result['model']]}"
    return Table(title, ["contender", "p50 ms", "p99 ms", "ours is"], rows, _notes(result))


def _training(result: dict[str, Any]) -> Table:
    rows, seconds = [], result["seconds"]
    steps = result["num_texts"] / result["batch_size"]
    for name, rounds in seconds.items():
        step = statistics.median(rounds) / steps
        ratio = _times(name, seconds, _ours_for(name, seconds, PREDICT))
        rows.append([name, f"{step * 1e3:.0f}", f"{result['batch_size'] / step:.1f}", ratio])
    title = f"A training step on {result['texts']}: {MODEL_NAMES[result['model']]}, batch {result['batch_size']}"
    return Table(title, ["contender", "ms a step", "sentences/s", "ours is"], rows, _notes(result))


def _start_up(result: dict[str, Any]) -> Table:
    stages = result["seconds"]
    rows = [
        [
            name,
            *(f"{statistics.median(stages[stage][name]):.2f}" for stage in stages),
            *(f"{statistics.median(result[memory][name]):.0f}" for memory in MEMORY),
        ]
        for name in result["peak_memory"]
    ]
    title = f"A fresh process: {MODEL_NAMES[result['model']]}"
    columns = ["import s", "load s", "first answer s", "in all s", "MB imported", "MB loaded", "MB serving"]
    sizes = result["sizes"]
    told = [f"SavedModel {sizes['saved_model']:.1f} MB, of it weights {sizes['weights']:.1f} MB"] if sizes else []
    return Table(title, ["contender", *columns], rows, [*told, *_notes(result)])


def _growth(axis: str, results: list[dict[str, Any]], peaks: dict[str, float]) -> Table:
    names = list(dict.fromkeys(name for each in results for name in each["seconds"]))
    rows = []
    for name in names:
        peak, row = peaks.get(name.rpartition(", ")[2]), [name]
        for each in results:
            rounds = each["seconds"].get(name)
            speed = f"{each['num_texts'] / statistics.median(rounds):.1f}" if rounds else ""
            share = f" ({_share(each['operations'], rounds, peak)})" if rounds and peak else ""
            row.append(speed + share)
        rows.append(row)
    unit = {"length": "tokens", "batch": "texts", "full": "tokens"}[axis]
    title = {
        "length": "Growth with the length: texts/s (share of the peak)",
        "batch": "Growth with the batch, SST-2 sentences: texts/s (share of the peak)",
        "full": "Full batches of the longest texts: texts/s (share of the peak)",
    }[axis]
    headings = ["contender", *(f"{each['value']} {unit}" for each in results)]
    told = f"{MODEL_NAMES[results[0]['model']]}; batches of {', '.join(str(each['num_texts']) for each in results)}"
    return Table(title, headings, rows, [told, *_notes(results[-1])])


def _tokenizing(result: dict[str, Any]) -> Table:
    seconds, rows = result["seconds"], []
    for name, rounds in seconds.items():
        median = statistics.median(rounds)
        ratio = _times(name, seconds, "ours, huggingface")
        rows.append([name, f"{median * 1e3:.2f}", f"{result['num_texts'] / median:,.0f}", ratio])
    headings = ["tokenizer", "ms for 1,000 texts", "texts/s", "ours is"]
    return Table("Tokenizing SST-2 sentences", headings, rows, _notes(result))


def _goals(goals: Sequence[Goal]) -> Table:
    rows = []
    for goal in goals:
        stretch = f" (stretch {goal.stretch:g})" if goal.stretch else ""
        bound = f"{'at most' if goal.at_most else 'at least'} {goal.bound:g}{goal.unit}{stretch}"
        figure = f"{goal.figure:.3g}{goal.unit}" if goal.unit else f"{goal.figure:.6g}"
        rows.append([goal.work, goal.rule, bound, figure, "yes" if goal.is_met else "NO"])
    return Table("Goals", ["work", "what", "goal", "figure", "met"], rows)


def _notes(result: dict[str, Any]) -> list[str]:
    """The settings that were chosen, and the contenders that were left out, with the reasons."""
    chosen = [f"{name}: {_words(setting)}" for name, setting in result.get("settings", {}).items() if setting]
    return [*chosen, *(f"left out: {name}: {reason}" for name, reason in result["left_out"].items())]


def _words(setting: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in setting.items())
