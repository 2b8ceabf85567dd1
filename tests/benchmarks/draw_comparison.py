"""Plots and Markdown tables of a comparison, from the raw figures that `compare.py` wrote.

    python tests/benchmarks/draw_comparison.py figures.json --folder docs/benchmarks

Writes `tables.md`, and as SVG `vectors`, `latency`, `training`, `growth_length`, `growth_batch` and `start_up`, those
of them that there are figures for. Of several files, each work is taken from the last one that has it, and the peaks of
the matrix product from the first. A bar is a median; its line goes from the fastest round to the slowest.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")

from comparison.goals import SORTED, judge
from comparison.report import MODEL_NAMES, TEXT_NAMES, peaks_of, tables_of
from comparison.table import as_markdown
from matplotlib import pyplot

# Inches, at 96 CSS pixels each: a phone has 390 of these.
WIDTH = 4.2
# The height of a bar, as a share of its row; the rest is for its name.
BAR = 0.5
OURS, PEER, OURS_HALF, PEER_HALF = "#1f6f8b", "#9aa5ab", "#7fb7c9", "#cfd6d9"
# The same drawing gives the same bytes.
STYLE = {
    "svg.hashsalt": "comparison",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def color_of(name: str) -> str:
    """Ours and the peers differ in hue, float32 and less in depth."""
    if name.startswith("ours"):
        return OURS if name.endswith("float32") else OURS_HALF
    return PEER if name.endswith("float32") else PEER_HALF


def draw_bars(axes: Any, speeds: dict[str, list[float]], title: str, unit: str) -> None:
    """Horizontal bars, the first on top."""
    names = list(speeds)[::-1]
    medians = [statistics.median(speeds[name]) for name in names]
    down = [median - min(speeds[name]) for name, median in zip(names, medians, strict=True)]
    up = [max(speeds[name]) - median for name, median in zip(names, medians, strict=True)]
    rows = range(len(names))
    colors = [color_of(name) for name in names]
    axes.barh(rows, medians, BAR, xerr=[down, up], color=colors, error_kw={"linewidth": 0.8})
    for row, median, color in zip(rows, medians, colors, strict=True):
        written = f"{median:,.0f}" if median >= 100 else f"{median:.3g}"
        inside = {"xytext": (4, -0.5), "textcoords": "offset points", "va": "center", "fontsize": 8}
        axes.annotate(written, (0, row), color="white" if color == OURS else "black", **inside)
    name_bars(axes, names)
    axes.set_title(title, fontsize=9, loc="left")
    axes.set_xlabel(unit)


def name_bars(axes: Any, names: list[str]) -> None:
    """Each name stands above its bar, so that the plot is no wider than a phone."""
    for row, name in enumerate(names):
        axes.annotate(name, (0, row + 0.29), xytext=(0, 0), textcoords="offset points", va="bottom", fontsize=8)
    axes.set_yticks([])
    axes.set_ylim(-0.5, len(names) - 0.15)


def draw_vectors(results: list[dict[str, Any]]) -> Any:
    """Texts per second: a panel for each model and each kind of texts, in the order of their file."""
    results = [each for each in results if not each["texts"].endswith(SORTED)]
    return _draw_speeds(results, lambda each: f"{MODEL_NAMES[each['model']]}\n{TEXT_NAMES[each['texts']]}", "texts/s")


def draw_latency(results: list[dict[str, Any]]) -> Any:
    """Milliseconds of one answer: a panel for each model."""
    figure, panels = _panels(len(results), max(len(each["seconds"]) for each in results))
    for axes, each in zip(panels, results, strict=True):
        speeds = {name: [value * 1e3 for value in rounds] for name, rounds in each["seconds"].items()}
        draw_bars(axes, speeds, f"{MODEL_NAMES[each['model']]}, one text", "ms, p50; less is better")
    return figure


def draw_training(results: list[dict[str, Any]]) -> Any:
    """Texts per second in training."""
    return _draw_speeds(
        results, lambda each: f"{MODEL_NAMES[each['model']]}\n{each['texts']}, batch {each['batch_size']}", "texts/s"
    )


def _draw_speeds(results: list[dict[str, Any]], title: Callable[[dict[str, Any]], str], unit: str) -> Any:
    figure, panels = _panels(len(results), max(len(each["seconds"]) for each in results))
    for axes, each in zip(panels, results, strict=True):
        speeds = {name: [each["num_texts"] / value for value in rounds] for name, rounds in each["seconds"].items()}
        draw_bars(axes, speeds, title(each), unit)
    return figure


def draw_start_up(results: list[dict[str, Any]]) -> Any:
    """Seconds of a fresh process, by stage, and its memory: a row of two panels for each model."""
    results = [each for each in results if "seconds" in each]
    figure, panels = _panels(2 * len(results), max(len(each["peak_memory"]) for each in results))
    for number, each in enumerate(results):
        seconds, memory = panels[2 * number], panels[2 * number + 1]
        names, left = list(each["peak_memory"])[::-1], [0.0] * len(each["peak_memory"])
        for stage, shade in zip(("import", "load", "first_answer"), (OURS, OURS_HALF, PEER), strict=True):
            widths = [statistics.median(each["seconds"][stage][name]) for name in names]
            seconds.barh(range(len(names)), widths, BAR, left=left, color=shade, label=stage.replace("_", " "))
            left = [begin + width for begin, width in zip(left, widths, strict=True)]
        seconds.set_title(f"{MODEL_NAMES[each['model']]}\n", fontsize=9, loc="left")
        seconds.set_xlabel("s from start to first answer")
        name_bars(seconds, names)
        seconds.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(-0.03, 0.98), ncols=3)
        draw_bars(memory, each["peak_memory"], MODEL_NAMES[each["model"]], "MB at most, in serving")
    return figure


def draw_growth(results: list[dict[str, Any]], axis: str) -> Any:
    """Tokens per second over the length or over the batch, both on logarithmic axes."""
    chosen = [each for each in results if each["axis"] == axis]
    figure, axes = pyplot.subplots(figsize=(WIDTH, 6), layout="constrained")
    for name in dict.fromkeys(name for each in chosen for name in each["seconds"]):
        points = [
            (each["value"], each["num_tokens"] / statistics.median(each["seconds"][name]))
            for each in chosen
            if name in each["seconds"]
        ]
        line = "-" if name.endswith("float32") else "--"
        width = 2.2 if name.startswith("ours") else 1.2
        axes.plot(*zip(*points, strict=True), line, linewidth=width, marker="o", markersize=3, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.yaxis.set_major_formatter("{x:.0f}")
    axes.set_xlabel("tokens per text" if axis == "length" else "texts per batch (SST-2 sentences)")
    axes.set_ylabel("real tokens/s")
    figure.legend(loc="outside lower left", frameon=False, fontsize=8)
    return figure


def _panels(count: int, num_bars: int) -> tuple[Any, list[Any]]:
    """A figure with its panels below each other, so that their letters are not smaller than those of the page."""
    height = count * (0.8 + 0.36 * num_bars)
    figure, grid = pyplot.subplots(count, figsize=(WIDTH, height), squeeze=False, layout="constrained")
    return figure, list(grid.flat)


def main() -> None:
    """Reads the figures, draws, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", type=Path, nargs="+", help="what compare.py --json wrote")
    parser.add_argument("--folder", type=Path, required=True, help="where to write")
    options = parser.parse_args()
    results = [json.loads(path.read_text(encoding="utf-8")) for path in options.figures]
    works: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        for name, work in result["works"].items():
            works.setdefault(name, []).extend(work)
    result = {**results[0], "works": works}
    options.folder.mkdir(parents=True, exist_ok=True)
    tables = as_markdown(tables_of(result, judge(works, peaks_of(result))))
    (options.folder / "tables.md").write_text(f"# All benchmark tables\n\n{tables}", encoding="utf-8")
    drawn: dict[str, tuple[str, Callable[[list[dict[str, Any]]], Any]]] = {
        "vectors": ("vectors", draw_vectors),
        "latency": ("latency", draw_latency),
        "training": ("training", draw_training),
        "start_up": ("start-up", draw_start_up),
        "growth_length": ("growth", lambda results: draw_growth(results, "length")),
        "growth_batch": ("growth", lambda results: draw_growth(results, "batch")),
    }
    with pyplot.rc_context(STYLE):
        for name, (work, draw) in drawn.items():
            if works.get(work):
                figure = draw(works[work])
                figure.savefig(options.folder / f"{name}.svg", metadata={"Date": None})
                pyplot.close(figure)


if __name__ == "__main__":
    main()
