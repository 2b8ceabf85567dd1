"""How the memory of a serving process grows: with batches of ever new lengths, and with a few batches repeated.

    export KERAS_BERT_LAYERS_SERVING_NOTES=notes.jsonl
    python tests/benchmarks/bench_memory.py models/minilm/saved_model_float32

The SavedModel of a sentence encoder runs in the server in C of `tests/serving`. First comes the largest batch, as it
takes the most memory at once; then batches of 1 to 11 texts, each text some words or a page. oneDNN, which computes the
products in TensorFlow on x86, keeps what it has made for each number of tokens that it met.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "serving"))

import numpy as np
from bench_serving import SETTINGS
from c_api.installation import Installation
from c_api.notes import note
from c_api.server_process import ServerProcess

SEED = 5
NUM_TEXTS = 720
NUM_SAME = 20
SIZES = (1, 2, 3, 4, 5, 8, 11)
MEBIBYTE = 1 << 20
CHOSEN = ["float32", "float32, packed weights", "float32, without oneDNN"]
WORDS = "the film was a long and quiet story of two people who never met again after the war".split()


def batches(*, same: bool) -> Iterator[list[str]]:
    """Endless batches: all drawn anew, or 20 of them repeated."""
    generator = random.Random(SEED)
    lengths = [
        generator.randint(100, 300) if generator.random() < 0.25 else generator.randint(3, 20) for _ in range(NUM_TEXTS)
    ]
    texts = [" ".join(generator.choices(WORDS, k=length)) for length in lengths]

    def drawn() -> list[list[str]]:
        return [generator.sample(texts, generator.choice(SIZES)) for _ in range(NUM_SAME)]

    kept = drawn()
    while True:
        yield from kept
        kept = kept if same else drawn()


def measure(server: ServerProcess, num_batches: int, *, same: bool) -> list[int]:
    """Bytes that the process holds after each tenth of the batches."""
    server.ask("serving_default", {"text": np.array([" ".join(WORDS * 20)] * 32)}, repeats=3)
    held = []
    for number, texts in zip(range(1, num_batches + 1), batches(same=same), strict=False):
        answer = server.ask("serving_default", {"text": np.array(texts)})
        if answer.message:
            raise RuntimeError(answer.message)
        if number % (num_batches // 10) == 0:
            held.append(answer.resident_bytes)
    return held


def main() -> None:
    """Reads the arguments, measures each setting in a process of its own, notes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="the SavedModel of a sentence encoder")
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=CHOSEN)
    parser.add_argument("--batches", type=int, default=1000)
    options = parser.parse_args()
    installation = Installation.of_this_process()
    with tempfile.TemporaryDirectory() as work:
        command = installation.compile_server(Path(work)) or installation.stand_in()
        for name in options.settings:
            for same in (True, False):
                setting = SETTINGS[name]
                libraries = installation.text_libraries(older=True)
                environment = {"TF_CPP_MIN_LOG_LEVEL": "2", **setting.environment}
                with ServerProcess(
                    command, options.model, libraries=libraries, config=setting.config(), environment=environment
                ) as server:
                    held = measure(server, options.batches, same=same)
                mebibytes = [round(size / MEBIBYTE) for size in held]
                note("memory", setting=name, same=same, batches=options.batches, mebibytes=mebibytes)


if __name__ == "__main__":
    main()
