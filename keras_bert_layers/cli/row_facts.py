"""What is in a table of texts and labels: columns, lengths, duplicates, baselines and doubtful labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_bert_layers.cli.columns import useful_kind

_LABELS = ("label", "labels", "class", "category", "target", "sentiment", "stars", "rating", "score", "y")
_MOST_CLASSES, _FOLDS, _STEPS, _FEW_WORDS = 50, 5, 1000, 50_000


class Chosen(NamedTuple):
    """The columns of a table.

    Args:
        text: the column of texts.
        label: the column of labels; None if there is none.
        kind: the kind of labels as `train --labels` names it: "one" or "number".
        others: the other columns.
        beside: the kinds of those that may tell something beside the texts, as of `columns.column_kind`.
    """

    text: str
    label: str | None
    kind: str
    others: tuple[str, ...]
    beside: dict[str, str]


def choose_columns(columns: Mapping[str, Sequence[Any]], text: str | None, label: str | None) -> Chosen:
    """The columns by what is in them, where they are not given.

    The texts are the column with the longest cells, addresses of the web aside. The labels are a column of few values,
    each of several rows, or of numbers: one with a name such as "label" before others, then the one with the fewest
    values.

    Examples:
        >>> table = {"id": [1, 2, 3, 4], "review": ["a good one", "bad", "so so", "great"], "stars": [1, 0, 0, 1]}
        >>> choose_columns(table, None, None)
        Chosen(text='review', label='stars', kind='one', others=('id',), beside={})
    """
    if text is None:
        rest = [name for name in columns if name != label]
        text = max(rest, key=lambda name: sum(_length(str(cell)) for cell in columns[name]))
    if label is None:
        numbers = {name: len(set(map(str, columns[name]))) for name in columns if name != text}
        few = [name for name, count in numbers.items() if 1 < count <= min(_MOST_CLASSES, len(columns[text]) // 2)]
        named = [name for name in numbers if name.lower() in _LABELS and numbers[name] > 1]
        label = next(iter(named), min(few, key=numbers.__getitem__, default=None))
    kind = "one" if label is None else _kind(columns[label])
    others = [name for name in columns if name not in (text, label)]
    beside = {name: found for name in others if (found := useful_kind(name, columns[name]))}
    return Chosen(text, label, kind, tuple(name for name in others if name not in beside), beside)


def _length(cell: str) -> int:
    return 0 if cell.startswith(("http://", "https://")) else len(cell)


def _kind(cells: Sequence[Any]) -> str:
    """The kind of labels: numbers with a fraction, or of so many values that they are no classes, are "number"."""
    try:
        numbers = {float(cell) for cell in cells}
    except (TypeError, ValueError):
        return "one"
    has_fractions = any(number != round(number) for number in numbers if np.isfinite(number))
    return "number" if has_fractions or len(numbers) > _MOST_CLASSES else "one"


def repeated(texts: Sequence[str]) -> dict[int, int]:
    """The rows whose text an earlier row has too, but for case and spaces, each with the first such row.

    Examples:
        >>> repeated(["Good.", "bad", " good. ", "BAD"])
        {2: 0, 3: 1}
    """
    first: dict[str, int] = {}
    rows = [(row, first.setdefault(_plain(text), row)) for row, text in enumerate(texts)]
    return {row: other for row, other in rows if row != other}


def in_both(texts: Sequence[str], others: Sequence[str]) -> int:
    """How many of the others are among the texts, but for case and spaces."""
    known = {_plain(text) for text in texts}
    return sum(_plain(text) in known for text in others)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def baselines(
    texts: Sequence[str], vectors: np.ndarray, labels: Sequence[Any], kind: str, advance: Callable[[int], Any]
) -> tuple[dict[str, float], np.ndarray | None]:
    """What simple models reach in a cross-validation: the accuracy in percent, or of numbers the mean absolute error.

    Args:
        texts: the texts.
        vectors: their vectors, float32 `(rows, vector_dim)`.
        labels: one label of each.
        kind: "one" or "number".
        advance: is called with 1 after each model.

    Returns:
        Model -> score. And the probabilities `(rows, classes)` of the classes in order by the vectors; None of numbers.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from threadpoolctl import threadpool_limits

    words = TfidfVectorizer(
        sublinear_tf=True, ngram_range=(1, 2), max_features=_FEW_WORDS, token_pattern=r"(?u)\b\w+\b"
    )
    if kind == "number":
        values: Any = np.array(labels, np.float64)
        folds, model, options = KFold(_FOLDS, shuffle=True, random_state=0), Ridge(), {}
        scores = {"the mean": float(np.abs(values - values.mean()).mean())}
    else:
        values = np.array(labels)
        fewest = min(Counter(labels).values())
        folds = StratifiedKFold(max(2, min(_FOLDS, fewest)), shuffle=True, random_state=0)
        model, options = LogisticRegression(max_iter=_STEPS), {"method": "predict_proba"}
        scores = {"the most frequent class": 100 * max(Counter(labels).values()) / len(labels)}
    found = None
    data = {"TF-IDF of words": (make_pipeline(words, model), texts), "frozen vectors": (model, vectors)}
    with threadpool_limits(1):
        for name, (pipeline, rows) in data.items():
            found = cross_val_predict(pipeline, rows, values, cv=folds, **options)
            if kind == "number":
                scores[name] = float(np.abs(found - values).mean())
            else:
                scores[name] = float(100 * (np.unique(values)[found.argmax(axis=1)] == values).mean())
            advance(1)
    return scores, None if kind == "number" else found


def doubtful(probabilities: np.ndarray, labels: Sequence[str]) -> dict[int, str]:
    """The rows whose label is probably wrong, the most doubtful first, with the other class: confident learning's rule.

    Another class is likelier than the label, and as likely as that class is on average in rows of its own.

    Examples:
        >>> doubtful(np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.9, 0.1]]), ["a", "a", "b", "b"])
        {3: 'a'}

    References:
        Northcutt et al. 2021, https://arxiv.org/abs/1911.00068, equation 2.
    """
    names, own = np.unique(labels, return_inverse=True)
    usual = np.array([probabilities[own == index, index].mean() for index in range(len(names))])
    rows = np.arange(len(own))
    likely = np.where(probabilities >= usual, probabilities, 0)
    likely[rows, own] = 0
    is_doubtful = likely.max(axis=1) > probabilities[rows, own]
    order = np.argsort(probabilities[rows, own], kind="stable")
    return {int(row): str(names[likely[row].argmax()]) for row in order if is_doubtful[row]}
