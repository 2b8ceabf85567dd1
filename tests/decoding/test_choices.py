import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.decoding import decode_choices

LOGITS = np.array([[0.5, -1.0, 9.0], [2.0, 1.0, 3.0], [1.0, 1.0, 1.0]], "float32")
CHOICES = [["left", "right", ""], ["", "up", "down"], ["", "", ""]]


def test_against_numpy():
    answer = decode_choices(LOGITS, CHOICES)
    assert answer["choice"].numpy().tolist() == [b"left", b"down", b""]
    assert answer["choice_index"].numpy().tolist() == [0, 2, -1]
    assert answer["choice_index"].dtype == tf.int32
    expected = np.exp(LOGITS) * [[1, 1, 0], [0, 1, 1], [0, 0, 0]]
    expected[:2] /= expected[:2].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(answer["probabilities"], expected, atol=1e-6)  # one softmax in float32


@pytest.mark.parametrize("shape", [(0, 2), (3, 0), (0, 0)])
def test_nothing_to_choose(shape):
    answer = decode_choices(np.zeros(shape), np.full(shape, "", object))
    assert answer["choice"].numpy().tolist() == [b""] * shape[0]
    assert answer["choice_index"].numpy().tolist() == [-1] * shape[0]
    assert answer["probabilities"].shape == shape


def test_half_precision_gives_float32_probabilities():
    assert decode_choices(tf.cast(LOGITS, tf.bfloat16), CHOICES)["probabilities"].dtype == tf.float32
