"""`probe`: what a linear classifier finds in the hidden states of each layer; and `ProbeReport`, its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.hints import check_scikit_learn
from keras_bert_layers._internal.types import Labels
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.tasks.features import Features

OWNER = "probe"
_FOLDS, _STEPS = 5, 1000  # of the cross-validation, at most; of the solver


@dataclass(frozen=True)
class ProbeReport:
    """The accuracy of a linear probe for each layer; `probe` computes it, and `visualization.ProbeCurve` draws it.

    Args:
        accuracies: float64 `(num_layers + 1,)`, of the output of the embedding and of each block.
        controls: the same for shuffled labels: what the probe reaches where there is nothing to find.
        majority: the share of the most frequent label.
        num_labeled: how many labeled texts or words there were.
        num_folds: of the cross-validation.
    """

    accuracies: np.ndarray
    controls: np.ndarray
    majority: float
    num_labeled: int
    num_folds: int


def probe(
    model: keras.Model,
    x: Any,
    labels: Labels,
    *,
    per: str = "text",
    preprocessor: TextLayer | None = None,
    seed: int = 0,
) -> ProbeReport:
    """Trains a linear probe for each layer: a logistic regression on frozen hidden states.

    The accuracy shows how well a linear classifier finds the labels in the hidden states of a layer. It is the mean of
    a cross-validation with five folds that have similar shares of the labels, or with fewer if a label is rare. All
    words of a text are in one fold. Features are standardized on the rows that the probe is trained on.

    Compare it with `controls`, the same for shuffled labels, and with the majority. A probe with much data learns
    labels that the model does not know of, and a low accuracy only means that the labels are not linear in the states.

    Args:
        model: a `BertBackbone`, or a task, whose backbone is used.
        x: texts, or for words also lists of words.
        labels: one label per text; per word, one list for each text with one label per word, in the order of
            `Features.words`. Strings or numbers.
        per: `"text"` for the mean over the tokens of a text, or `"word"`.
        preprocessor: a `BertPreprocessor`; the task's own if None.
        seed: of the folds and of the shuffled labels.

    Returns:
        The report. All hidden states are in memory: `rows * (num_layers + 1) * hidden_dim` values of float32.

    Raises:
        ModuleNotFoundError: scikit-learn is not installed.
        ValueError: another number of labels than of texts or words; fewer than two labels; a label that occurs once, or
            in one text.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=6, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> preprocessor = kbl.BertPreprocessor(kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog"]))
        >>> texts, labels = ["cat", "cat cat", "dog", "dog dog"], ["c", "c", "d", "d"]
        >>> report = probe(kbl.BertBackbone(config), texts, labels, preprocessor=preprocessor)
        >>> report.accuracies.shape, report.majority, report.num_folds
        ((2,), 0.5, 2)

    References:
        Alain and Bengio 2016, arXiv:1610.01644; Tenney et al. 2019, arXiv:1905.05950; Hewitt and Liang 2019,
        arXiv:1909.03368 (controls).
    """
    check_scikit_learn("tasks", OWNER)
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits  # a dependency of scikit-learn

    checks.one_of(OWNER, "per", per, ("text", "word"))
    states = Features(model, preprocessor, layers="all", combine="stack", per=per).predict(x, verbose=0)
    rule = "hold one label for each text, or one list for each text per word"
    checks.length(OWNER, "labels", labels, len(states), rule=rule, unit="labels")
    texts = np.arange(len(states))
    if per == "word":
        for row, (vectors, tags) in enumerate(zip(states, labels, strict=True)):
            if len(tags) != len(vectors):
                received = checks.Shown(f"{len(tags)} labels for {len(vectors)} words in row {row}")
                raise ValueError(checks.message(OWNER, "labels", "hold one label per word", received))
        texts = np.repeat(texts, [len(vectors) for vectors in states])
        states, labels = np.concatenate(states), [label for tags in labels for label in tags]
    names, y, counts = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    num_texts = {name: len(np.unique(texts[y == index])) for index, name in enumerate(names.tolist())}
    num_folds = min(_FOLDS, *num_texts.values()) if len(names) > 1 else 0
    if num_folds < 2:
        rule = "hold two labels or more, each in two texts or more"
        raise ValueError(checks.message(OWNER, "labels", rule, num_texts))
    folds = StratifiedGroupKFold(num_folds, shuffle=True, random_state=seed)
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=_STEPS))
    layers, shuffled = np.moveaxis(states, 1, 0), np.random.default_rng(seed).permutation(y)
    with threadpool_limits(1):  # threads that wait for each other take most of the time of so small products
        accuracies, controls = (
            np.array([cross_val_score(classifier, layer, target, groups=texts, cv=folds).mean() for layer in layers])
            for target in (y, shuffled)
        )
    return ProbeReport(accuracies, controls, float(counts.max() / len(y)), len(y), num_folds)
