import numpy as np
import pytest

from keras_bert_layers.tasks import ClassificationError, ClassificationReport
from keras_bert_layers.visualization import ReportPicture


def test_marks_are_of_the_tokens_that_count():
    error = ClassificationError(4, "a b c", "x", "y", 0.75, 0.25, ["a", "b", "c"], [0.5, -0.2, 0.1])
    report = ClassificationReport(["x", "y"], 4, 0.75, np.array([[2, 1], [0, 1]]), {}, [error], 0.5, 9)
    page = ReportPicture(report).html()
    assert page.count("<mark") == 2
    for text in ("75 % of 4 texts", "50 % are longer than 9 tokens", "Row 4: ", "for", "against"):
        assert text in page


def test_refusal():
    with pytest.raises(TypeError, match="`ReportPicture`: `report` must be a ClassificationReport"):
        ReportPicture({})
