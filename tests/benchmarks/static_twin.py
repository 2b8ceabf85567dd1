"""A static twin of a sentence encoder, beside its original and model2vec: quality, speed and size.

    python tests/benchmarks/static_twin.py --contender keras_bert_layers --data ../shared/data/glue
    python tests/benchmarks/static_twin.py --contender encoder --data ../shared/data/glue
    python tests/benchmarks/static_twin.py --contender model2vec --data ../shared/data/glue
    python tests/benchmarks/static_twin.py --contender choices --data ../shared/data/glue

Each is made of all-MiniLM-L6-v2, with 256 dimensions, and prints one JSON line: the seconds that it takes to make; the
Spearman correlation (times 100) of cosines on STS-B, dev and train; the accuracy on SST-2 dev of a logistic regression
on the vectors of the 67,349 training sentences (not for `encoder`, which takes minutes for them); sentences per second,
from strings, over the 11,498 sentences of STS-B train, eight times over, or once for `encoder` (`--repeats` runs, the
median); processor microseconds per sentence, which other work on the machine changes less; and the size on disk.
`keras_bert_layers` also fine-tunes the table as a classifier on SST-2, and on STS-B. `choices` measures what the
defaults of `distill_static` were chosen by. `model2vec` needs the package `model2vec[distill]`.
"""

from __future__ import annotations

import functools
import gzip
import importlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import _recipe as recipe
import numpy as np

DIM = 256
TIMES_OVER = 8
BATCH_SIZE = 256
NUM_EPOCHS = 3
LEARNING_RATE = 1e-3

Embed = Callable[[list[str]], np.ndarray]


def read_rows(path: Path, *columns: str) -> list[list[str]]:
    """Columns of a table of GLUE, by name."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        header, *rows = [line.rstrip("\n").split("\t") for line in lines if line.strip()]
    places = [header.index(name) for name in columns]
    return [[row[place] for place in places] for row in rows]


def pairs_of(data: Path, part: str) -> tuple[list[str], list[str], np.ndarray]:
    """Both sentences and the score, 0 to 5, of each row of STS-B."""
    rows = read_rows(data / "STS-B" / f"{part}.tsv.gz", "sentence1", "sentence2", "score")
    first, second, scores = zip(*rows, strict=True)
    return list(first), list(second), np.array(scores, float)


def sentences_of(data: Path, part: str) -> tuple[list[str], np.ndarray]:
    """The sentences and the labels of SST-2."""
    texts, labels = zip(*read_rows(data / "SST-2" / f"{part}.tsv.gz", "sentence", "label"), strict=True)
    return list(texts), np.array(labels, int)


def spearman(embed: Embed, data: Path, part: str) -> float:
    """Spearman correlation of cosines and scores, times 100."""
    from scipy.stats import spearmanr

    first, second, scores = pairs_of(data, part)
    vectors = [embed(texts) for texts in (first, second)]
    lengths = np.linalg.norm(vectors[0], axis=1) * np.linalg.norm(vectors[1], axis=1)
    cosines = np.sum(vectors[0] * vectors[1], axis=1) / np.maximum(lengths, 1e-12)
    return round(100 * float(spearmanr(cosines, scores).statistic), 2)


def logistic_regression(embed: Embed, data: Path, rows: int | None) -> float:
    """Accuracy on SST-2 dev, in percent."""
    from sklearn.linear_model import LogisticRegression

    texts, labels = sentences_of(data, "train")
    model = LogisticRegression(max_iter=1000).fit(embed(texts[:rows]), labels[:rows])
    texts, labels = sentences_of(data, "dev")
    return round(100 * float(model.score(embed(texts), labels)), 2)


def speed(embed: Embed, data: Path, repeats: int, times_over: int) -> dict[str, Any]:
    """Sentences per second, the median of some runs, and processor time."""
    first, second, _ = pairs_of(data, "train")
    texts = (first + second) * times_over
    embed(texts[:2000])
    wall, processor = [], []
    for _ in range(repeats):
        start, used = time.perf_counter(), time.process_time()
        embed(texts)
        wall.append(time.perf_counter() - start)
        processor.append(time.process_time() - used)
    return {
        "sentences_per_second": round(len(texts) / statistics.median(wall)),
        "fastest": round(len(texts) / min(wall)),
        "processor_microseconds": round(1e6 * statistics.median(processor) / len(texts), 2),
    }


def megabytes(folder: Path) -> float:
    """The size of all files below a folder."""
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6, 1)


def timed(function: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What a function returns, and how long it took."""
    start, used = time.perf_counter(), time.process_time()
    found = function()
    seconds = {"seconds": round(time.perf_counter() - start, 1), "cpu_seconds": round(time.process_time() - used, 1)}
    return found, seconds


def fine_tuned(make: Callable[[], Any], data: Path, seed: int, rows: int | None) -> dict[str, float]:
    """The table trained as a classifier of SST-2 (accuracy), and on the similarities of STS-B (Spearman)."""
    import keras

    import keras_bert_layers as kbl

    keras.utils.set_random_seed(seed)
    encoder = make()
    texts, labels = sentences_of(data, "train")
    classifier = kbl.BertClassifier(encoder.backbone, 2, preprocessor=encoder.preprocessor)
    classifier.compile(optimizer=kbl.optimizers.adamw(LEARNING_RATE))
    classifier.fit(texts[:rows], labels[:rows], batch_size=BATCH_SIZE, epochs=NUM_EPOCHS, verbose=0)
    texts, labels = sentences_of(data, "dev")
    predicted = classifier.predict(texts, verbose=0).argmax(axis=1)
    keras.utils.set_random_seed(seed)
    encoder = make()
    first, second, scores = pairs_of(data, "train")
    encoder.fit((first, second), scores / 5, batch_size=BATCH_SIZE, epochs=NUM_EPOCHS, verbose=0)
    return {
        "sst2_fine_tuned": round(100 * float(np.mean(predicted == labels)), 2),
        "sts_fine_tuned": spearman(lambda texts: encoder.predict(texts, verbose=0), data, "dev"),
    }


def evaluate(embed: Embed, options: Any) -> dict[str, Any]:
    """What is measured of every contender."""
    is_encoder = options.contender == "encoder"
    found = {part: spearman(embed, options.data, part.removeprefix("sts_")) for part in ("sts_dev", "sts_train")}
    if not is_encoder:
        found["sst2_logistic_regression"] = logistic_regression(embed, options.data, options.rows)
    return found | speed(embed, options.data, options.repeats, 1 if is_encoder else TIMES_OVER)


def measure_ours(options: Any) -> dict[str, Any]:
    """The static twin, or with the contender "encoder" its original."""
    import keras_bert_layers as kbl

    original: Any = kbl.load_task(recipe.weights_of(options))
    if options.contender == "encoder":
        model, found = original, {}
    else:
        model, found = timed(lambda: kbl.tasks.distill_static(original, dim=DIM))
    found |= evaluate(lambda texts: model.predict(texts, verbose=0), options)
    with tempfile.TemporaryDirectory() as folder:
        for name, dtype in (("saved_model", None), ("saved_model_bfloat16", "bfloat16")):
            model.export(Path(folder) / name, dtype=dtype)
            found[f"{name}_megabytes"] = megabytes(Path(folder) / name)
        if options.contender != "encoder":
            model.save(path := Path(folder) / "static.keras")
            make = lambda: kbl.tasks.BertStaticEncoder.from_config(model.get_config())  # noqa: E731

            def loaded() -> Any:
                twin = make()
                twin.load_weights(path)
                return twin

            found |= fine_tuned(loaded, options.data, options.seed, options.rows)
    return found


def measure_model2vec(options: Any) -> dict[str, Any]:
    """model2vec with its own defaults, from the same directory."""
    from model2vec.distill import distill

    model, found = timed(lambda: distill(recipe.weights_of(options), pca_dims=DIM, device="cpu"))
    found |= evaluate(lambda texts: model.encode(texts, show_progress_bar=False), options)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        found["directory_megabytes"] = megabytes(Path(folder))
    return found


def measure_choices(options: Any) -> dict[str, Any]:
    """STS-B (dev, train) with one choice of `distill_static` changed at a time."""
    import keras_bert_layers as kbl

    module = importlib.import_module("keras_bert_layers.tasks.recipes.distill_static")
    encoder: Any = kbl.load_task(recipe.weights_of(options))
    vectors = module._token_vectors(keras_model_before_scaling(encoder), encoder.preprocessor.tokenizer)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    texts, _ = sentences_of(options.data, "train")

    def components(power: float, *, center: bool = False) -> Callable[..., np.ndarray]:
        def rotated(vectors: np.ndarray, dim: int) -> np.ndarray:
            vectors = vectors - vectors.mean(axis=0) * center
            variances, directions = np.linalg.eigh(vectors.T @ vectors / len(vectors))
            order = np.argsort(-variances)[:dim]
            return vectors @ directions[:, order] / np.maximum(variances[order], 1e-12) ** (power / 2)

        return rotated

    def rank_of_all(tokenizer: Any) -> np.ndarray:
        inverse = 1 / (2 + np.arange(tokenizer.vocabulary_size()))
        return inverse / inverse.sum()

    choices: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "defaults": ({}, {}),
        **{f"dim={dim}": ({"dim": dim}, {}) for dim in (64, 128, 384)},
        **{f"sif_coefficient={value:g}": ({"sif_coefficient": value}, {}) for value in (1e3, 1e-1, 1e-2, 1e-4)},
        "frequencies counted in SST-2 train": ({"texts": texts}, {}),
        "ranks of all tokens": ({}, {"_by_rank": rank_of_all}),
        "ranks of all tokens, sif_coefficient=1e-4": ({"sif_coefficient": 1e-4}, {"_by_rank": rank_of_all}),
        "vectors of length 1 before the components": ({}, {"_token_vectors": lambda *_: vectors / length}),
        "components centered": ({}, {"_components": components(0.5, center=True)}),
        "components not scaled": ({}, {"_components": components(0)}),
        "components scaled to mean square 1": ({}, {"_components": components(1)}),
    }
    found = {}
    for name, (arguments, parts) in choices.items():
        with mock.patch.multiple(module, **{"_token_vectors": lambda *_: vectors, **parts}):
            static = module.distill_static(encoder, **{"dim": DIM, **arguments})
        embed = functools.partial(static.predict, verbose=0)
        found[name] = [spearman(embed, options.data, part) for part in ("dev", "train")]
    return found


def keras_model_before_scaling(encoder: Any) -> Any:
    """The encoder up to its vectors before they have length 1."""
    import keras

    return keras.Model(encoder.input, encoder.get_layer("normalize").input)


MEASURED = {
    "keras_bert_layers": measure_ours,
    "encoder": measure_ours,
    "model2vec": measure_model2vec,
    "choices": measure_choices,
}


def main() -> None:
    """Measures one contender."""
    parser = recipe.arguments(__doc__, list(MEASURED))
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    found = MEASURED[options.contender](options)
    sys.stdout.write(json.dumps({"contender": options.contender, "seed": options.seed, **found}) + "\n")


if __name__ == "__main__":
    main()
