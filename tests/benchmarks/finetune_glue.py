"""Fine-tuning on MRPC, CoLA, RTE and STS-B, ours beside transformers + torch: one recipe, the same weights.

    python tests/benchmarks/finetune_glue.py --task MRPC --contender transformers --data ../shared/data/glue
    python tests/benchmarks/finetune_glue.py --task MRPC --contender keras_bert_layers --data ../shared/data/glue

The recipe, for both: one epoch, batch 32, at most 128 tokens, peak rate 1e-4, the dev file's metrics by
scikit-learn and SciPy. STS-B is a regression: the mean squared error of a single output and a fifth of the score. The
rest of the recipe is in `_recipe.py`. `transformers` needs the extra `peers`. Prints one JSON line.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, NamedTuple

import _recipe as recipe
import numpy as np

BATCH_SIZE = 32
NUM_EPOCHS = 1
PEAK_RATE = 1e-4
MAX_LENGTH = 128
LARGEST_SCORE = 5.0


class Rows(NamedTuple):
    """The texts of a file, their pairs (None where texts are single), and the labels."""

    texts: list[str]
    pairs: list[str] | None
    labels: list[Any]


def read_rows(path: Path, task: str) -> Rows:
    """A GLUE file; labels are 0 and 1, or a fifth of the score."""
    with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as file:
        lines = [line.rstrip("\r\n").split("\t") for line in file if line.strip()]
    if task == "CoLA":
        return Rows([line[3] for line in lines], None, [int(line[1]) for line in lines])
    lines = lines[1:]
    if task == "MRPC":
        return Rows([line[3] for line in lines], [line[4] for line in lines], [int(line[0]) for line in lines])
    if task == "RTE":
        labels = [int(line[3] == "not_entailment") for line in lines]
        return Rows([line[1] for line in lines], [line[2] for line in lines], labels)
    labels = [float(line[9]) / LARGEST_SCORE for line in lines]
    return Rows([line[7] for line in lines], [line[8] for line in lines], labels)


def evaluate(task: str, outputs: np.ndarray, labels: list[Any]) -> dict[str, float]:
    """The task's metrics x 100, from logits `(rows, 2)` or scores `(rows, 1)`."""
    from scipy.stats import pearsonr, spearmanr
    from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

    if task == "STS-B":
        found = {"pearson": pearsonr(outputs[:, 0], labels)[0], "spearman": spearmanr(outputs[:, 0], labels)[0]}
    else:
        classes = outputs.argmax(-1)
        found = {"accuracy": accuracy_score(labels, classes)}
        if task == "MRPC":
            found["f1"] = f1_score(labels, classes)
        if task == "CoLA":
            found["matthews"] = matthews_corrcoef(labels, classes)
    return {name: round(100 * float(value), 2) for name, value in found.items()}


def batches_of(train: Rows, seed: int) -> list[list[int]]:
    """The rows of each step."""
    lengths = [len(text) for text in train.texts]
    if train.pairs is not None:
        lengths = [first + len(second) for first, second in zip(lengths, train.pairs, strict=True)]
    return recipe.draw_batches(lengths, batch_size=BATCH_SIZE, num_epochs=NUM_EPOCHS, seed=seed)


def train_transformers(weights: str, task: str, train: Rows, dev: Rows, seed: int) -> dict:
    """The recipe in transformers + torch."""
    import torch
    from transformers import AutoTokenizer, BertForSequenceClassification

    tokenizer = AutoTokenizer.from_pretrained(weights)
    model = BertForSequenceClassification.from_pretrained(weights, num_labels=1 if task == "STS-B" else 2)

    def encode(rows: Rows, chosen: Any) -> dict:
        texts = [rows.texts[row] for row in chosen]
        pairs = None if rows.pairs is None else [rows.pairs[row] for row in chosen]
        return tokenizer(texts, pairs, truncation=True, max_length=MAX_LENGTH, padding=True, return_tensors="pt")

    def loss_of(chosen: list[int]):
        return model(**encode(train, chosen), labels=torch.tensor([train.labels[row] for row in chosen])).loss

    batches = batches_of(train, seed)
    trained = recipe.train_torch(model, model.classifier, batches, loss_of, peak_rate=PEAK_RATE, seed=seed)
    with torch.inference_mode():
        parts = recipe.in_batches(len(dev.texts), BATCH_SIZE)
        outputs = np.concatenate([model(**encode(dev, part)).logits.numpy() for part in parts])
    return {**evaluate(task, outputs, dev.labels), **trained}


def train_keras_bert_layers(weights: str, task: str, train: Rows, dev: Rows, seed: int) -> dict:
    """The recipe with this package."""
    backbone, preprocessor = recipe.load_ours(weights, seed, max_length=MAX_LENGTH)
    from keras_bert_layers import BertClassifier

    problem = {"problem_type": "regression"} if task == "STS-B" else {"num_classes": 2}
    model = BertClassifier(backbone, preprocessor=preprocessor, **problem)
    recipe.draw_dense(model.get_layer("classification_head").dense, seed)
    batches = batches_of(train, seed)
    recipe.compile_ours(model, batches, peak_rate=PEAK_RATE)
    rows = [row for batch in batches for row in batch]
    trained = recipe.fit_ours(model, _texts(train, rows), [train.labels[row] for row in rows], batches)
    outputs = model.predict(_texts(dev, range(len(dev.texts))), batch_size=BATCH_SIZE, verbose=0)
    return {**evaluate(task, outputs, dev.labels), **trained}


def _texts(rows: Rows, chosen: Any) -> Any:
    """What `fit` and `predict` take: a column of texts, or a pair of columns."""
    texts = [rows.texts[row] for row in chosen]
    return texts if rows.pairs is None else (texts, [rows.pairs[row] for row in chosen])


CONTENDERS = {"transformers": train_transformers, "keras_bert_layers": train_keras_bert_layers}


def main() -> None:
    """Reads the arguments, trains once, prints one JSON line."""
    parser = recipe.arguments(__doc__, list(CONTENDERS))
    parser.add_argument("--task", choices=("MRPC", "CoLA", "RTE", "STS-B"), required=True)
    options = parser.parse_args()
    train = read_rows(options.data / options.task / "train.tsv.gz", options.task)
    if options.rows:
        train = Rows(*(None if column is None else column[: options.rows] for column in train))
    dev = read_rows(options.data / options.task / "dev.tsv.gz", options.task)
    contender = CONTENDERS[options.contender]
    recipe.tell(options, contender(recipe.weights_of(options), options.task, train, dev, options.seed))


if __name__ == "__main__":
    main()
