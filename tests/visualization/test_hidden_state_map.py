import re

import numpy as np
import pytest

from keras_bert_layers.visualization import HiddenStateMap

TOLERANCE = 1e-5  # two ways through the same layers in float32


@pytest.fixture
def states(backbone, preprocessor):
    """The hidden states that the backbone itself gives for a text."""
    from keras_bert_layers import BertBackbone

    speaking = BertBackbone(backbone.config, return_hidden_states=True)
    speaking.set_weights(backbone.get_weights())
    return lambda text: [np.asarray(state)[0] for state in speaking(preprocessor([text]))["hidden_states"]]


def plane(vectors):
    """PCA by the eigenvectors of the covariance, in float64, with the sign that the class promises."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    variances, directions = np.linalg.eigh(centred.T @ centred)
    coordinates = centred @ directions[:, [-1, -2]]
    largest = coordinates[np.abs(coordinates).argmax(axis=0), [0, 1]]
    return coordinates * np.sign(largest), variances[[-1, -2]] / variances.sum()


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_tokens_lie_where_pca_puts_them(backbone, preprocessor, states, layer):
    texts = ["good night", "a bad film."]
    picture = HiddenStateMap.from_model(backbone, texts, layer=layer, points="tokens", preprocessor=preprocessor)
    coordinates, shares = plane(np.concatenate([states(text)[layer] for text in texts]))
    assert picture.coordinates == pytest.approx(coordinates, abs=1e-3)  # directions of near variance turn easily
    assert picture.shares == pytest.approx(shares, abs=TOLERANCE)
    assert picture.labels == ["[CLS]", "good", "night", "[SEP]", "[CLS]", "a", "bad", "film", ".", "[SEP]"]
    assert picture.groups == [texts[0]] * 4 + [texts[1]] * 6


def test_a_text_is_the_mean_of_its_tokens(backbone, preprocessor, states):
    texts = ["good night", "a bad film.", "happy"]
    picture = HiddenStateMap.from_model(backbone, texts, preprocessor=preprocessor)
    coordinates, _ = plane(np.stack([states(text)[-1].mean(axis=0) for text in texts]))
    assert picture.coordinates == pytest.approx(coordinates, abs=1e-3)
    assert picture.labels == texts
    assert picture.title == "Texts after layer 2"


def test_one_point_and_equal_points():
    for vectors in ([[3.0, 4.0]], [[3.0, 4.0]] * 3, [[1.0]]):
        picture = HiddenStateMap(["x"] * len(vectors), vectors)
        assert picture.coordinates.tolist() == [[0.0, 0.0]] * len(vectors)
        assert picture.shares.tolist() == [0.0, 0.0]
        assert "nan" not in picture.html()


def test_rounding_is_not_a_difference():
    vectors = np.float32([[3.0, 4.0, 1.0]] * 4) * (1 + 1e-7 * np.arange(4)[:, None])
    assert not HiddenStateMap(list("abcd"), vectors).coordinates.any()


def test_empty_text(backbone, preprocessor):
    assert HiddenStateMap.from_model(backbone, [""], points="tokens", preprocessor=preprocessor).labels[0] == "[CLS]"


def test_labels_cover_neither_points_nor_each_other():
    places = [[0.0, 0.0], [0.1, 0.0], [0.0, 0.2], [9.0, 0.0], [8.9, 0.1], [4.0, 6.0]]
    names = ["first", "second", "third", "x" * 60, "a longer label", "at the top"]
    page = HiddenStateMap(names, places).html().split("<details>")[0]
    labels = re.findall(r'class="token" x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]+)<', page)
    boxes = [(float(x), float(x) + 7.3 * len(name), float(y) - 4) for x, y, name in labels]
    points = [(float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', page)]
    assert labels[3][2] == "x" * 43 + "…"
    assert len(boxes) == len(points) == 6
    for index, (left, right, height) in enumerate(boxes):
        assert 48 <= left < right <= 600
        assert not any(left < x < right and abs(y - height) < 6 for x, y in points)
        for other, end, line in boxes[:index]:
            assert abs(height - line) >= 12 or end <= left or right <= other
        assert abs(points[index][1] - height) < 40, "near its own point"


def test_labels_of_too_many_points_are_drawn_all_the_same():
    page = HiddenStateMap(["name"] * 300, np.linspace(0, 1, 300)[:, None]).html().split("<details>")[0]
    assert page.count('class="token"') == 300


def test_groups_differ_by_shape_too():
    page = HiddenStateMap(list("abcdefg"), np.eye(7), groups=list("tuvwxyz")).html()
    drawing = page.split("<details>")[0]
    points, legend = drawing.split('<g class="legend">', 1)
    assert points.count("<circle") == 2  # the seventh group is drawn as the first
    corners = [
        np.array([corner.split(",") for corner in found.split()], float)
        for found in re.findall('<polygon[^>]*points="([^"]+)"', points)
    ]
    assert len({str((shape - shape[0]).round(1).tolist()) for shape in corners}) == 5
    assert re.findall(r">(\w)</text></g>", '<g class="legend">' + legend) == list("tuvwxyz")
    assert "legend" not in HiddenStateMap(["a", "b"], np.eye(2)).html().split("<main>")[1]


def test_wrong_arguments(backbone, preprocessor):
    with pytest.raises(ValueError, match=r"`vectors` must be finite and \(points, hidden_dim\) of 2 points. Received"):
        HiddenStateMap(["a", "b"], [[1.0, 2.0]])
    with pytest.raises(ValueError, match="must be finite"):
        HiddenStateMap(["a"], [[float("inf")]])
    with pytest.raises(ValueError, match=r"`groups` must be as many as the labels \(1\). Received: groups=2"):
        HiddenStateMap(["a"], [[1.0]], groups=["x", "y"])
    with pytest.raises(ValueError, match="`texts` must be a list of at least one text. Received: texts='film'"):
        HiddenStateMap.from_model(backbone, "film", preprocessor=preprocessor)
    with pytest.raises(ValueError, match=r"`points` must be one of \['texts', 'tokens'\]"):
        HiddenStateMap.from_model(backbone, ["film"], points="words", preprocessor=preprocessor)
    with pytest.raises(ValueError, match="`layer` must be at least -3 and less than 3"):
        HiddenStateMap.from_model(backbone, ["film"], layer=3, preprocessor=preprocessor)


def test_labels_of_the_first_points_only():
    picture = HiddenStateMap(list("abcd"), np.eye(4), num_labels=2)
    drawn, table = picture.html().split("<details>")
    assert [name for name in "abcd" if f">{name}</text>" in drawn] == ["a", "b"]
    assert all(f">{name}</bdi>" in table for name in "abcd")
    assert drawn.count("<circle") == 4
    with pytest.raises(ValueError, match="`HiddenStateMap`: `num_labels` must be"):
        HiddenStateMap(["a"], [[1.0]], num_labels=-1)
