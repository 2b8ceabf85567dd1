"""Strings to vectors over HTTP: the exports, and `tokenizers` with ONNX Runtime, behind the same server.

    python tests/benchmarks/bench_serving.py --folder models --data ../shared/data --model minilm base --prepare
    python tests/benchmarks/bench_single_texts.py --folder models --model minilm base --rounds 0
    python tests/benchmarks/bench_http.py models/minilm --data ../shared/data --json http.json

The first two steps make the files and need the extras `benchmarks` and `onnx`, as torch makes the peer's file; the
third needs `serving`, `onnx` and tokenizers. The server is `examples/serving/service.py`, listening on this machine
only; clients and server share its cores. The servers take turns in each of 5 rounds, of which the medians count. A
request is one text, or a batch of 32; "mixed" are sentences of SST-2 and paragraphs of SQuAD in turns. A request
without its answer counts as failed. Prints a table, and writes it as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

TESTS = Path(__file__).parents[1]
SERVING = TESTS.parent / "examples" / "serving"
sys.path[:0] = [str(SERVING), str(TESTS / "serving_http"), str(TESTS / "benchmarks")]

BATCH_SIZE = 32
NUM_TEXTS = 640
MIXED = "one text, mixed"
# What is sent, how many texts per request, and how many clients.
LOADS = [
    ("one text", 1, 1),
    ("one text", 1, 8),
    ("one text", 1, 32),
    ("32 texts", BATCH_SIZE, 1),
    ("32 texts", BATCH_SIZE, 2),
    (MIXED, 1, 1),
    (MIXED, 1, 8),
    (MIXED, 1, 32),
]


PEER = "tokenizers + ONNX Runtime"


def start_servers(folder: Path, home: Path) -> dict[str, Any]:
    """The name in the tables -> a server of one of the folder's files."""
    from server_process import ServerProcess

    def ours(file: str, kind: str) -> Any:
        place = home / kind / "encoder" / "1"
        place = place if kind == "saved_model" else place / "model.onnx"
        place.parent.mkdir(parents=True)
        place.symlink_to(folder / file)
        return ServerProcess("service:TextService", SERVING, models=home / kind, home=str(home), name="encoder")

    def peer(dtype: str) -> Any:
        path = os.pathsep.join([str(SERVING), str(TESTS / "benchmarks"), os.environ.get("PYTHONPATH", "")])
        environment = {"PYTHONPATH": path, "ONNX_FOLDER": str(folder), "ONNX_DTYPE": dtype}
        return ServerProcess(
            "peer_service:TextService",
            TESTS / "serving_http",
            models=home / "saved_model",
            home=str(home),
            name="encoder",
            **environment,
        )

    return {
        "SavedModel": ours("saved_model_float32", "saved_model"),
        "ONNX file": ours("ours_float32.onnx", "float32"),
        "ONNX file, int8": ours("ours_int8.onnx", "int8"),
        PEER: peer("float32"),
        f"{PEER}, int8": peer("int8"),
    }


def measure(folder: Path, texts: list[str], mixed: list[str], seconds: float, rounds: int) -> list[dict[str, Any]]:
    """The figures of every load on all servers, the memory that a server then has among them."""
    import numpy as np
    from load import ask_for

    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as home:
        servers = start_servers(folder, Path(home))
        try:
            vectors = {}
            for kind, server in servers.items():
                server.wait_until_ready()
                answer = server.client().predict({"text": texts[:64]})
                vectors[kind] = answer["embedding" if "embedding" in answer else "output"]
            for name, num_texts, concurrency in LOADS:
                sent = mixed if name == MIXED else texts
                requests = [sent[start : start + num_texts] for start in range(0, len(sent), num_texts)]
                found: dict[str, list[Any]] = {kind: [] for kind in servers}
                for server in servers.values():
                    ask_for(min(1.0, seconds), server.client, requests, concurrency=concurrency)
                for _ in range(rounds):
                    for kind, server in servers.items():
                        found[kind].append(ask_for(seconds, server.client, requests, concurrency=concurrency).figures())
                for kind, server in servers.items():
                    difference = float(np.abs(np.subtract(vectors[kind], vectors[PEER])).max())
                    row = {"server of": kind, "request": name, **median_of(found[kind]), "difference": difference}
                    rows.append(row | {"mebibytes": round(server.mebibytes())})
        finally:
            for server in servers.values():
                server.stop()
    return rows


def median_of(rounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The median of each figure, and how many requests failed in all rounds together."""
    medians = {key: statistics.median(figures[key] for figures in rounds) for key in rounds[0]}
    return medians | {"failures": sum(figures["failures"] for figures in rounds)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where bench_serving.py has put the files of one model")
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument("--seconds", type=float, default=3, help="of each load in each round (default: 3)")
    parser.add_argument("--rounds", type=int, default=5, help="of which the medians count (default: 5)")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    arguments = parser.parse_args()
    from comparison.texts import read_squad, read_sst2
    from load import table

    texts = read_sst2(arguments.data, "dev")[0][:NUM_TEXTS]
    mixed = [text for pair in zip(texts, read_squad(arguments.data), strict=False) for text in pair]
    rows = measure(arguments.folder.absolute(), texts, mixed, arguments.seconds, arguments.rounds)
    print(table(rows))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
