import pytest

from keras_bert_layers.optimizers import LearningRateFinder
from keras_bert_layers.visualization import LearningRateCurve


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
