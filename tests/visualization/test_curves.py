"""`LearningRateCurve` and `TrainingCurves`."""

import re

import keras
import numpy as np
import pytest

from keras_bert_layers.optimizers import LearningRateFinder
from keras_bert_layers.tasks import ProbeReport
from keras_bert_layers.visualization import LearningRateCurve, ProbeCurve, TrainingCurves


def finder(rates, losses):
    made = LearningRateFinder()
    made.rates, made.losses = rates, losses
    return made


def test_values_and_suggestion():
    picture = LearningRateCurve(finder([1e-5, 1e-4, 1e-3, 1e-2], [0.75, 0.625, 0.5, 40.0]))
    page = picture.html()
    assert picture.suggestion == pytest.approx(1e-4)
    for text in ("Suggestion: 0.0001", "0.625", "1e-5", "1e-2", "learning rate"):
        assert text in page


def test_a_suggestion_below_all_rates_is_not_drawn():
    assert LearningRateCurve(finder([1e-4, 1e-3], [0.5, 9.0])).html().count("<polyline") == 2
    assert LearningRateCurve(finder([1e-4, 1e-3], [0.5, 0.25])).html().count("<polyline") == 3


def test_equal_losses():
    assert "nan" not in LearningRateCurve(finder([1e-4, 1e-3], [0.0, 0.0])).html()


def test_refusals():
    with pytest.raises(TypeError, match="`finder` must be a LearningRateFinder"):
        LearningRateCurve([1.0])
    with pytest.raises(ValueError, match="`finder` must have two losses. Received: finder=0 losses. Call `model.fit"):
        LearningRateCurve(LearningRateFinder())


def test_history_of_keras():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["mae"])
    rows = np.ones((5, 3)), np.ones((5, 1))
    history = model.fit(*rows, epochs=2, validation_data=rows, verbose=0)
    picture = TrainingCurves(history)
    assert picture.history == history.history
    assert picture.num_epochs == 2
    page = picture.html()
    assert page.count('<polyline class="c') == 4
    assert page.count('role="img"') == 2
    assert f"{history.history['val_mae'][1]:.4g}" in page


def test_equal_numbers():
    page = TrainingCurves({"loss": [2.0, 2.0], "val_loss": [2.0, 2.0]}).html()
    assert "nan" not in page
    assert page.count("<circle") == 4


def test_one_epoch_is_a_table():
    page = TrainingCurves({"loss": [2.0], "val_loss": [2.0]}).html()
    assert "nan" not in page
    assert page.count("<circle") == page.count("<polyline") == 0
    assert page.count('<td class="number">2<') == 2


def test_only_the_table_shows_values_that_are_not_finite():
    page = TrainingCurves({"loss": [2.0, float("nan"), float("inf")]}).html()
    assert page.count("<circle") == 1
    assert '<td class="number">nan</td>' in page
    assert TrainingCurves({"loss": [float("nan")] * 2}).html().count("<circle") == 0


def test_validation_without_training_is_a_chart_of_its_own():
    assert TrainingCurves({"loss": [1.0, 0.5], "val_f1": [0.5, 0.75]}).html().count('role="img"') == 2


def test_wrong_histories():
    with pytest.raises(TypeError, match="`history` must be a History or a dictionary. Received: .*Give what `fit` ret"):
        TrainingCurves([1.0, 2.0])
    for history in ({}, {"loss": []}, {"loss": [1.0], "accuracy": [1.0, 2.0]}):
        with pytest.raises(ValueError, match="`history` must hold one value for each epoch under each name"):
            TrainingCurves(history)


@pytest.mark.parametrize(
    ("values", "high", "low"), [([0.947, 0.03431], "0.947", "0.0343"), ([4e3, 1.23e-5], "4e+03", "1.2e-05")]
)
def test_numbers_at_the_axis_have_room(values, high, low):
    page = TrainingCurves({"loss": values}).html()
    assert re.findall(r'text-anchor="end"[^>]*>([^<]*)<', page) == [high, low]


def test_each_chart_has_a_size_of_its_own():
    rates = LearningRateCurve(finder([1e-5, 1e-4], [0.75, 0.5])).html()
    epochs = TrainingCurves({"loss": [0.7, 0.4]}).html()
    assert ('viewBox="0 0 460 240"' in rates, 'viewBox="0 0 318 210"' in epochs) == (True, True)


def test_probe_curve():
    report = ProbeReport(np.array([0.5, 0.75, 0.7]), np.array([0.25, 0.5, 0.3]), 0.55, 1234, 5)
    page = ProbeCurve(report).html()
    assert "Accuracy in 5 folds" in page
    assert "is right for 55 % of 1,234" in page
    assert page.count("<circle") == 6
    assert re.findall(r'text-anchor="middle"[^>]*>([^<]*)<', page) == ["0", "2", "layer"]
    assert 'aria-label="accuracy: labels from 0.5 to 0.7, control from 0.25 to 0.3"' in page
    assert '<th scope="row">1</th><td class="number">0.750</td><td class="number">0.500</td>' in page
    assert ProbeCurve(report, note="mine").note == "mine"
    with pytest.raises(TypeError, match="`ProbeCurve`: `report` must be a ProbeReport"):
        ProbeCurve([0.5, 0.75])
