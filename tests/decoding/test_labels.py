import numpy as np
import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.decoding import decode_choices, decode_label_sets, decode_labels

LOGITS = np.array([[0.0, 2.0, -1.0], [5.0, -5.0, 5.5]], "float32")
NAMES = ["funny", "sad", "long"]
SET_LOGITS = np.array([[0.5, -1.0, 2.0], [-1.0, -2.0, -3.0], [-0.5, 3.0, -9.0], [0.0, 1.0, 0.2]], "float32")
CHOICE_LOGITS = np.array([[0.5, -1.0, 9.0], [2.0, 1.0, 3.0], [1.0, 1.0, 1.0]], "float32")
CHOICES = [["left", "right", ""], ["", "up", "down"], ["", "", ""]]


def test_against_numpy():
    answer = decode_labels(LOGITS, ["bad", "good", "so-so"])
    exponentials = np.exp(LOGITS - LOGITS.max(axis=1, keepdims=True))
    np.testing.assert_allclose(
        answer["probabilities"], exponentials / exponentials.sum(axis=1, keepdims=True), atol=1e-6
    )
    assert answer["label"].numpy().tolist() == [b"good", b"so-so"]


def test_half_precision_gives_float32_probabilities():
    assert decode_labels(tf.cast(LOGITS, tf.bfloat16), ["a", "b", "c"])["probabilities"].dtype == tf.float32


def test_names():
    with pytest.raises(ValueError, match="one name for each of the 3 classes. Received: 2 names"):
        decode_labels(LOGITS, ["a", "b"])


def test_sets_against_numpy():
    answer = decode_label_sets(SET_LOGITS, NAMES)
    np.testing.assert_allclose(answer["probabilities"], 1 / (1 + np.exp(-SET_LOGITS)), atol=1e-6)  # one float32 sigmoid
    assert answer["label"].numpy().tolist() == [[b"long", b"funny"], [b"", b""], [b"sad", b""], [b"sad", b"long"]]


@pytest.mark.parametrize(("threshold", "widest"), [(0.0, 3), (0.9, 1), (0.99, 0)])
def test_sets_above_a_threshold(threshold, widest):
    labels = decode_label_sets(SET_LOGITS, NAMES, threshold=threshold)["label"].numpy()
    assert labels.shape == (4, widest)
    assert [sum(label != b"" for label in row) for row in labels] == (1 / (1 + np.exp(-SET_LOGITS)) > threshold).sum(
        axis=1
    ).tolist()


def test_no_rows_have_no_sets():
    answer = decode_label_sets(np.zeros((0, 3)), NAMES)
    assert (answer["label"].shape, answer["probabilities"].shape) == ((0, 0), (0, 3))


def test_sets_of_half_precision_gives_float32_probabilities():
    assert decode_label_sets(tf.cast(SET_LOGITS, tf.bfloat16), NAMES)["probabilities"].dtype == tf.float32


def test_names_of_sets():
    with pytest.raises(ValueError, match="`decode_label_sets`: `class_names` must have one name for each of the 3"):
        decode_label_sets(SET_LOGITS, NAMES[:2])


def test_choices_against_numpy():
    answer = decode_choices(CHOICE_LOGITS, CHOICES)
    assert answer["choice"].numpy().tolist() == [b"left", b"down", b""]
    assert answer["choice_index"].numpy().tolist() == [0, 2, -1]
    assert answer["choice_index"].dtype == tf.int32
    expected = np.exp(CHOICE_LOGITS) * [[1, 1, 0], [0, 1, 1], [0, 0, 0]]
    expected[:2] /= expected[:2].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(answer["probabilities"], expected, atol=1e-6)  # one softmax in float32


@pytest.mark.parametrize("shape", [(0, 2), (3, 0), (0, 0)])
def test_nothing_to_choose(shape):
    answer = decode_choices(np.zeros(shape), np.full(shape, "", object))
    assert answer["choice"].numpy().tolist() == [b""] * shape[0]
    assert answer["choice_index"].numpy().tolist() == [-1] * shape[0]
    assert answer["probabilities"].shape == shape


def test_choices_in_half_precision_give_float32_probabilities():
    assert decode_choices(tf.cast(CHOICE_LOGITS, tf.bfloat16), CHOICES)["probabilities"].dtype == tf.float32
