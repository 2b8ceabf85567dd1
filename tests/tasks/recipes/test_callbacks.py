"""R-Drop, FGM and gradual unfreezing, beside their formulas in NumPy and with a tape."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax

from keras_bert_layers import BertClassifier, BertQuestionAnswerer, BertSentenceEncoder, BertTokenClassifier
from keras_bert_layers.optimizers import adamw
from keras_bert_layers.tasks import AdversarialTraining, GradualUnfreezing, RDrop

TEXTS, LABELS = ["a man", "the dog sang", "good night", "a good dog"], [0, 1, 0, 1]
# A few hundred float32 products, twice.
FLOAT32 = 2e-6
RATE = 0.05
# Adam's epsilon beside small gradients, and the difference of two float32 weights.
FIRST_STEP = 1e-3


@pytest.fixture
def make(new_backbone, preprocessor):
    def make(num_layers=1):
        task = BertClassifier(new_backbone(num_layers=num_layers), 2, preprocessor=preprocessor)
        task.compile(keras.optimizers.SGD(RATE))
        return task

    return make


def values(task):
    return {weight.path: np.asarray(weight) for weight in task.weights}


def r_drop_loss(task, y_pred, again, **options):
    """The loss of R-Drop on given logits of both passes; the plain loss is the sum of the logits."""
    callback = RDrop(3.0)
    callback.set_model(task)
    callback._model = lambda x, training: again
    plain = lambda x, y, y_pred, sample_weight, training: float(y_pred.sum())  # noqa: E731
    return float(callback._changed(plain)(options.pop("x", None), None, y_pred, **options))


def divergence(first, second):
    """Kullback and Leibler's divergence of each row, half of both directions."""
    first, second = (log_softmax(part.astype("float64"), axis=-1) for part in (first, second))
    return sum((np.exp(p) * (p - q)).sum(axis=-1) for p, q in ((first, second), (second, first))) / 2


def test_loss_of_r_drop(make):
    logits, again = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    expected = (logits.sum() + again.sum()) / 2 + 3 * divergence(logits, again).mean()
    assert r_drop_loss(make(), logits, again) == pytest.approx(expected, rel=FLOAT32)
    assert r_drop_loss(make(), logits, again, training=False) == logits.sum()


def test_r_drop_of_several_labels_is_that_of_each_label_alone(new_backbone):
    task = BertClassifier(new_backbone(), 4, problem_type="multi_label_classification")
    logits, again = np.random.default_rng(1).normal(size=(2, 3, 4)).astype("float32")
    of_each = divergence(*(np.stack([part, np.zeros_like(part)], axis=-1) for part in (logits, again)))
    expected = (logits.sum() + again.sum()) / 2 + 3 * of_each.mean()
    assert r_drop_loss(task, logits, again) == pytest.approx(expected, rel=FLOAT32)


@pytest.mark.parametrize("counted_by", ["padding_mask", "sample_weight"])
def test_r_drop_leaves_out_positions_that_do_not_count(new_backbone, counted_by):
    task = BertTokenClassifier(new_backbone(), ["O", "B-X", "I-X"])
    logits, again = np.random.default_rng(2).normal(size=(2, 2, 5, 3)).astype("float32")
    counted = np.array([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0]])
    expected = (logits.sum() + again.sum()) / 2 + 3 * divergence(logits, again)[counted == 1].mean()
    of_words = {"x": {"padding_mask": counted}, "sample_weight": np.ones(2)}
    options = of_words if counted_by == "padding_mask" else {"sample_weight": counted}
    assert r_drop_loss(task, logits, again, **options) == pytest.approx(expected, rel=FLOAT32)


def test_without_dropout_r_drop_changes_nothing(make, eagerly):
    plain, dropped = make(), make()
    dropped.fit(TEXTS, LABELS, shuffle=False, callbacks=[RDrop()], verbose=0)
    with eagerly():
        plain.fit(TEXTS, LABELS, shuffle=False, verbose=0)
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


@pytest.mark.usefixtures("traces_nothing")
def test_adversarial_training_moves_a_frozen_embedding(make, preprocessor):
    task, ids = make(), preprocessor(TEXTS)
    table, loss_of = task.backbone.get_layer("embedding").token_embedding, task.default_loss()
    before = values(task)

    def loss_and_gradients():
        with tf.GradientTape() as tape:
            loss = loss_of(np.array(LABELS), task(ids, training=True))
        return float(loss), [np.asarray(tf.convert_to_tensor(g)) for g in tape.gradient(loss, [*weights, table])]

    weights = [weight for weight in task.trainable_weights if not weight.path.startswith(("embedding", "encoder"))]
    first_loss, first = loss_and_gradients()
    table.assign(before[table.path] + first[-1] / np.linalg.norm(first[-1]))
    moved_loss, second = loss_and_gradients()
    table.assign(before[table.path])
    assert moved_loss > first_loss
    task.fit(TEXTS, LABELS, shuffle=False, callbacks=[AdversarialTraining(), GradualUnfreezing()], verbose=0)
    pairs = zip(weights, first, second, strict=False)
    expected = before | {weight.path: before[weight.path] - RATE * (one + other) for weight, one, other in pairs}
    for path, value in expected.items():
        np.testing.assert_allclose(values(task)[path], value, atol=FLOAT32)


@pytest.mark.usefixtures("traces_nothing")
def test_blocks_follow_one_epoch_after_the_other(make):
    task, changed, functions = make(num_layers=2), [], []
    task.backbone.get_layer("encoder_block_1").feed_forward.trainable = False
    before = [values(task)]

    def compare(epoch, logs):
        now = values(task)
        changed.append({path.split("/")[0] for path in now if not np.array_equal(now[path], before[-1][path])})
        before.append(now)
        functions.append(task.train_function)

    compared = keras.callbacks.LambdaCallback(on_epoch_end=compare)
    task.fit(TEXTS, LABELS, epochs=5, callbacks=[GradualUnfreezing(), compared], verbose=0)
    head = {"classification_head", "pooler"}
    blocks = [set(), {"encoder_block_1"}, {"encoder_block_0", "encoder_block_1"}]
    assert changed[:3] == [head | part for part in blocks]
    assert changed[3] == changed[4] == head | blocks[2] | {"embedding"}
    assert functions[2] is not functions[3]
    assert functions[3] is functions[4]  # nothing is traced anew
    trainable = {weight.path for weight in task.weights if not weight.trainable}
    assert trainable == {path for path in before[0] if path.startswith("encoder_block_1/feed_forward/")}


def test_bias_correction_begins_where_a_block_opens(make):
    """In graph, where a step of the epoch before would not train the block."""
    task, steps = make(), []
    task.compile(adamw(RATE, weight_decay=0.0, clip_norm=None))
    weight = task.backbone.get_layer("encoder_block_0").feed_forward.weights[0]
    note = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: steps.append(np.asarray(weight)))
    task.fit(TEXTS, LABELS, epochs=2, callbacks=[GradualUnfreezing(), note], verbose=0)
    # With its bias corrected, Adam's first step of every weight is as long as the rate.
    np.testing.assert_allclose(np.median(np.abs(steps[1] - steps[0])), RATE, rtol=FIRST_STEP)


class TestErrors:
    def test_other_models(self, make):
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile(loss="mse")
        for callback in (RDrop(), AdversarialTraining(), GradualUnfreezing()):
            with pytest.raises(TypeError, match="`model` must be a Task"):
                model.fit(np.zeros((2, 1)), np.zeros(2), callbacks=[callback], verbose=0)

    def test_outputs_that_are_not_classes(self, new_backbone):
        regression = BertClassifier(new_backbone(), 2, problem_type="regression")
        for task in (BertQuestionAnswerer(new_backbone()), BertSentenceEncoder(new_backbone()), regression):
            with pytest.raises(ValueError, match="`model` must return the logits of classes, all in one output"):
                RDrop().set_model(task)

    def test_arguments(self):
        with pytest.raises(ValueError, match="`weight` must be greater than 0"):
            RDrop(0)
        with pytest.raises(ValueError, match="`epsilon` must be greater than 0"):
            AdversarialTraining(-1)
        with pytest.raises(ValueError, match="`blocks_per_epoch` must be at least 1"):
            GradualUnfreezing(0)

    @pytest.mark.parametrize("callback", [AdversarialTraining, GradualUnfreezing])
    def test_jax(self, callback, monkeypatch):
        monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
        with pytest.raises(RuntimeError, match="Keras must run on the TensorFlow .*backend.* KERAS_BACKEND='jax'"):
            callback()
