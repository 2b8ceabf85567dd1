import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.decoding import decode_labels

LOGITS = np.array([[0.0, 2.0, -1.0], [5.0, -5.0, 5.5]], "float32")


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
