"""`ClassificationReport`: confusion matrix, metrics per class and worst errors of a classifier."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.hints import check_scikit_learn
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Labels, Rows
from keras_bert_layers.config import COLUMNS
from keras_bert_layers.preprocessing.preprocessors.long_texts import Windows
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.tasks.feeding.columns import as_tuple, check_takes_text
from keras_bert_layers.tasks.feeding.cut_texts import num_special_tokens, token_counts
from keras_bert_layers.tasks.feeding.streams import texts_of_table
from keras_bert_layers.tasks.labels.calibration import softmax
from keras_bert_layers.tasks.serving.attributed_rows import by_words, readable

#: The tokens, words and columns of an error, and their weights, as `ClassificationError` has them.
Occluded = dict[str, list[Any]]
_AVERAGES = ("macro avg", "weighted avg")


@dataclass(frozen=True)
class ClassificationError:
    """A text that a classifier assigned to a wrong class.

    Args:
        row: the index of the text.
        text: the text, or a tuple of two.
        label: the name of its class.
        predicted: the name of the predicted class.
        probability: of the predicted class.
        label_probability: of the text's own class.
        tokens: the tokens that the model read, special tokens included.
        weights: for each token, how much the probability of the predicted class falls if the token is replaced by the
            unknown token; 0 for special tokens.
        words: the words of the text as the model reads them, without special tokens.
        word_weights: for each word, the sum of the weights of its tokens.
        columns: the names of the columns beside the text.
        column_weights: for each column, how much the probability falls if its value is missing.
    """

    row: int
    text: str | tuple[str, ...]
    label: str
    predicted: str
    probability: float
    label_probability: float
    tokens: list[str]
    weights: list[float]
    words: list[str] = field(default_factory=list)
    word_weights: list[float] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    column_weights: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class ClassificationReport:
    """Confusion matrix, metrics per class and worst errors; `BertClassifier.report` computes it.

    `visualization.ReportPicture` draws it.

    Args:
        class_names: the classes.
        num_texts: how many texts there were.
        accuracy: the share of texts whose class was predicted.
        confusion: int `(classes, classes)`, rows for the classes of the texts, columns for the predicted ones.
        per_class: class -> `"precision"`, `"recall"`, `"f1-score"` and `"support"`, as scikit-learn's
            `classification_report`; averages under `"macro avg"` and `"weighted avg"`.
        errors: the wrong texts whose own class got the lowest probabilities, the lowest first.
        share_cut: the share of texts that are longer than `max_length`; the model has not read all of them.
        max_length: the most tokens that the model reads.
    """

    class_names: list[str]
    num_texts: int
    accuracy: float
    confusion: np.ndarray
    per_class: dict[str, dict[str, float]]
    errors: list[ClassificationError]
    share_cut: float
    max_length: int

    def to_dict(self) -> dict[str, Any]:
        """All of it as lists, dictionaries, strings and numbers, for JSON."""
        return {**asdict(self), "confusion": self.confusion.tolist()}

    def __str__(self) -> str:
        """The table of the classes as text."""
        width = max(len(name) for name in self.per_class)
        columns = ("precision", "recall", "f1-score", "support")
        lines = [f"{'':{width}}" + "".join(f"{column:>11}" for column in columns)]
        for name, row in self.per_class.items():
            numbers = "".join(f"{row[column]:11.3f}" for column in columns[:-1])
            lines.append(f"{name:{width}}{numbers}{row['support']:11.0f}")
        cut = f"{self.share_cut:.1%} of the texts were cut at {self.max_length} tokens"
        rows = ((name, self.per_class[name]) for name in self.class_names)
        missed = [name for name, row in rows if row["support"] and not row["recall"]]
        if missed:
            cure = "Accuracy may hide that. Add texts of them, train for longer, or weigh them with `class_weight`."
            lines.append(f"no text of {missed} was recognized (recall 0). {cure}")
        return "\n".join([*lines, f"accuracy {self.accuracy:.3f} of {self.num_texts} texts; {cut}"])


def report_of(
    classifier: keras.Model, x: Rows, y: Labels, *, num_errors: int, batch_size: int | None, verbose: str | int
) -> ClassificationReport:
    """The report of a `BertClassifier`; see its method `report`."""
    owner = type(classifier).__name__
    if classifier.problem_type != "single_label_classification":
        cure = "For other labels, `compile` with metrics of `keras_bert_layers.metrics`, and call `evaluate`."
        rule = "be 'single_label_classification' for a report"
        raise ValueError(checks.message(owner, "problem_type", rule, classifier.problem_type, cure))
    check_takes_text(classifier)
    checks.whole_number(owner, "num_errors", num_errors)
    check_scikit_learn(owner, "report")
    from sklearn import metrics

    columns = classifier.pipeline.columns(texts_of_table(classifier.pipeline, x))
    texts, columns = (as_tuple(part) for part in (classifier.pipeline.read_together(columns), columns))
    num_texts = len(columns[0])
    rule = f"hold one label for each of {num_texts} texts"
    checks.length(owner, "labels", y, num_texts, rule=rule, unit="labels")
    labels = np.asarray(classifier.pipeline.labels(x, y)).astype(int)
    labels = labels.argmax(axis=-1) if labels.ndim > 1 else labels  # one-hot rows
    if not num_texts:
        raise ValueError(f"`{owner}`: a report needs at least one text. Received: 0 texts.")
    names = list(classifier.class_names or map(str, range(classifier.num_classes)))
    probabilities = softmax(classifier.predict(x, batch_size=batch_size, verbose=verbose).astype(np.float64))
    predicted = probabilities.argmax(axis=-1)
    indices = list(range(len(names)))
    table = metrics.classification_report(
        labels, predicted, labels=indices, target_names=names, output_dict=True, zero_division=0.0
    )
    wrong = np.flatnonzero(predicted != labels)
    worst = wrong[np.argsort(probabilities[wrong, labels[wrong]], kind="stable")][:num_errors]
    occluded = _occluded(classifier, [column[worst] for column in columns], predicted[worst], verbose)
    return ClassificationReport(
        class_names=names,
        num_texts=num_texts,
        accuracy=float((predicted == labels).mean()),
        confusion=metrics.confusion_matrix(labels, predicted, labels=indices),
        per_class={name: {key: float(value) for key, value in table[name].items()} for name in (*names, *_AVERAGES)},
        errors=[
            _error(texts, row, found, names=names, label=labels[row], probabilities=probabilities[row])
            for row, found in zip(worst.tolist(), occluded, strict=True)
        ],
        share_cut=0.0 if isinstance(classifier.long_texts, Windows) else _share_cut(classifier.preprocessor, texts),
        max_length=classifier.preprocessor.max_length,
    )


def _error(
    columns: Sequence[Any],
    row: int,
    occluded: Occluded,
    *,
    names: Sequence[str],
    label: int,
    probabilities: np.ndarray,
) -> ClassificationError:
    values = (column[row] for column in columns)
    texts = tuple(value.decode(errors="replace") if isinstance(value, bytes) else str(value) for value in values)
    predicted = int(probabilities.argmax())
    return ClassificationError(
        row=row,
        text=texts[0] if len(texts) == 1 else texts,
        label=names[label],
        predicted=names[predicted],
        probability=float(probabilities[predicted]),
        label_probability=float(probabilities[label]),
        **occluded,
    )


def _occluded(
    classifier: keras.Model, columns: Sequence[Any], predicted: np.ndarray, verbose: str | int
) -> list[Occluded]:
    """The tokens, words and columns of each row, and how much the probability of a class falls without each of them."""
    inputs, tokenizer = classifier.pipeline, classifier.preprocessor.tokenizer
    preprocessor = inputs.bucketed()
    special, classes = (tokenizer.start_id, tokenizer.separator_id, tokenizer.pad_id), iter(predicted.tolist())

    begins = ~np.array(tokenizer.continues_word())
    names = inputs.features.names if inputs.columns_beside else []

    def of_row(row: Any, run: Callable[..., Any], share: float) -> Occluded:
        made = {**preprocessor(inputs.read_together(row)), **inputs.beside(row)}
        ids = {name: np.asarray(values) for name, values in made.items()}
        tokens = ids["token_ids"][0, : int(ids["padding_mask"].sum())].copy()
        is_text = ~np.isin(tokens, special)
        positions = np.flatnonzero(is_text)
        ids = {name: np.repeat(values, 1 + len(positions) + len(names), axis=0) for name, values in ids.items()}
        ids["token_ids"][np.arange(1, len(positions) + 1), positions] = tokenizer.unknown_id
        for place, name in enumerate(names, start=-len(names)):  # columns are the last parts of a row
            without = list(row)
            without[place] = inputs.features.checked(name, [None], 0)
            ids[COLUMNS][place] = inputs.beside(tuple(without))[COLUMNS][0]
        logits = run(ids, preprocessor, finish=inputs.model_inputs, share=share)
        probabilities = softmax(logits.astype(np.float64))[:, next(classes)]
        weights = np.zeros(len(tokens))
        falls = probabilities[0] - probabilities[1:]
        weights[positions] = falls[: len(positions)]
        words, sums = by_words(tokenizer, tokens, is_text, begins[tokens], weights)
        shown = readable(tokenizer, tokens)
        found = {"tokens": shown, "weights": weights.tolist(), "words": words, "word_weights": sums.tolist()}
        return {**found, "columns": names, "column_weights": falls[len(positions) :].tolist()}

    def of_block(block: Any, run: Callable[..., Any]) -> list[Occluded]:
        sides = as_tuple(block)
        rows = (tuple([side[index]] for side in sides) for index in range(len(sides[0])))
        return [of_row(row if len(row) > 1 else row[0], run, 1 / len(sides[0])) for row in rows]

    x = tuple(columns) if len(columns) > 1 else columns[0]
    blocks = classifier.predictor.blocks(inputs, x, verbose=verbose if len(predicted) else 0, compute=of_block)
    return list(itertools.chain.from_iterable(blocks))


def _share_cut(preprocessor: TextLayer, columns: Sequence[Any]) -> float:
    """The share of rows that have more tokens than the preprocessor keeps."""
    texts = tuple(tf.constant(list(column), tf.string) for column in columns)
    lengths = np.asarray(token_counts(preprocessor.tokenizer, texts))
    num_special = num_special_tokens(preprocessor.tokenizer, len(columns))
    return float((lengths + num_special > preprocessor.max_length).mean())
