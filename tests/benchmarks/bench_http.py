"""Strings to vectors over HTTP: the exports, and `tokenizers` with ONNX Runtime, behind the same server.

    python tests/benchmarks/bench_serving.py --folder models --data ../shared/data --model minilm base --prepare
    python tests/benchmarks/bench_single_texts.py --folder models --model minilm base --rounds 0
    python tests/benchmarks/bench_http.py models/minilm --data ../shared/data --json http.json

The first two steps make the files and need the extras `benchmarks` and `onnx`, as torch makes the peer's file; the
third needs `serving`, `onnx` and tokenizers. The server is `examples/serving/service.py`, listening on this machine
only; clients and server share its cores, and the servers take turns. A request is one text, or a batch of 32; "mixed"
are sentences of SST-2 and paragraphs of SQuAD in turns. A request without its answer counts as failed. Prints a table,
and writes it as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

TESTS = Path(__file__).parents[1]
SERVING = TESTS.parent / "examples" / "serving"
sys.path[:0] = [str(SERVING), str(TESTS / "serving_http"), str(TESTS / "benchmarks")]

BATCH_SIZE = 32
NUM_TEXTS = 640
MIXED = "one text, mixed"
# What is sent, how many texts a request, and how many clients.
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


def measure(folder: Path, texts: list[str], mixed: list[str], seconds: float) -> list[dict[str, Any]]:
    """The figures of every load on all servers, the memory that a server then has among them."""
    import numpy as np
    from load import ask_for
    from server_process import ServerProcess

    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as home:
        version = Path(home) / "saved_models" / "encoder" / "1"
        version.parent.mkdir(parents=True)
        version.symlink_to(folder / "saved_model_float32", target_is_directory=True)
        file = Path(home) / "onnx_files" / "encoder" / "1" / "model.onnx"
        file.parent.mkdir(parents=True)
        file.symlink_to(folder / "ours_float32.onnx")
        options = {"models": Path(home) / "saved_models", "home": home, "name": "encoder"}
        onnx_options = options | {"models": Path(home) / "onnx_files"}
        peer_path = os.pathsep.join([str(SERVING), str(TESTS / "benchmarks"), os.environ.get("PYTHONPATH", "")])
        servers = {
            "SavedModel": ServerProcess("service:TextService", SERVING, **options),
            "ONNX file": ServerProcess("service:TextService", SERVING, **onnx_options),
            "tokenizers + ONNX Runtime": ServerProcess(
                "peer_service:TextService",
                TESTS / "serving_http",
                **options,
                PYTHONPATH=peer_path,
                ONNX_FOLDER=str(folder),
            ),
        }
        try:
            for server in servers.values():
                server.wait_until_ready()
            answers = [server.client().predict({"text": texts[:64]}) for server in servers.values()]
            vectors = [answer["embedding" if "embedding" in answer else "output"] for answer in answers]
            difference = max(float(np.abs(np.subtract(each, vectors[-1])).max()) for each in vectors)
            for name, num_texts, concurrency in LOADS:
                sent = mixed if name == MIXED else texts
                requests = [sent[start : start + num_texts] for start in range(0, len(sent), num_texts)]
                for peer, server in servers.items():
                    ask_for(min(1.0, seconds), server.client, requests, concurrency=concurrency)
                    found = ask_for(seconds, server.client, requests, concurrency=concurrency)
                    row = {"server of": peer, "request": name, **found.figures(), "difference": difference}
                    rows.append(row | {"mebibytes": round(server.mebibytes())})
        finally:
            for server in servers.values():
                server.stop()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where bench_serving.py has put the files of one model")
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument("--seconds", type=float, default=6, help="of each load (default: 6)")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    arguments = parser.parse_args()
    from comparison.texts import read_squad, read_sst2
    from load import table

    texts = read_sst2(arguments.data, "dev")[0][:NUM_TEXTS]
    mixed = [text for pair in zip(texts, read_squad(arguments.data), strict=False) for text in pair]
    rows = measure(arguments.folder.absolute(), texts, mixed, arguments.seconds)
    print(table(rows))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
