"""Classify texts or pairs of texts, with one or several labels, or predict a number; with your own CSV file.

    python3 examples/classify.py --smoke

trains a tiny model from scratch on a few built-in rows, without any download (`--labels several` and
`--labels number` for the other kinds). On your own rows, from your own BERT (a HuggingFace or sentence-transformers
directory):

    python3 examples/classify.py --weights path/to/bert --data mail.csv --text-column body --label-column folder
    ... --pair-column question                          pairs of texts
    ... --labels several --separator ";"                several names in a cell: spam;urgent
    ... --labels several --label-column toxic insult    a column of 0 and 1 for each class; a row may have none
    ... --labels number --label-column stars            regression
    ... --class-weight balanced                         or by name: --class-weight spam=3 ham=1

A tenth of the rows is held out for evaluation. The trained model is saved as a `.keras` file and as a SavedModel.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from pathlib import Path
from typing import Any

SEED = 7
HELD_OUT_SHARE = 0.1
PROBLEM_TYPES = {
    "one": "single_label_classification",
    "several": "multi_label_classification",
    "number": "regression",
}
SMOKE_TEXTS = ["a warm film", "a dull film", "warm and funny", "dull and loud", "funny , loud , warm", "a film"] * 4
SMOKE_LABELS: dict[str, list[Any]] = {
    "one": ["good", "bad", "good", "bad", "good", "bad"] * 4,
    "several": [["warm"], ["dull"], ["warm", "funny"], ["dull"], ["funny", "warm"], []] * 4,
    "number": [4.0, 1.0, 5.0, 0.5, 4.5, 2.5] * 4,
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a tiny model on built-in rows; takes seconds")
    parser.add_argument("--weights", help="a HuggingFace or sentence-transformers directory")
    parser.add_argument("--data", type=Path, help="a UTF-8 CSV file with a header; needs pandas")
    parser.add_argument("--text-column", default="text", help="the column of texts (default: text)")
    parser.add_argument("--pair-column", help="the column of second texts, for pairs")
    parser.add_argument("--label-column", nargs="+", default=["label"], help="the column(s) of labels (default: label)")
    parser.add_argument("--labels", choices=PROBLEM_TYPES, default="one", help="labels of a row (default: one)")
    parser.add_argument("--separator", default=";", help="separates several labels in one cell (default: ;)")
    parser.add_argument(
        "--class-weight", nargs="+", metavar="CLASS=WEIGHT", help="weights by class, or the word balanced"
    )
    parser.add_argument(
        "--max-length", type=int, default=128, help="tokens per row, longer rows are cut (default: 128)"
    )
    parser.add_argument("--epochs", type=int, default=3, help="passes over the rows (default: 3)")
    parser.add_argument("--batch-size", type=int, default=32, help="rows per step (default: 32)")
    parser.add_argument("--rate", type=float, default=5e-5, help="the highest learning rate (default: 5e-5)")
    parser.add_argument("--output", type=Path, default=Path("classify_output"), help="where to write the models")
    arguments = parser.parse_args()
    if not arguments.smoke and (arguments.weights is None or arguments.data is None):
        parser.error("give --weights and --data, or --smoke")
    if arguments.class_weight and arguments.labels != "one":
        parser.error("--class-weight needs --labels one")
    if len(arguments.label_column) > 1 and arguments.labels != "several":
        parser.error("more than one label column needs --labels several")
    return arguments


def read_rows(arguments: argparse.Namespace) -> tuple[list[Any], list[Any]]:
    """Texts (or pairs of texts) and labels from the user's file."""
    from _table import read_columns

    text_columns = [column for column in (arguments.text_column, arguments.pair_column) if column]
    columns = read_columns(arguments.data, *text_columns, *arguments.label_column)
    texts = list(zip(*columns[:2], strict=True)) if arguments.pair_column else columns[0]
    cells = columns[len(text_columns) :]
    if arguments.labels == "number":
        return texts, [float(cell) for cell in cells[0]]
    if arguments.labels == "one":
        return texts, cells[0]
    if len(cells) == 1:
        return texts, [[name.strip() for name in cell.split(arguments.separator) if name.strip()] for cell in cells[0]]
    names = arguments.label_column
    return texts, [
        [name for name, cell in zip(names, row, strict=True) if float(cell)] for row in zip(*cells, strict=True)
    ]


def class_weights(words: list[str] | None, labels: list[Any]) -> dict[str, float] | None:
    """The `class_weight` of `fit`: None, weights by name, or weights that balance the classes."""
    if not words:
        return None
    if words == ["balanced"]:
        counts = Counter(labels)
        return {name: len(labels) / (len(counts) * count) for name, count in counts.items()}
    return {name: float(weight) for name, weight in (word.rsplit("=", 1) for word in words)}


def columns_of(rows: list[Any]) -> Any:
    """Rows as the model takes them: a list of texts, or a tuple of two lists."""
    if rows and isinstance(rows[0], tuple):
        return tuple(list(side) for side in zip(*rows, strict=True))
    return rows


def make_classifier(kbl: Any, arguments: argparse.Namespace, labels: list[Any], texts: list[Any]) -> Any:
    """A classifier for these labels, from the user's weights, or a tiny one."""
    problem: dict[str, Any] = {"problem_type": PROBLEM_TYPES[arguments.labels]}
    if arguments.labels != "number":
        names = labels if arguments.labels == "one" else [name for row in labels for name in row]
        problem["class_names"] = sorted(set(names))
    if arguments.smoke:
        from _smoke import small_parts

        backbone, preprocessor = small_parts(texts)
    else:
        backbone = kbl.load_backbone(arguments.weights)
        preprocessor = kbl.load_preprocessor(arguments.weights, max_length=arguments.max_length)
    return kbl.BertClassifier(backbone, preprocessor=preprocessor, **problem)


def metrics_of(kbl: Any, classifier: Any) -> list[Any]:
    """The usual metrics for each kind of label."""
    if classifier.problem_type == "regression":
        return [kbl.metrics.PearsonCorrelation(), kbl.metrics.SpearmanCorrelation()]
    if classifier.problem_type == "multi_label_classification":
        return [
            kbl.metrics.F1Score(classifier.num_classes, average, multi_label=True, name=f"{average}_f1")
            for average in ("micro", "macro")
        ]
    return [
        *classifier.default_metrics(),
        kbl.metrics.F1Score(classifier.num_classes),
        kbl.metrics.MatthewsCorrelation(classifier.num_classes),
    ]


def readable(answer: Any) -> Any:
    """An answer as short Python values."""
    if isinstance(answer, str):
        return answer
    return [readable(value) for value in answer] if getattr(answer, "shape", ()) else round(float(answer), 3)


def train(arguments: argparse.Namespace, output: Path) -> None:
    """Trains on nine tenths of the rows, evaluates on the rest, saves the model and runs it."""
    import keras

    import keras_bert_layers as kbl
    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

    keras.utils.set_random_seed(SEED)
    texts, labels = (SMOKE_TEXTS, SMOKE_LABELS[arguments.labels]) if arguments.smoke else read_rows(arguments)
    order = list(range(len(texts)))
    random.Random(SEED).shuffle(order)
    num_held_out = max(1, round(len(order) * HELD_OUT_SHARE))
    held_out, training = order[:num_held_out], order[num_held_out:]
    classifier = make_classifier(kbl, arguments, labels, texts)
    num_steps = -(-len(training) // arguments.batch_size) * arguments.epochs
    rate = WarmupLinearDecay(arguments.rate, num_steps, num_warmup_steps=num_steps // 10)
    classifier.compile(adamw(rate), metrics=metrics_of(kbl, classifier))
    classifier.fit(
        columns_of([texts[row] for row in training]),
        [labels[row] for row in training],
        batch_size=arguments.batch_size,
        epochs=arguments.epochs,
        class_weight=class_weights(arguments.class_weight, [labels[row] for row in training]),
        verbose=0 if arguments.smoke else 1,
    )
    rest = columns_of([texts[row] for row in held_out])
    result = classifier.evaluate(rest, [labels[row] for row in held_out], verbose=0, return_dict=True)
    print(
        f"{classifier.problem_type}, {len(held_out)} held-out rows: "
        + ", ".join(f"{name} {value:.3f}" for name, value in result.items())
    )
    classifier.save(output / "classifier.keras")
    classifier.export(output / "saved_model")
    print(f"wrote {output / 'classifier.keras'} and {output / 'saved_model'}")
    answers = classifier.answer(columns_of([texts[row] for row in held_out[:3]]))
    for index, row in enumerate(held_out[:3]):
        answer = {name: readable(values[index]) for name, values in answers.items()}
        print(f"  {texts[row]!r}: {answer}, the label is {labels[row]!r}")


if __name__ == "__main__":
    from _main import main

    main(parse_arguments(), train)
