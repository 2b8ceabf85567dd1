"""The temperature beside SciPy's, thresholds beside loops over all of them, and the calibrated model."""

import keras
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax

from keras_bert_layers import BertClassifier
from keras_bert_layers.tasks.labels.calibration import _threshold
from keras_bert_layers.visualization import ReliabilityDiagram

pytestmark = pytest.mark.usefixtures("traces_nothing")  # each model would trace a graph of its own

TEXTS = ["a man", "the dog", "good night", "a good dog", "the man sang", "night", "dog", "man", "a", "the night"] * 3
NAMES = ["x", "y", "z"]
# A bisection to 1e-6 in the logarithm, on float32 logits, beside SciPy's own tolerance.
TEMPERATURE = 1e-4
# Logits are divided in float32 weights.
LOGITS = 1e-5


@pytest.fixture
def make(new_backbone, preprocessor):
    def make(**options):
        keras.utils.set_random_seed(5)
        model = BertClassifier(new_backbone(), class_names=NAMES, preprocessor=preprocessor, **options)
        model.get_layer("classification_head").dense.kernel.assign(np.random.default_rng(0).normal(0, 3, (15, 3)))
        # Each of two classes is predicted for some texts, whatever weights a backend draws first.
        middle = np.median(model.predict(TEXTS, verbose=0), axis=0)
        model.get_layer("classification_head").dense.bias.assign([*-middle[:2], -9])
        return model

    return make


@pytest.fixture
def labels(make):
    """Those that the model predicts, two of five replaced at random."""
    predicted, random = make().predict(TEXTS, verbose=0).argmax(axis=1), np.random.default_rng(1)
    chosen = np.where(random.random(len(TEXTS)) < 0.4, random.integers(0, 3, len(TEXTS)), predicted)
    return [NAMES[index] for index in chosen]


def label_sets(model):
    """0 and 1 at random, by probabilities that are less sure than the model's; no text has the last class."""
    rows = np.random.default_rng(2).random((len(TEXTS), 3)) < expit(model.predict(TEXTS, verbose=0) / 3)
    rows[:, 2] = False
    return rows.astype("float32")


def entropy(logits, y):
    return lambda inverse: -log_softmax(logits * inverse, axis=1)[np.arange(len(y)), y].mean()


def test_temperature_of_one_label(make, labels, capsys):
    model = make()
    before = model.predict(TEXTS, verbose=0)
    picture = ReliabilityDiagram.from_model(model, TEXTS, labels, num_bins=15)
    found = model.calibrate(TEXTS, labels, verbose=1)
    assert "30/30" in capsys.readouterr().out
    y = np.array([NAMES.index(label) for label in labels])
    best = minimize_scalar(
        entropy(before.astype("float64"), y), bounds=(0.02, 50), method="bounded", options={"xatol": 1e-9}
    )
    assert found.temperature == pytest.approx(1 / best.x, rel=TEMPERATURE)
    assert found.temperature > 1  # labels are random in part: sure predictions are too sure
    assert found.thresholds is None
    assert found.error_before == pytest.approx(picture.error, abs=LOGITS)
    after = model.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(after, before / found.temperature, atol=LOGITS)
    assert ReliabilityDiagram.from_model(model, TEXTS, labels, num_bins=15).error == pytest.approx(
        found.error_after, abs=LOGITS
    )
    assert model.calibrate(TEXTS, labels).temperature == pytest.approx(1, rel=TEMPERATURE)


def test_temperature_and_thresholds_of_several_labels(make):
    model = make(problem_type="multi_label_classification")
    y = label_sets(model)
    before = model.predict(TEXTS, verbose=0).astype("float64")
    found = model.calibrate(TEXTS, y)

    def cross_entropy(inverse):
        return (np.logaddexp(0, before * inverse) - y * before * inverse).mean()

    best = minimize_scalar(cross_entropy, bounds=(0.02, 50), method="bounded", options={"xatol": 1e-9})
    assert found.temperature == pytest.approx(1 / best.x, rel=TEMPERATURE)
    probabilities = expit(before / found.temperature)
    for index, name in enumerate(NAMES[:2]):
        scores = {f1(probabilities[:, index] > value, y[:, index]) for value in [0, *probabilities[:, index]]}
        assert f1(probabilities[:, index] > found.thresholds[name], y[:, index]) == max(scores)
    assert found.thresholds["z"] == 0.5
    assert model.threshold == list(found.thresholds.values())


def f1(chosen, right):
    return 2 * (chosen & (right > 0)).sum() / max(chosen.sum() + right.sum(), 1)


def test_thresholds_of_a_precision():
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.6, 0.1])
    right = np.array([True, False, True, True, True, False])
    assert _threshold(scores, right, 0.8, 0.5) == pytest.approx(0.35)
    assert _threshold(scores, right, 1.0, 0.5) == pytest.approx(0.85)
    assert _threshold(scores, np.array([False, *right[1:]]), 1.0, 0.5) == 1.0
    assert _threshold(scores, np.zeros(6, bool), None, 0.3) == 0.3
    assert _threshold(scores, np.ones(6, bool), None, 0.3) == pytest.approx(0.05)


def test_a_calibrated_model_is_saved(make, tmp_path):
    model = make(problem_type="multi_label_classification")
    model.calibrate(TEXTS, label_sets(model))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.threshold == model.threshold
    expected, found = model.answer(TEXTS), loaded.answer(TEXTS)
    np.testing.assert_array_equal(found["probabilities"], expected["probabilities"])
    np.testing.assert_array_equal(found["label"], expected["label"])
    rows = expected["probabilities"] > np.float32(model.threshold)
    assert [{*row} - {""} for row in found["label"]] == [{NAMES[i] for i in np.flatnonzero(row)} for row in rows]


def test_labels_that_the_model_always_predicts_are_warned_about(make):
    model = make()
    labels = [NAMES[index] for index in model.predict(TEXTS, verbose=0).argmax(axis=1)]
    with pytest.warns(UserWarning, match="the best temperature is at the end of the range from 0.02 to 50"):
        assert model.calibrate(TEXTS, labels).temperature == pytest.approx(0.02, rel=TEMPERATURE)


def test_a_head_with_lora(make, labels):
    model = make()
    dense = model.get_layer("classification_head").dense
    dense.enable_lora(2)
    dense.lora_kernel_b.assign(np.random.default_rng(3).normal(0, 1, (2, 3)))
    before = model.predict(TEXTS, verbose=0)
    temperature = model.calibrate(TEXTS, labels).temperature
    np.testing.assert_allclose(model.predict(TEXTS, verbose=0), before / temperature, atol=LOGITS)


class TestErrors:
    def test_regression(self, new_backbone, preprocessor):
        model = BertClassifier(new_backbone(), problem_type="regression", preprocessor=preprocessor)
        with pytest.raises(ValueError, match="`problem_type` must have probabilities"):
            model.calibrate(TEXTS, np.zeros(len(TEXTS)))

    def test_precision(self, make, labels):
        with pytest.raises(ValueError, match="`precision` must be None for one class per text"):
            make().calibrate(TEXTS, labels, precision=0.9)
        with pytest.raises(ValueError, match="`precision` must be above 0, or None"):
            make(problem_type="multi_label_classification").calibrate(TEXTS, np.ones((len(TEXTS), 3)), precision=0)

    def test_thresholds(self, make):
        with pytest.raises(ValueError, match="`threshold` must be one number, or one for each of 3 classes"):
            make(problem_type="multi_label_classification", threshold=[0.5, 0.5])


def test_rows_that_give_no_temperature(make):
    model = make()
    for texts, labels in ((TEXTS[:1], ["x"]), (TEXTS, ["x"] * len(TEXTS))):
        with pytest.raises(ValueError, match="`BertClassifier`: `labels` must hold more than one class"):
            model.calibrate(texts, labels)
    several = make(problem_type="multi_label_classification")
    with pytest.raises(ValueError, match="`labels` must hold more than one class"):
        several.calibrate(TEXTS, [[]] * len(TEXTS))
    model.get_layer("classification_head").dense.bias.assign([0, np.nan, 0])
    with pytest.raises(ValueError, match="`weights` must give finite logits"):
        model.calibrate(TEXTS, NAMES * 10)
