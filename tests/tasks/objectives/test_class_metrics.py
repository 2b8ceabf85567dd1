"""One-hot labels, and Keras's metrics of probabilities, on a classifier of one class a text."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers import BertClassifier, BertMultipleChoice
from keras_bert_layers.metrics import MatthewsCorrelation
from keras_bert_layers.tasks.objectives.metrics import OfClasses, metrics_for, take_indices

ROUNDING = 1e-5  # float32 sums in another order, and thresholds of probabilities and logits
LOGITS = np.random.default_rng(3).normal(0, 2, (40, 3)).astype("float32")
LABELS = np.random.default_rng(4).integers(0, 3, 40)
TEXTS = ["a good film", "bad night", "good !", "unhappy"]


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)


def metrics_of_classes(metrics):
    task = SimpleNamespace(output=np.zeros((1, 3)))
    return metrics_for(task, [keras.losses.SparseCategoricalCrossentropy(from_logits=True)], metrics)


def value(metric, labels, outputs):
    metric.update_state(labels, outputs)
    return np.asarray(metric.result())


MADE = [
    keras.metrics.AUC,
    lambda: keras.metrics.AUC(multi_label=True, num_labels=3),
    lambda: keras.metrics.Precision(class_id=1),
    lambda: keras.metrics.Recall(0.3),
    lambda: keras.metrics.PrecisionAtRecall(0.5),
    lambda: keras.metrics.F1Score("macro"),
    keras.metrics.CategoricalCrossentropy,
    keras.metrics.CategoricalAccuracy,
    lambda: keras.metrics.TopKCategoricalAccuracy(2),
]


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("make", MADE)
def test_a_metric_gets_one_hot_labels_and_probabilities(make, columns):
    one_hot = np.eye(3, dtype="float32")[LABELS]
    expected = value(make(), one_hot, softmax(LOGITS))
    found = value(metrics_of_classes(make()), one_hot if columns else LABELS, LOGITS)
    np.testing.assert_allclose(found, expected, atol=ROUNDING)


@pytest.mark.parametrize("make", [keras.metrics.AUC, keras.metrics.Precision, keras.metrics.BinaryAccuracy])
def test_of_two_classes_the_second_is_the_positive_one(make):
    labels, logits = LABELS % 2, LOGITS[:, :2]
    expected = value(make(), labels.astype("float32"), softmax(logits)[:, 1])
    np.testing.assert_allclose(value(metrics_of_classes(make()), labels, logits), expected, atol=ROUNDING)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    ("for_logits", "for_probabilities"),
    [
        (lambda: keras.metrics.Precision(thresholds=0), keras.metrics.Precision),
        (lambda: keras.metrics.BinaryCrossentropy(from_logits=True), keras.metrics.BinaryCrossentropy),
        (lambda: keras.metrics.AUC(from_logits=True), keras.metrics.AUC),
        (
            lambda: keras.metrics.CategoricalCrossentropy(from_logits=True),
            keras.metrics.CategoricalCrossentropy,
        ),
    ],
)
def test_a_metric_made_for_logits_gives_the_same(for_logits, for_probabilities, classes):
    labels, logits = LABELS % classes, LOGITS[:, :classes]
    found, expected = (value(metrics_of_classes(make()), labels, logits) for make in (for_logits, for_probabilities))
    np.testing.assert_allclose(found, expected, atol=ROUNDING)


def test_names_classes_and_functions():
    found = metrics_of_classes({"a": ["AUC", "categorical_accuracy", keras.metrics.Recall, "mse", "acc"]})
    assert [metric.name.split("_")[0] for metric in found["a"]] == ["AUC", "categorical", "recall", "mse", "acc"]
    assert [type(metric) for metric in found["a"]] == [OfClasses] * 4 + [keras.metrics.SparseCategoricalAccuracy]
    others = [MatthewsCorrelation(3), keras.metrics.SparseTopKCategoricalAccuracy(2), None, len]
    assert all(a is b for a, b in zip(metrics_of_classes(others), others, strict=True))
    assert [take_indices([metric]) for metric in others] == [True, True, False, False]
    assert not take_indices(found["a"][:4])


def test_config():
    metric = OfClasses(keras.metrics.Precision(class_id=1, name="p"))
    again = OfClasses.from_config(metric.get_config())
    assert again.get_config() == metric.get_config()
    assert (again.name, again.metric.class_id) == ("p", 1)
    value(metric, LABELS, LOGITS)
    metric.reset_state()
    assert float(metric.result()) == 0


@pytest.fixture
def make(new_backbone, preprocessor):
    def make(num_classes=3, **options):
        task = BertClassifier(new_backbone(), num_classes, preprocessor=preprocessor)
        task.compile("sgd", run_eagerly=True, **options)
        return task

    return make


@pytest.mark.parametrize("loss", ["auto", "categorical_crossentropy", keras.losses.CategoricalCrossentropy(True)])
def test_one_hot_labels_and_indices_give_the_same(make, loss):
    task = make(loss=loss, metrics=["accuracy", keras.metrics.AUC(), MatthewsCorrelation(3)])
    indices = np.array([0, 2, 1, 1])
    expected = task.test_on_batch(TEXTS, indices, return_dict=True)
    for rows in (np.eye(3), np.eye(3, dtype="int32"), np.eye(3, dtype=bool)):
        assert task.test_on_batch(TEXTS, rows[indices], return_dict=True) == pytest.approx(expected, rel=ROUNDING)
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, np.eye(3, dtype="int32")[indices])).batch(2)
    assert task.evaluate(dataset, verbose=0, return_dict=True) == pytest.approx(expected, rel=ROUNDING)
    ids, _, _ = task.pipeline.one_batch(TEXTS)
    assert task.test_on_batch(ids, np.eye(3, dtype="int32")[indices], return_dict=True) == pytest.approx(
        expected, rel=ROUNDING
    )


def test_shares_of_classes(make):
    task = make(loss="categorical_crossentropy")
    shares = softmax(LOGITS[:4])
    found = task.test_on_batch(TEXTS, shares, return_dict=True)
    probabilities = softmax(task.predict(TEXTS, verbose=0))
    assert found["loss"] == pytest.approx(-(shares * np.log(probabilities)).sum(axis=1).mean(), rel=ROUNDING)
    assert found["accuracy"] == (shares.argmax(axis=1) == probabilities.argmax(axis=1)).mean()
    with pytest.raises(ValueError, match=r'`y` must be class indices under this loss.*loss="categorical_crossentropy"'):
        make().test_on_batch(TEXTS, shares)


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (np.ones((4, 2)), r"`y` must hold one class per text, or one column for each of 3 classes.*shape \(4, 2\)"),
        ([[1, 0, 0], [0, 1, 1], [0, 0, 1], [1, 0, 0]], "a sum of 1.* in row 1.*multi_label_classification"),
        ([[1, 0, 0], [0, 1, 0], [0, -1, 2], [1, 0, 0]], r"at least 0.* in row 2"),
    ],
)
def test_wrong_columns(make, labels, text):
    with pytest.raises(ValueError, match=f"(?s){text}"):
        make().test_on_batch(TEXTS, labels)


def test_a_compiled_task_is_saved_and_loaded(make, tmp_path):
    task = make(metrics=[keras.metrics.AUC(), "accuracy"])
    task.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    again.run_eagerly = True
    expected = task.test_on_batch(TEXTS, [0, 1, 2, 0], return_dict=True)
    assert again.test_on_batch(TEXTS, [0, 1, 2, 0], return_dict=True) == pytest.approx(expected, rel=ROUNDING)


def test_choices(new_backbone, preprocessor):
    chooser = BertMultipleChoice(new_backbone(), preprocessor=preprocessor)
    chooser.compile("sgd", metrics=[keras.metrics.AUC(), "top_k_categorical_accuracy"], run_eagerly=True)
    found = chooser.test_on_batch((["a", "good"], [["bad", "film"], ["night", "!", "a"]]), [0, 2], return_dict=True)
    assert found["top_k_categorical_accuracy"] == 1
