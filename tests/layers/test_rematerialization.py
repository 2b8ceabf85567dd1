"""Gradient checkpointing (`rematerialize`): the same training with and without it."""

import keras
import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertClassifier, BertConfig
from keras_bert_layers.layers import EncoderParts, GatedFeedForward

# The same float32 products, in one graph written twice.
EQUAL = 1e-6
IDS = np.random.default_rng(5).integers(1, 31, (4, 7)).astype("int32")
MASK = (np.arange(7) < np.array([[7], [3], [5], [1]])).astype("int32")
INPUTS = {"token_ids": IDS, "segment_ids": 0 * IDS, "padding_mask": MASK}


def train(*, rematerialize, padding_free, dropout):
    keras.utils.set_random_seed(3)
    values = {"num_layers": 2, "num_heads": 3, "intermediate_dim": 22, "initializer_range": 0.3, "dropout": dropout}
    values |= {"vocabulary_size": 31, "hidden_dim": 12, "max_sequence_length": 9, "attention_dropout": dropout}
    parts = EncoderParts(feed_forward=GatedFeedForward(22, dropout=dropout, initializer_range=0.3))
    model = BertClassifier(BertBackbone(BertConfig(**values), parts=parts), num_classes=3)
    model.backbone.rematerialize = rematerialize
    model.compile(keras.optimizers.SGD(0.1))
    model.backbone.padding_free = padding_free
    losses = [model.train_on_batch(INPUTS, np.array([0, 2, 1, 0]))[0] for _ in range(3)]
    return np.array(losses), [np.asarray(weight) for weight in model.trainable_weights]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dropout", "padding_free"),
    [(0.3, True), (0.3, False), (0.0, True), (0.0, False)],
)
def test_training_is_the_same(dropout, padding_free):
    plain = train(rematerialize=False, padding_free=padding_free, dropout=dropout)
    again = train(rematerialize=True, padding_free=padding_free, dropout=dropout)
    np.testing.assert_allclose(again[0], plain[0], atol=EQUAL)
    assert abs(again[0][0] - again[0][1]) > 1e-3
    for ours, theirs in zip(again[1], plain[1], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=EQUAL)


def test_bad_value():
    backbone = BertBackbone(BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=8))
    assert not backbone.rematerialize
    with pytest.raises(TypeError, match=r"`BertBackbone`: `rematerialize` must be True or False"):
        backbone.rematerialize = "yes"
