"""One class per text: how labels and class weights are read, what the loss is, and what the answers are."""

import keras
import numpy as np
import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.labels import SingleLabel

NAMES = ["negative", "positive"]
LABELS = [1, 0, 1, 0, 1, 0, 0]
LABEL_NAMES = [NAMES[label] for label in LABELS]
LOGITS = np.array([[0.5, -1.0], [2.0, 3.0], [0.25, 0.0]], "float32")


@pytest.fixture
def labels():
    return SingleLabel(None, NAMES)


@pytest.mark.parametrize(
    "column",
    [
        np.array(LABELS),
        np.array(LABELS, float),
        np.array(LABELS)[:, None],
        np.array(LABEL_NAMES, object),
        np.array(LABEL_NAMES, object)[:, None],
        np.array([name.encode() for name in LABEL_NAMES]),
    ],
    ids=["integers", "floats", "two axes", "names", "names on two axes", "bytes"],
)
def test_every_kind_of_column_is_the_same(labels, column):
    assert labels.encode(column).tolist() == LABELS
    assert labels.encode(labels.encode(column)).tolist() == LABELS


@pytest.mark.parametrize(
    ("columns", "dtype"),
    [(np.eye(2), np.int32), (np.eye(2, dtype=bool), np.int32), (np.array([[0.25, 0.75], [1, 0]]), np.float32)],
    ids=["one-hot", "booleans", "shares"],
)
def test_one_column_per_class(labels, columns, dtype):
    encoded = labels.encode(columns)
    assert encoded.dtype == dtype
    np.testing.assert_array_equal(encoded, columns)


@pytest.mark.parametrize("shape", [(7,), (7, 1)])
def test_names_in_graph(labels, shape):
    encoded = labels.encode_in_graph(tf.reshape(tf.constant(LABEL_NAMES), shape))
    assert (encoded.dtype, encoded.numpy().tolist()) == (tf.int32, LABELS)


def test_integers_in_graph_stay(labels):
    numbers = tf.constant(LABELS)
    assert labels.encode_in_graph(numbers) is numbers


@pytest.mark.parametrize(
    ("class_weight", "expected"),
    [
        ({"negative": 3.0, "positive": 0.5}, {0: 3.0, 1: 0.5}),
        ({0: 3.0, 1: 0.5}, {0: 3.0, 1: 0.5}),
        ({0: 3, "positive": 0.5}, {0: 3.0, 1: 0.5}),
        ({"positive": 0.0}, {0: 1.0, 1: 0.0}),
        ({}, {0: 1.0, 1: 1.0}),
    ],
    ids=["names", "indices", "both", "one left out", "none"],
)
def test_class_weight(labels, class_weight, expected):
    found = labels.class_weight(class_weight)
    assert found == expected
    assert {type(weight) for weight in found.values()} == {float}


@pytest.mark.parametrize("y", [[1, 0, 1, 1], [[0, 1], [1, 0], [0, 1], [0, 1]]], ids=["indices", "one-hot"])
def test_balanced_class_weight(labels, y):
    assert labels.class_weight("balanced", np.array(y)) == {0: 4 / (2 * 1), 1: 4 / (2 * 3)}
    assert labels.class_weight("balanced", np.array([1, 1])) == {0: 1.0, 1: 1.0}  # the first has no text
    for wrong in (("balance", np.array(y)), ("balanced",)):
        with pytest.raises(ValueError, match=r'must be a dictionary, or "balanced" beside labels in `y`.*count the'):
            labels.class_weight(*wrong)


def test_loss_and_metrics(labels):
    y = np.array([1, 1, 0])
    shares = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=-1, keepdims=True)
    expected = -np.log(shares[range(3), y]).mean()
    assert float(labels.loss()(y, LOGITS)) == pytest.approx(expected, abs=1e-6)  # of three float32 values
    (accuracy,) = labels.metrics()
    accuracy.update_state(y, LOGITS)
    assert (accuracy.name, float(accuracy.result())) == ("accuracy", pytest.approx(2 / 3))


def test_labels_fit_the_loss(labels):
    y, one_hot = keras.ops.array([1, 0, 1]), keras.ops.array(np.eye(2, dtype="int32")[[1, 0, 1]])
    for given in (y, one_hot):
        np.testing.assert_array_equal(labels.for_loss(given, LOGITS, labels.loss()), y)
        np.testing.assert_array_equal(
            labels.for_loss(given, LOGITS, keras.losses.CategoricalCrossentropy(from_logits=True)), one_hot
        )
        np.testing.assert_array_equal(labels.for_metrics(given, LOGITS, labels.metrics()), y)
    shares = keras.ops.array([[0.25, 0.75], [1, 0], [0.5, 0.5]])
    np.testing.assert_array_equal(labels.for_metrics(shares, LOGITS, labels.metrics()), [1, 0, 0])
    with pytest.raises(ValueError, match=r'`y` must be class indices under this loss.*loss="categorical_crossentropy"'):
        labels.for_loss(shares, LOGITS, labels.loss())


@pytest.mark.parametrize(("names", "answers"), [(NAMES, [b"negative", b"positive"]), (None, [b"0", b"1"])])
def test_decode(names, answers):
    answer = SingleLabel(2, names).decode(tf.constant(LOGITS))
    assert answer["label"].numpy().tolist() == [answers[column] for column in LOGITS.argmax(axis=-1)]
    np.testing.assert_allclose(answer["probabilities"], keras.ops.softmax(LOGITS), rtol=1e-6)


class TestErrors:
    def test_missing_label(self, labels):
        with pytest.raises(ValueError, match="every label must be an integer, .* Received: nan in row 1"):
            labels.encode(np.array([1.0, float("nan")]))

    @pytest.mark.parametrize("label", [-1, 2])
    def test_label_out_of_range(self, labels, label):
        with pytest.raises(ValueError, match=f"less than num_classes=2. Received: {label} in row 1"):
            labels.encode(np.array([0, label]))

    def test_unknown_name(self, labels):
        with pytest.raises(ValueError, match=r"one of \['negative', 'positive'\]. Received: 'neutral' in row 2"):
            labels.encode(np.array(["positive", "negative", "neutral"], object))

    def test_unknown_name_in_graph(self, labels):
        with pytest.raises(tf.errors.InvalidArgumentError, match="every label must be one of"):
            labels.encode_in_graph(tf.constant(["negative", "neutral"]))

    @pytest.mark.parametrize("lists", [[["negative"], []], [["negative", "positive"]] * 2])
    def test_lists_of_names(self, labels, lists):
        column = np.empty(len(lists), object)
        column[:] = lists
        with pytest.raises(ValueError, match="every label must be one of .* in row 0"):
            labels.encode(column)
        if len({len(names) for names in lists}) == 1:
            with pytest.raises(ValueError, match="every label must be one of .* in row 0"):
                labels.encode(np.array(lists, object))

    def test_names_without_class_names(self):
        with pytest.raises(ValueError, match="labels must be integers where no class names are known"):
            SingleLabel(2, None).encode(np.array(["positive"], object))
        with pytest.raises(ValueError, match="labels must be integers where no class names are known"):
            SingleLabel(2, None).encode_in_graph(tf.constant(["positive"]))

    @pytest.mark.parametrize(
        ("columns", "text"),
        [
            (
                np.ones((4, 3)),
                r"`y` must hold one class per text, or one column .* of 2 classes.*shape \(4, 3\)",
            ),
            (np.array([[1, 0], [1, 1]]), "a sum of 1.* in row 1.*multi_label_classification"),
            (np.array([[1, 0], [0, 1], [-1, 2]]), r"at least 0.* in row 2"),
        ],
        ids=["too many", "two classes", "below 0"],
    )
    def test_columns(self, labels, columns, text):
        with pytest.raises(ValueError, match=f"(?s){text}"):
            labels.encode(columns)

    def test_unknown_class_weight(self, labels):
        with pytest.raises(ValueError, match=r"`class_weight` must have keys among \[0, 1, 'negative', 'positive'\]"):
            labels.class_weight({"neutral": 1.0})


def test_labels_that_count_from_one(labels):
    cure = "Received: 2 in row 1. Labels count from 0: give `y - 1`, or names."
    with pytest.raises(ValueError, match=cure):
        labels.encode(np.array([1, 2, 1]))
    with pytest.raises(ValueError, match=r"Received: 2 in row 1\.$"):
        labels.encode(np.array([0, 2, 1]))
