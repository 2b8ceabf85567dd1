import re

import numpy as np
import pytest

from keras_bert_layers.visualization import InputPicture

TOLERANCE = 1e-5  # two ways through the same layers in float32


def heights(points):
    """The heights of the corners of a polygon."""
    return np.array([float(point.split(",")[1]) for point in points.split()])


def test_sum_is_what_the_embedding_normalises(backbone, preprocessor):
    picture = InputPicture.from_model(backbone, "good", "unhappy film", preprocessor=preprocessor)
    assert picture.tokens == ["[CLS]", "good", "[SEP]", "un", "##happy", "film", "[SEP]"]
    assert picture.segments == [0, 0, 0, 1, 1, 1, 1]
    embedding = backbone.get_layer("embedding")
    inputs = preprocessor((["good"], ["unhappy film"]))
    hidden = embedding(inputs["token_ids"], inputs["segment_ids"])[0]
    normalised = np.asarray(embedding.layer_norm(picture.sum))
    assert normalised == pytest.approx(np.asarray(hidden), abs=TOLERANCE)
    assert picture.vectors["position"] == pytest.approx(np.asarray(embedding.position_embedding)[:7])


def test_cells_name_what_was_looked_up():
    vectors = {name: np.full((3, 2), size) for name, size in (("token", 3.0), ("segment", 0.0), ("position", -3.0))}
    page = InputPicture(["a", "b", "c"], [0, 1, 26], vectors).html()
    for label in ("b", "A", "B", "26", "2"):
        assert f'E<sub><bdi dir="ltr" translate="no">{label}</bdi></sub>' in page
    assert page.count("length 4.24") == 6
    assert page.count("length 0.00") == 6
    strips = re.findall(r'<polygon class="(c.)" points="([^"]*)"', page)
    negative = [heights(points).tolist() for style, points in strips if style == "c1"]
    assert negative == [[]] * 6 + [[14.0, 28.0, 28.0, 14.0] * 2] * 3 + [[]] * 3  # of 28 pixels
    positive = [heights(points).tolist() for style, points in strips if style == "c0"]
    assert positive[:3] == [[14.0, 0.0, 0.0, 14.0] * 2] * 3


def test_vectors_of_nothing_but_zeros_are_drawn():
    zeros = dict.fromkeys(("token", "segment", "position"), np.zeros((1, 20)))
    page = InputPicture(["a"], [0], zeros).html()
    assert "nan" not in page
    assert [len(heights(points)) for points in re.findall(r'points="([^"]+,[^"]+)"></polygon>', page)] == [4 * 12] * 4


def test_wrong_shapes():
    vectors = dict.fromkeys(("token", "segment", "position"), np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"`vectors` must be \(tokens, embedding_dim\) of 1 tokens, with as many segm"):
        InputPicture(["a"], [0], vectors)
    with pytest.raises(ValueError, match="with as many segments. Received"):
        InputPicture(["a", "b"], [0], vectors)
    with pytest.raises(ValueError, match=r"Received: vectors=\[\(2, 3\), \(2, 3\), \(2, 4\)\]"):
        InputPicture(["a", "b"], [0, 0], {**vectors, "position": np.zeros((2, 4))})
