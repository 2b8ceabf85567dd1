"""R-Drop, FGM and gradual unfreezing, beside their formulas in NumPy and with a tape."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax

from keras_bert_layers import BertClassifier, BertQuestionAnswerer
from keras_bert_layers.tasks import AdversarialTraining, GradualUnfreezing, RDrop

TEXTS, LABELS = ["a man", "the dog sang", "good night", "a good dog"], [0, 1, 0, 1]
# A few hundred float32 products, twice.
FLOAT32 = 2e-6
RATE = 0.05


@pytest.fixture
def make(new_backbone, preprocessor):
    def make(num_layers=1):
        task = BertClassifier(new_backbone(num_layers=num_layers), 2, preprocessor=preprocessor)
        task.compile(keras.optimizers.SGD(RATE))
        return task

    return make


def values(task):
    return {weight.path: np.asarray(weight) for weight in task.weights}


def test_loss_of_r_drop():
    random = np.random.default_rng(0)
    logits, again = random.normal(size=(2, 3, 4)).astype("float32")
    callback = RDrop(3.0)
    callback._model = SimpleNamespace()
    callback._model = lambda x, training: again
    plain = lambda x, y, y_pred, sample_weight, training: float(y_pred.sum())  # noqa: E731
    found = callback._changed(plain)(None, None, logits, training=True)
    first, second = (log_softmax(part.astype("float64"), axis=1) for part in (logits, again))
    divergence = [(np.exp(p) * (p - q)).sum(axis=1).mean() for p, q in ((first, second), (second, first))]
    expected = (logits.sum() + again.sum()) / 2 + 3 * sum(divergence) / 2
    assert float(found) == pytest.approx(expected, rel=FLOAT32)
    assert callback._changed(plain)(None, None, logits, training=False) == logits.sum()


def test_without_dropout_r_drop_changes_nothing(make):
    plain, dropped = make(), make()
    for task, callbacks in ((plain, []), (dropped, [RDrop()])):
        task.fit(TEXTS, LABELS, shuffle=False, callbacks=callbacks, verbose=0)
    for path, value in values(plain).items():
        np.testing.assert_allclose(values(dropped)[path], value, atol=FLOAT32)
    assert "compute_loss" not in vars(dropped)


def test_a_step_of_adversarial_training(make, preprocessor):
    task, ids = make(), preprocessor(TEXTS)
    table = task.backbone.get_layer("embedding").token_embedding
    before, loss_of = np.asarray(table), keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def gradients():
        with tf.GradientTape() as tape:
            loss = loss_of(np.array(LABELS), task(ids, training=True))
        return [np.asarray(tf.convert_to_tensor(g)) for g in tape.gradient(loss, task.trainable_weights)]

    first = gradients()
    (own,) = (g for g, weight in zip(first, task.trainable_weights, strict=True) if weight is table)
    table.assign(before + 0.5 * own / np.linalg.norm(own))
    second = gradients()
    table.assign(before)
    pairs = zip(task.trainable_weights, first, second, strict=True)
    expected = {weight.path: np.asarray(weight) - RATE * (one + other) for weight, one, other in pairs}
    task.fit(TEXTS, LABELS, shuffle=False, callbacks=[AdversarialTraining(0.5)], verbose=0)
    for path, value in expected.items():
        np.testing.assert_allclose(values(task)[path], value, atol=FLOAT32)
    assert "train_step" not in vars(task)


def test_blocks_follow_one_epoch_after_the_other(make):
    task, changed = make(num_layers=2), []
    task.backbone.get_layer("encoder_block_1").feed_forward.trainable = False
    before = [values(task)]

    def compare(epoch, logs):
        now = values(task)
        changed.append({path.split("/")[0] for path in now if not np.array_equal(now[path], before[-1][path])})
        before.append(now)

    compared = keras.callbacks.LambdaCallback(on_epoch_end=compare)
    task.fit(TEXTS, LABELS, epochs=4, callbacks=[GradualUnfreezing(), compared], verbose=0)
    head = {"classification_head", "pooler"}
    blocks = [set(), {"encoder_block_1"}, {"encoder_block_0", "encoder_block_1"}]
    assert changed[:3] == [head | part for part in blocks]
    assert changed[3] == head | blocks[2] | {"embedding"}
    trainable = {weight.path for weight in task.weights if not weight.trainable}
    assert trainable == {path for path in before[0] if path.startswith("encoder_block_1/feed_forward/")}


class TestErrors:
    def test_other_models(self, make):
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile(loss="mse")
        for callback in (RDrop(), AdversarialTraining(), GradualUnfreezing()):
            with pytest.raises(TypeError, match="`model` must be a Task"):
                model.fit(np.zeros((2, 1)), np.zeros(2), callbacks=[callback], verbose=0)

    def test_several_outputs(self, new_backbone):
        with pytest.raises(ValueError, match="`model` must return the logits of two classes or more"):
            RDrop().set_model(BertQuestionAnswerer(new_backbone()))

    def test_arguments(self):
        with pytest.raises(ValueError, match="`weight` must be greater than 0"):
            RDrop(0)
        with pytest.raises(ValueError, match="`epsilon` must be greater than 0"):
            AdversarialTraining(-1)
        with pytest.raises(ValueError, match="`blocks_per_epoch` must be at least 1"):
            GradualUnfreezing(0)
