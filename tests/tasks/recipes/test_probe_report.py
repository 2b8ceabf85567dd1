"""`probe`: accuracies beside scikit-learn's on hidden states of our own reading, and errors."""

import sys

import numpy as np
import pytest

from keras_bert_layers import BertBackbone
from keras_bert_layers.tasks import probe

pytest.importorskip("sklearn")

TEXTS = [f"{a} {b} {c}" for a in ("good", "bad") for b in ("film", "night") for c in (".", "happy", "a")] + ["good bad"]
LABELS = ["+" if "good" in text else "-" for text in TEXTS]
WORDS = [text.split() for text in TEXTS]
TAGS = [[word if word in ("good", "bad") else "other" for word in words] for words in WORDS]


@pytest.fixture(autouse=True)
def one_thread():
    """The solver of a small problem is faster so, above all where other programs run."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


def states_of(backbone, preprocessor, texts):
    """The hidden states of each text, `(layers, tokens, hidden_dim)`."""
    speaking = BertBackbone(backbone.config, return_hidden_states=True)
    speaking.set_weights(backbone.get_weights())
    return [
        np.stack([np.asarray(state)[0] for state in speaking(preprocessor([text]))["hidden_states"]]) for text in texts
    ]


def reference(features, labels, groups, num_folds, seed):
    """The accuracy of each layer with scikit-learn's parts, fold by fold."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedGroupKFold

    names = sorted(set(labels))
    y = np.array([names.index(label) for label in labels])
    accuracies = []
    for layer in range(features.shape[1]):
        x, scores = features[:, layer], []
        for train, test in StratifiedGroupKFold(num_folds, shuffle=True, random_state=seed).split(x, y, groups):
            mean, deviation = x[train].mean(axis=0), x[train].std(axis=0)
            classifier = LogisticRegression(max_iter=1000).fit((x[train] - mean) / deviation, y[train])
            scores.append((classifier.predict((x[test] - mean) / deviation) == y[test]).mean())
        accuracies.append(np.mean(scores))
    return accuracies


@pytest.mark.usefixtures("traces_nothing")
def test_texts(backbone, preprocessor):
    report = probe(backbone, TEXTS, LABELS, preprocessor=preprocessor, seed=3)
    features = np.stack([states.mean(axis=1) for states in states_of(backbone, preprocessor, TEXTS)])
    assert report.accuracies == pytest.approx(reference(features, LABELS, range(13), 5, seed=3))
    assert report.accuracies.shape == report.controls.shape == (3,)
    assert (report.majority, report.num_labeled, report.num_folds) == (7 / 13, 13, 5)
    again = probe(backbone, TEXTS, LABELS, preprocessor=preprocessor, seed=3)
    assert again.controls.tolist() == report.controls.tolist()
    assert report.controls.mean() < report.accuracies.mean()


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize("x", [TEXTS, WORDS], ids=["texts", "words"])
def test_words(backbone, preprocessor, x):
    report = probe(backbone, x, TAGS, per="word", preprocessor=preprocessor)
    states = states_of(backbone, preprocessor, TEXTS)
    features = np.concatenate([np.moveaxis(state[:, 1:-1], 0, 1) for state in states])
    groups = [row for row, words in enumerate(WORDS) for _ in words]
    tags = [tag for row in TAGS for tag in row]
    assert report.accuracies == pytest.approx(reference(features, tags, groups, 5, seed=0))
    assert report.accuracies[0] == 1, "the embedding knows the word"
    assert report.majority == tags.count("other") / len(tags)


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize(
    ("x", "labels", "options", "message"),
    [
        (TEXTS, LABELS[1:], {}, "`labels` must hold one label for each text.*12 labels"),
        (TEXTS, ["+"] * 13, {}, r"`labels` must hold two labels or more, each in two texts or more.*\{'\+': 13\}"),
        (TEXTS, ["+"] * 12 + ["-"], {}, r"each in two texts or more.*'-': 1\}"),
        (
            WORDS,
            [["x"] * 3] * 13,
            {"per": "word"},
            "`labels` must hold one label per word. .*3 labels for 2 words in row 12",
        ),
        (TEXTS, LABELS, {"per": "token"}, "`per` must be one of"),
    ],
)
def test_errors(backbone, preprocessor, x, labels, options, message):
    with pytest.raises(ValueError, match=f"`probe`: .*{message}"):
        probe(backbone, x, labels, preprocessor=preprocessor, **options)


def test_scikit_learn_is_missing(backbone, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ModuleNotFoundError, match="`tasks`: `probe` needs scikit-learn.*`pip install scikit-learn`"):
        probe(backbone, TEXTS, LABELS)
