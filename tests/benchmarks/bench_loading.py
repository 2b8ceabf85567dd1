"""Memory and time of loading BERT-base in a fresh process, beside transformers.

    python tests/benchmarks/bench_loading.py /tmp/bert-base --rounds 5

The directory is created with random weights by transformers if it does not exist. Memory is the peak of the resident
set while loading, above the resident set after the imports, as a multiple of the file's size. Time is imports and
loading together, as a multiple of imports and one read of the file into memory. The file is in the page cache.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

LOADERS = ("ours", "transformers")
WEIGHTS = "model.safetensors"


def status(key: str) -> int:
    """A size of this process in bytes: `VmRSS` is the resident set, `VmHWM` its peak."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{key}:"))
    return int(line.split()[1]) * 1024


def child(loader: str, directory: str) -> dict[str, float]:
    """Imports and loads in this process, and returns the figures."""
    begin = time.perf_counter()
    if loader == "ours":
        from keras_bert_layers import load_backbone as load
    else:
        from transformers import BertModel

        load = BertModel.from_pretrained
    imported = time.perf_counter()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = status("VmRSS")
    load_begin = time.perf_counter()
    model = load(directory)
    loaded = time.perf_counter()
    peak = status("VmHWM") - before
    del model
    content = Path(directory, WEIGHTS).read_bytes()
    read = time.perf_counter() - loaded
    size = len(content)
    return {
        "import_seconds": imported - begin,
        "load_seconds": loaded - load_begin,
        "read_seconds": read,
        "memory": peak / size,
        "time": (imported - begin + loaded - load_begin) / (imported - begin + read),
    }


def main() -> None:
    """Runs every loader in turn, each in a process of its own, and prints the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", choices=LOADERS)
    options = parser.parse_args()
    if options.child:
        sys.stdout.write(json.dumps(child(options.child, str(options.directory))))
        return
    if not options.directory.exists():
        from transformers import BertConfig, BertModel

        BertModel(BertConfig()).save_pretrained(options.directory)
    (options.directory / WEIGHTS).read_bytes()
    figures: dict[str, list[dict[str, float]]] = {loader: [] for loader in LOADERS}
    for _ in range(options.rounds):
        for loader in LOADERS:
            command = [sys.executable, __file__, str(options.directory), "--child", loader]
            result = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
            figures[loader].append(json.loads(result.stdout.splitlines()[-1]))
    for loader, rounds in figures.items():
        medians = {key: round(statistics.median(figure[key] for figure in rounds), 2) for key in rounds[0]}
        sys.stdout.write(f"{loader}: {medians}\n")


if __name__ == "__main__":
    main()
