import numpy as np
import pytest

from keras_bert_layers.visualization import ReliabilityDiagram


def test_bins_and_error():
    picture = ReliabilityDiagram([1.0, 0.95, 0.55, 0.0], [True, False, True, False], num_bins=2)
    np.testing.assert_array_equal(picture.counts, [1, 3])
    np.testing.assert_allclose(picture.shares, [0, 2 / 3])
    np.testing.assert_allclose(picture.probabilities, [0, 2.5 / 3])
    assert picture.error == pytest.approx(0.5 / 4)
    page = picture.html()
    assert "Expected calibration error: 12 % of 4 predictions." in page
    assert "67 % right at 83 %" in page


class TestErrors:
    @pytest.mark.parametrize("probabilities", [[], [1.5], [np.nan], [[0.5]]])
    def test_probabilities(self, probabilities):
        with pytest.raises(ValueError, match="`probabilities` must hold at least one probability, each between 0 and"):
            ReliabilityDiagram(probabilities, [True])

    def test_lengths(self):
        with pytest.raises(ValueError, match="`right` must have one entry for each probability"):
            ReliabilityDiagram([0.5, 0.7], [True])

    def test_model(self):
        with pytest.raises(TypeError, match="`model` must be a BertClassifier"):
            ReliabilityDiagram.from_model(None, [], [])
