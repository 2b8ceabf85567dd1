"""Wrong labels: how many of 150 flipped ones cleanlab finds by our probabilities, and what that is worth.

    python tests/benchmarks/wrong_labels.py --contender fine_tuned --seed 0 --data ../shared/data

The seed draws 1,500 training rows of SST-2 and flips a tenth of their labels. Every row gets probabilities of a model
that was trained on the others (3 folds): `fine_tuned`, `BertClassifier`; `vectors`, scikit-learn's logistic regression
on the vectors of all-MiniLM-L6-v2. `cleanlab.filter.find_label_issues` says which labels are wrong. Measured:
the accuracy on dev of a `BertClassifier` trained on the rows that are left, and on all rows with the found labels
corrected as a person would. `known`: trained on all rows with the flipped labels, and with the right ones.

Two epochs, batch 16, peak rate 2e-4; the rest of the recipe is in `_recipe.py`. Needs cleanlab and scikit-learn. Prints
one JSON line, figures in percent.
"""

from __future__ import annotations

import random
from typing import Any

import _recipe as recipe
import numpy as np
from calibration import train
from few_labels import read_sst2

NUM_ROWS = 1500
SHARE_FLIPPED = 0.1
NUM_FOLDS = 3


def by_fine_tuning(options: Any, texts: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Probabilities of each row, of a classifier that was fine-tuned on the rows of other folds."""
    from sklearn.model_selection import StratifiedKFold

    probabilities = np.zeros((len(texts), 2))
    for others, rows in StratifiedKFold(NUM_FOLDS, shuffle=True, random_state=options.seed).split(texts, labels):
        model = train(options, list(zip(texts[others], labels[others], strict=True)), num_classes=2)
        probabilities[rows] = model.answer(texts[rows])["probabilities"]
    return probabilities


def by_vectors(options: Any, texts: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The same of a logistic regression on the vectors of the encoder as it is."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    import keras_bert_layers as kbl

    vectors = kbl.load_task(recipe.weights_of(options), "sentence_encoder").predict(texts, verbose=0)
    folds = StratifiedKFold(NUM_FOLDS, shuffle=True, random_state=options.seed)
    return cross_val_predict(LogisticRegression(), vectors, labels, cv=folds, method="predict_proba")


def accuracy(options: Any, texts: np.ndarray, labels: np.ndarray, dev: list[tuple[str, str]]) -> float:
    """Accuracy on dev after a training."""
    model = train(options, list(zip(texts, labels, strict=True)), num_classes=2)
    predicted = model.predict_labels([text for text, _ in dev])
    return round(100 * float((predicted == [int(name == "good") for _, name in dev]).mean()), 2)


def main() -> None:
    """Reads the arguments, finds labels or not, trains twice, prints one JSON line."""
    ways = {"fine_tuned": by_fine_tuning, "vectors": by_vectors, "known": None}
    parser = recipe.arguments(__doc__, list(ways))
    parser.add_argument("--epochs", type=int, default=2)
    parser.set_defaults(rows=NUM_ROWS)
    options = parser.parse_args()
    recipe.limit_threads()
    pool, dev = read_sst2(options.data, 0)
    drawn = random.Random(options.seed).sample(pool, options.rows)
    texts = np.array([text for text, _ in drawn], object)
    right = np.array([int(name == "good") for _, name in drawn])
    draws = np.random.default_rng(options.seed)
    flipped = np.zeros(len(texts), bool)
    flipped[draws.choice(len(texts), int(SHARE_FLIPPED * len(texts)), replace=False)] = True
    labels = np.where(flipped, 1 - right, right)
    if ways[options.contender] is None:
        scores = {"all_rows": accuracy(options, texts, labels, dev), "right": accuracy(options, texts, right, dev)}
        recipe.tell(options, scores)
        return
    from cleanlab.filter import find_label_issues

    probabilities = ways[options.contender](options, texts, labels)
    found = find_label_issues(labels, probabilities)
    hits = int((found & flipped).sum())
    result = {
        "found": int(found.sum()),
        "precision": round(100 * hits / max(1, int(found.sum())), 1),
        "recall": round(100 * hits / int(flipped.sum()), 1),
        "held_out_accuracy": round(100 * float((probabilities.argmax(1) == right).mean()), 1),
    }
    recipe.say(str(result))
    if options.contender == "fine_tuned":
        result["left"] = accuracy(options, texts[~found], labels[~found], dev)
        result["corrected"] = accuracy(options, texts, np.where(found, right, labels), dev)
    recipe.tell(options, result)


if __name__ == "__main__":
    main()
