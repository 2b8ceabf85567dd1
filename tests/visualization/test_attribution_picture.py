import re

import numpy as np
import pytest

from keras_bert_layers.tasks import Attribution
from keras_bert_layers.visualization import AttributionPicture

SCORES = np.array([0.0, 2.0, -1.0, 0.01, 0.0])
NONE = np.full(5, -1)
FOUND = Attribution(
    "positive",
    ["[CLS]", "good", "bad", "a", "[SEP]"],
    SCORES,
    ["good", "bad", "a"],
    SCORES[1:4],
    NONE,
    NONE,
    1.01,
    1e-5,
    64,
)


def test_marks_have_signs_and_strengths():
    page = AttributionPicture(FOUND).html()
    marks = re.findall(
        r'<mark class="(c\d)" style="[^"]* (\d+)%[^"]*"><bdi[^>]*>(\w+)</bdi>\u00a0<small>([^<]+)<', page
    )
    assert marks == [("c0", "100", "good", "+2.00"), ("c1", "50", "bad", "-1.00")]  # "a" is too weak
    for text in ("positive", "scores add up to +1.010", "difference +1.010", "error 1.0e-05", "64 points", "+0.010"):
        assert text in page


def test_several_texts():
    assert AttributionPicture([FOUND, FOUND]).html().count("<mark") == 4


def test_refusal():
    with pytest.raises(TypeError, match="`AttributionPicture`: `attributions` must be a Attribution"):
        AttributionPicture([FOUND, "good"])
