"""Draws docs/benchmarks/serving.md from what the tests and the benchmarks of serving have noted.

    export KERAS_BERT_LAYERS_SERVING_NOTES=/tmp/notes.jsonl
    python -m pytest -m exhaustive tests/serving
    python -m pytest -m serving tests/serving_http
    python tests/benchmarks/bench_serving.py --folder models --data ../shared/data --model minilm base --json c.json
    python tests/benchmarks/bench_http.py models/minilm --data ../shared/data --json minilm.json
    python tests/benchmarks/bench_http.py models/base --data ../shared/data --json base.json
    python tests/benchmarks/bench_memory.py models/minilm/saved_model_float32
    python tests/benchmarks/draw_serving.py --notes /tmp/notes.jsonl --c c.json --http minilm=minilm.json base=base.json

Every figure that is given replaces the one of its kind in docs/benchmarks/serving.json; the page is drawn from that
file alone, so that nobody types a number.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "serving"))

FOLDER = Path(__file__).parents[2] / "docs" / "benchmarks"
# A runtime as the tests call it -> as the table does.
RUNTIMES = {
    "Python": "Python",
    "C": "C API",
    "C, operations of 2.12": "C API, 2.12",
    "TensorFlow 2.19": "TensorFlow 2.19",
    "HTTP": "HTTP",
}
MODELS = {"minilm": "all-MiniLM-L6-v2", "base": "BERT-base, random weights"}
INTRODUCTION = """\
# Serving benchmarks

This page shows what an exported model answers without Keras, and how fast. `tests/benchmarks/draw_serving.py` draws it
from [serving.json](serving.json), to which the tests and the benchmarks add their results.
[Serve a model](../guides/serve.md) shows how to serve.
"""
EQUALITY = """\
## Are the answers those of Keras?

Every signature of every task, queried with real sentences in several scripts and with unusual texts: empty, a word of
300 characters, special tokens as text, invalid UTF-8. The models are small, with random weights so large that logits
reach 10. "equal" means that every string, integer and float is the same. A number is the largest difference of two
floats, with equal strings and integers. `tests/serving` fails above {tolerance:.0e}.

- **Python**: `tf.saved_model.load`.
- **C API**: a C program without Python, through `TF_LoadSessionFromSavedModel`, as TensorFlow Serving loads.
- **C API, 2.12**: the same with only the text operations that TensorFlow Serving 2.12 to 2.19 links; no XLA.
- **TensorFlow 2.19**: the C program with that version.
- **HTTP**: `examples/serving/service.py`. It replaces invalid UTF-8 with U+FFFD, because JSON holds only text.
"""
SPEED_IN_C = """\
## How fast in a process without Python

From sentences of SST-2 to vectors: one short sentence, and batches. The C program and a Python process with
`tokenizers` and ONNX Runtime take turns. `tests/benchmarks/bench_serving.py` measures it. Memory is the peak of the
process; "first answer" is the time from the start of the process to the end of the first answer. "packed weights" is
`TF_ONEDNN_ASSUME_FROZEN_WEIGHTS=1`, "without oneDNN" `TF_ENABLE_ONEDNN_OPTS=0`.
"""
SPEED_OVER_HTTP = """\
## How fast over HTTP

All run in the same server, `examples/serving/service.py`, and clients on the same machine query them in turns: medians
of 5 rounds. int8 is `dtype="int8"` for [our file](../guides/onnx.md), at that time with a scale for every 32 weights
([decision 0063](../decisions/0063-products-of-8-bits-in-onnx-files.md)), and ONNX Runtime's dynamic quantization for
the other, a scale for each matrix: faster, and further from the exact vectors. A process with an ONNX file held torch
and transformers too, 230 MB, which the server does not import any more. MiB is the memory of the server's processes
after the load. `tests/benchmarks/bench_http.py` measures it.
"""
LOAD = """\
## Under load

The server is `examples/serving/service.py`, with the clients on the same cores. Rising load and the long load use
all-MiniLM-L6-v2 with short and long texts mixed; the other tests use a small classifier. `tests/serving_http` measures
it. The long load tests memory and failures: other tests may run at the same time.
"""


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], *, numbers_from: int = 1) -> str:
    """A Markdown table, numbers to the right."""
    marks = ["---" if place < numbers_from else "--:" for place in range(len(headings))]
    lines = [headings, marks, *([str(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def differences(lines: Sequence[dict[str, Any]]) -> str:
    """Task x signature x runtime; the largest of what was noted more than once."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for line in sorted(lines, key=lambda line: line["difference"] or 0.0):
        cells = found.setdefault((line["task"], line["signature"]), {})
        cells[line["runtime"]] = f"{line['difference']:.1e}" if line["difference"] else "equal"
    order = sorted(dict.fromkeys((line["task"], line["signature"]) for line in lines), key=lambda names: names[0])
    rows = [
        [f"`{task}`", f"`{signature}`", *(found[task, signature].get(runtime, "not run") for runtime in RUNTIMES)]
        for task, signature in order
    ]
    largest = max(line["difference"] or 0.0 for line in lines)
    told = f"\nThe largest difference is {largest:.1e}.\n"
    return table(["Task", "Signature", *RUNTIMES.values()], rows, numbers_from=2) + told


def speed_in_c(figures: dict[str, dict[str, Any]]) -> str:
    """A row for each model and each way to run it."""
    headings = ["Model", "Run by", "one text, p50 ms", "p99 ms", *(f"texts/s, batch of {size}" for size in (1, 8, 32))]
    rows = [
        [
            MODELS[model],
            name if name.startswith("ONNX") else f"C API, {name}",
            *(f"{1e3 * line[key]:.1f}" for key in ("p50", "p99")),
            *(f"{line[f'batches of {size}']:.0f}" for size in (1, 8, 32)),
            f"{line['start'] + line['first']:.1f}",
            f"{line['peak'] / 1e6:.0f}",
        ]
        for model, lines in figures.items()
        for name, line in lines.items()
    ]
    return table([*headings, "first answer, s", "memory, MB"], rows, numbers_from=2)


def speed_over_http(figures: dict[str, list[dict[str, Any]]]) -> str:
    """A row for each model, load and server."""
    keys = ("concurrency", "texts_per_second", "p50_ms", "p99_ms", "failures", "mebibytes")
    rows = [
        [MODELS[model], line["request"], line["server of"], *(line[key] for key in keys)]
        for model, lines in figures.items()
        for line in lines
    ]
    headings = ["Model", "A request", "In the server", "Clients", "Texts/s", "p50 ms", "p99 ms", "Failed", "MiB"]
    largest: dict[str, float] = {}
    for line in (line for lines in figures.values() for line in lines):
        kind = line["server of"] if "int8" in line["server of"] else "float32"
        largest[kind] = max(largest.get(kind, 0.0), line["difference"])
    told = "; ".join(f"{kind} {difference:.1e}" for kind, difference in largest.items())
    return table(headings, rows, numbers_from=3) + f"\nThe largest differences from exact unit vectors: {told}.\n"


def load(notes: dict[str, dict[str, Any]]) -> str:
    """What the tests of load and faults have found, the newest of each."""
    parts = []
    if "rising load" in notes:
        steps = notes["rising load"]["steps"]
        rows = [
            [step[key] for key in ("concurrency", "requests", "failures", "texts_per_second", "p50_ms", "p99_ms")]
            for step in steps
        ]
        parts.append(table(["Clients", "Requests", "Failed", "Texts/s", "p50 ms", "p99 ms"], rows, numbers_from=0))
    told = [[what, tell(notes[kind])] for kind, (what, tell) in FAULTS.items() if kind in notes]
    if told:
        parts.append(table(["What", "Found"], told, numbers_from=2))
    return "\n".join(parts)


def _soak(note: dict[str, Any]) -> str:
    before, series = (", ".join(f"{each:.0f}" for each in note[key]) for key in ("warm_up", "mebibytes"))
    return (
        f"{note['requests']:,} requests in {note['minutes']:g} minutes from {note['concurrency']} clients, "
        f"{note['failures']} failed; memory of the server in MiB, tenth by tenth: {series} (before, while it "
        f"met new lengths: {before})"
    )


FAULTS = {
    "soak": ("a long load", _soak),
    "soak of an ONNX file": ("a long load, ONNX file", _soak),
    "bad requests": (
        "invalid requests among valid ones, 8 at a time",
        lambda note: f"{note['wrong']} refused; {note['right']} valid ones answered as if alone",
    ),
    "new version": (
        "a new version under load of 4 clients, a broken one, and back",
        lambda note: f"{note['requests']:,} requests, {note['failures']} failed",
    ),
    "drain": (
        "SIGTERM with requests under way",
        lambda note: (
            f"{note['requests']} requests of {note['texts']:,} texts each: all answered, "
            f"within {note['seconds']:.1f} s; exit code {note['code']}"
        ),
    ),
}


def fuzz(lines: Sequence[dict[str, Any]]) -> str:
    """What became of hostile texts, task by task."""
    newest = {line["task"]: line for line in lines}
    rows = [
        [f"`{task}`", f"{line['texts']:,}", line["refused"], f"{line['growth_mb']:.0f}"]
        for task, line in newest.items()
    ]
    return table(["Task", "Texts", "Refused", "More memory at the end, MB"], rows)


def memory(lines: Sequence[dict[str, Any]]) -> str:
    """What a process holds after each tenth of its batches."""
    newest = {(line["setting"], line["same"]): line for line in lines}
    rows = [
        [
            setting,
            "20, repeated" if same else "always new ones",
            f"{line['batches']:,}",
            ", ".join(str(mebibytes) for mebibytes in line["mebibytes"]),
        ]
        for (setting, same), line in newest.items()
    ]
    return table(["Setting", "Batches", "Number", "MiB after each tenth"], rows, numbers_from=4)


MEMORY = """\
## Memory

all-MiniLM-L6-v2 in the C program, after its largest batch: texts of some words or a page, 1 to 11 in a batch.
`tests/benchmarks/bench_memory.py` measures it. oneDNN, which computes the products on x86, caches what it has prepared
for each number of tokens, up to its own limits. So memory grows with new lengths, not with requests.
"""
FUZZ = """\
## Hostile texts

Random bytes, invalid UTF-8, lone surrogates, endless marks and controls, texts full of `[SEP]`, one in 200 of up to
100,000 bytes, in batches of 1 to 16, through the C program: each gets an answer or a clean error, and nothing crashes.
`tests/serving/test_hostile_text.py` sends them. `questions` is the question answerer, with such texts as questions.
"""


def page(raw: dict[str, Any], *, tolerance: float) -> str:
    """The text of the page."""
    notes = raw["notes"]
    parts = [INTRODUCTION, _machine(raw), EQUALITY.format(tolerance=tolerance)]
    parts.append(differences(notes["difference"]))
    if raw.get("c"):
        parts += [SPEED_IN_C, speed_in_c(raw["c"])]
    if raw.get("http"):
        parts += [SPEED_OVER_HTTP, speed_over_http(raw["http"])]
    parts += [LOAD, load({kind: lines[-1] for kind, lines in notes.items()})]
    if "memory" in notes:
        parts += [MEMORY, memory(notes["memory"])]
    if "fuzz" in notes:
        parts += [FUZZ, fuzz(notes["fuzz"])]
    return "\n".join(part for part in parts if part)


def _machine(raw: dict[str, Any]) -> str:
    machine = raw.get("machine")
    if machine is None:
        return ""
    what = f"{machine['cores']} cores of a virtual machine, {machine['processor']}, {machine['memory_gb']:.0f} GB"
    return f"Measured on {machine['started'][:10]}: {what}. Its speed depends on its neighbours.\n"


def updated(raw: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """The raw figures with those that are given in the place of the old ones of their kind."""
    raw = {"notes": {}, "c": {}, "http": {}, **raw}
    new: dict[str, list[dict[str, Any]]] = {}
    for path in options.notes:
        for line in path.read_text(encoding="utf-8").splitlines():
            values = json.loads(line)
            new.setdefault(values.pop("kind"), []).append(values)
    raw["notes"] = {**raw["notes"], **new}
    for path in options.c:
        measured = json.loads(path.read_text(encoding="utf-8"))
        raw["c"] |= measured["figures"]
        raw["machine"] = measured["machine"]
    for model, _, path in (pair.partition("=") for pair in options.http):
        raw["http"][model] = json.loads(Path(path).read_text(encoding="utf-8"))
    return raw


def write(folder: Path, options: argparse.Namespace | None = None) -> None:
    """Brings serving.json up to date, if there is anything new, and draws serving.md from it."""
    from c_api.comparison import TOLERANCE

    path = folder / "serving.json"
    raw = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if options is not None:
        raw = updated(raw, options)
        path.write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
    (folder / "serving.md").write_text(page(raw, tolerance=TOLERANCE), encoding="utf-8")


def main() -> None:
    """Reads the arguments, updates, draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=Path, nargs="*", default=[], help="what the tests have noted")
    parser.add_argument("--c", type=Path, nargs="*", default=[], help="what bench_serving.py --json wrote")
    parser.add_argument("--http", nargs="*", default=[], metavar="MODEL=FILE", help="what bench_http.py --json wrote")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where serving.json and serving.md lie")
    options = parser.parse_args()
    write(options.folder, options)


if __name__ == "__main__":
    main()
