"""Several classes per text, or none: how labels are read, what the loss is, and what the answers are."""

import keras
import numpy as np
import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.labels import MultiLabel
from keras_bert_layers.tasks.serving.answers import as_text

NAMES = ["good", "bad", "night"]
LABELS = [["good"], ["bad"], ["night", "good"], ["bad", "night"], ["good"], ["bad"], []]
COLUMNS = np.array([[name in labels for name in NAMES] for labels in LABELS], "float32")
LOGITS = np.random.default_rng(2).normal(0, 2, COLUMNS.shape).astype("float32")
TOLERANCE = 1e-6  # float32 against float64


@pytest.fixture
def labels():
    return MultiLabel(None, NAMES, 0.4)


def objects(rows):
    column = np.empty(len(rows), object)
    column[:] = rows
    return column


def sigmoid(logits):
    return 1 / (1 + np.exp(-np.asarray(logits, "float64")))


@pytest.mark.parametrize(
    "given",
    [
        COLUMNS,
        COLUMNS.astype(int),
        COLUMNS.astype(bool),
        objects(LABELS),
        objects([tuple(names) for names in LABELS]),
        objects([[name.encode() for name in names] for names in LABELS]),
        np.array([[*names, "", ""][:2] for names in LABELS], object),
    ],
    ids=["columns", "integers", "booleans", "lists", "tuples", "bytes", "filled up"],
)
def test_every_kind_of_labels_is_the_same(labels, given):
    encoded = labels.encode(given)
    assert encoded.dtype == np.float32
    np.testing.assert_array_equal(encoded, COLUMNS)
    np.testing.assert_array_equal(labels.encode(encoded), COLUMNS)


def test_texts_without_any_label(labels):
    assert labels.encode(np.array([[], []])).tolist() == [[0, 0, 0]] * 2


@pytest.mark.parametrize("filled", [True, False])
def test_names_in_graph(labels, filled):
    names = tf.ragged.constant(LABELS)
    np.testing.assert_array_equal(labels.encode_in_graph(names.to_tensor("") if filled else names), COLUMNS)


def test_columns_in_graph_stay(labels):
    columns = tf.constant(COLUMNS)
    assert labels.encode_in_graph(columns) is columns


def test_loss_and_f1(labels):
    probabilities = sigmoid(LOGITS)
    loss = -np.where(COLUMNS == 1, np.log(probabilities), np.log1p(-probabilities)).mean()
    assert float(labels.loss()(COLUMNS, LOGITS)) == pytest.approx(loss, abs=TOLERANCE)
    predicted = probabilities > 0.5
    (f1,) = labels.metrics()
    f1.update_state(COLUMNS, LOGITS)
    expected = 2 * (predicted * COLUMNS).sum() / (predicted.sum() + COLUMNS.sum())
    assert (f1.name, float(f1.result())) == ("f1", pytest.approx(expected, abs=TOLERANCE))


@pytest.mark.parametrize("threshold", [0.4, 0.8])
def test_decode_gives_the_labels_above_the_threshold(threshold):
    answers = MultiLabel(None, NAMES, threshold).decode(tf.constant(LOGITS))
    probabilities = sigmoid(LOGITS)
    np.testing.assert_allclose(answers["probabilities"], probabilities, atol=TOLERANCE)
    found = as_text({"label": answers["label"].numpy()})["label"]
    for row, names in zip(probabilities, found, strict=True):
        expected = [NAMES[column] for column in np.argsort(-row) if row[column] > threshold]
        assert [name for name in names if name] == expected


def test_the_threshold_is_a_half_unless_given():
    assert MultiLabel(3, None, None).threshold == 0.5
    labels = MultiLabel(3, None, 0.0)
    assert labels.threshold == 0
    labels.threshold = 0.75
    assert labels.threshold == 0.75
    with pytest.raises(ValueError, match="`threshold` must be at least 0 and less than 1"):
        labels.threshold = 1.5


@pytest.mark.parametrize("names", [None, ["a", "b", "c"]])
def test_answers_as_a_user_gives_labels(names):
    labels = MultiLabel(3, names, None)
    answers = np.array([["2", "0", ""], ["1", "", ""]] if names is None else [["c", "a", ""], ["b", "", ""]], object)
    expected = [[2, 0], [1]] if names is None else [["c", "a"], ["b"]]
    assert labels.as_given(answers) == expected
    assert labels.as_given(answers[0, :2]) == expected[0]
    assert labels.as_given(answers[:, :0]) == [[], []]


def test_any_loss_and_metric_take_the_columns(labels):
    columns = keras.ops.array(COLUMNS)
    assert labels.for_loss(columns, LOGITS, labels.loss()) is columns
    assert labels.for_metrics(columns, LOGITS, labels.metrics()) is columns


class TestErrors:
    def test_unknown_name(self, labels):
        with pytest.raises(ValueError, match=r"one of \['good', 'bad', 'night'\]. Received: 'day' in row 1"):
            labels.encode(objects([["good"], ["bad", "day"]]))

    def test_unknown_name_in_graph(self, labels):
        with pytest.raises(tf.errors.InvalidArgumentError, match="every label must be one of"):
            labels.encode_in_graph(tf.ragged.constant([["day"], ["good"]]))

    def test_one_name_for_a_text(self, labels):
        with pytest.raises(TypeError, match="the labels of a text must be a list. Received: 'good' in row 0"):
            labels.encode(np.array(["good"], object))
        with pytest.raises(ValueError, match=r"`y` must be \(batch, labels\), or ragged where it holds names"):
            labels.encode_in_graph(tf.constant(["good"]))

    @pytest.mark.parametrize("given", [np.array([0, 2]), np.array([[0, 1], [1, 0]]), objects([[0], [1, 2]])])
    def test_numbers_of_classes(self, labels, given):
        with pytest.raises((TypeError, ValueError), match="`BertClassifier`: .*Received: "):
            labels.encode(given)

    def test_names_without_class_names(self):
        with pytest.raises(ValueError, match="labels must be integers where no class names are known"):
            MultiLabel(3, None, None).encode(objects([["good"], []]))

    @pytest.mark.parametrize("value", [2.0, -1.0, float("nan")])
    def test_columns_out_of_range(self, labels, value):
        with pytest.raises(ValueError, match=r"columns of labels must be between 0 and 1. Received: \[.*\] in row 1"):
            labels.encode(np.array([[0.0, 1.0, 0.0], [0.0, value, 1.0]]))

    def test_class_weight(self, labels):
        with pytest.raises(
            ValueError, match="`class_weight` must be None, as a text with several labels.*sample_weight"
        ):
            labels.class_weight({"good": 2.0})

    @pytest.mark.parametrize("threshold", [1.0, -0.1])
    def test_threshold(self, threshold):
        with pytest.raises(ValueError, match="`threshold` must be at least 0 and less than 1"):
            MultiLabel(3, None, threshold)
