"""Metrics of `compile` read logits."""

import keras
import numpy as np
import pytest

from keras_bert_layers import BertClassifier, BertCrossEncoder
from keras_bert_layers.tasks.objectives.metrics import OfSigmoid, metrics_for

BINARY = keras.losses.BinaryCrossentropy(from_logits=True)
SPARSE = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
LOGITS = np.array([[2.0, -1.0, 0.3], [0.4, 0.2, -3.0], [-0.2, 1.5, 0.1], [-2.0, -0.5, 0.45]], "float32")
LABELS = np.array([[1, 0, 1], [0, 1, 0], [0, 1, 1], [0, 1, 0]], "float32")
PROBABILITIES = 1 / (1 + np.exp(-LOGITS))
# The probabilities of the reference are rounded to float32 once more.
ROUNDING = 1e-6
NAMES = "binary_accuracy BinaryAccuracy AUC auc binary_crossentropy bce precision Recall true_positives".split()
NAMES += "TrueNegatives false_positives FalseNegatives binary_io_u BinaryIoU".split()


class Task:
    """Without outputs of one class per row."""

    output: dict = {}  # noqa: RUF012 - never changed


KINDS = [(name, type(keras.metrics.get(name))) for name in NAMES]
KINDS += [(kind, kind) for _, kind in KINDS]
KINDS += [(keras.metrics.binary_accuracy, keras.metrics.BinaryAccuracy)]
KINDS += [(keras.metrics.binary_crossentropy, keras.metrics.BinaryCrossentropy)]


def metrics_on_logits(metrics, loss):
    return metrics_for(Task(), [loss], metrics)


def value(metric, outputs):
    metric.update_state(LABELS, outputs)
    return keras.ops.convert_to_numpy(metric.result())


@pytest.mark.parametrize(("given", "kind"), KINDS)
def test_by_name_it_is_that_of_the_probabilities(given, kind):
    metric = metrics_on_logits(given, BINARY)
    np.testing.assert_allclose(value(metric, LOGITS), value(kind(), PROBABILITIES), atol=ROUNDING)
    if isinstance(given, str):
        assert metric.name == given


@pytest.mark.parametrize("name", ["accuracy", "acc"])
def test_accuracy_of_several_labels_is_that_of_each(name):
    metric = metrics_on_logits({"a": [name]}, BINARY)["a"][0]
    assert metric.name == name
    assert value(metric, LOGITS) == np.mean((LOGITS > 0) == LABELS)
    assert metrics_on_logits(name, SPARSE) == name


def test_cross_entropy_of_classes():
    metric = metrics_on_logits(["sparse_categorical_crossentropy"], SPARSE)[0]
    label = np.array([0])
    metric.update_state(label, LOGITS[:1])
    np.testing.assert_allclose(metric.result(), SPARSE(label, LOGITS[:1]), rtol=ROUNDING)


@pytest.mark.parametrize(
    ("metric", "cure"),
    [
        (
            keras.metrics.SparseCategoricalCrossentropy(),
            r"from_logits=False.*SparseCategoricalCrossentropy\(from_logits=True\)",
        ),
        (keras.metrics.CategoricalCrossentropy(), r"CategoricalCrossentropy\(from_logits=True\)"),
        (keras.metrics.MeanIoU(3), r"MeanIoU\(sparse_y_pred=False\)"),
        (keras.metrics.OneHotIoU(3, [0], sparse_y_pred=True), r"OneHotIoU\(sparse_y_pred=False\)"),
        (keras.metrics.Accuracy(), r'"accuracy"'),
        (keras.metrics.Accuracy, r'"accuracy"'),
        (keras.metrics.binary_focal_crossentropy, r"one of your own that takes logits"),
        ("categorical_focal_crossentropy", r"one of your own that takes logits"),
    ],
)
@pytest.mark.parametrize("loss", [BINARY, SPARSE])
def test_what_reads_probabilities_is_refused(metric, cure, loss):
    with pytest.raises(ValueError, match=f"(?s)`Task`: `metrics` must read logits.*{cure}"):
        metrics_on_logits([metric], loss)


@pytest.mark.parametrize(
    ("metric", "cure"),
    [
        (keras.metrics.AUC(), r"AUC\(from_logits=False\).*keras.metrics.AUC\(from_logits=True\)"),
        (keras.metrics.Precision(), '"accuracy"'),
        ("kl_divergence", '"accuracy"'),
    ],
)
def test_metrics_of_labels_that_the_task_does_not_have_are_refused(metric, cure):
    with pytest.raises(ValueError, match=f"(?s)`Task`: `metrics` must read logits.*{cure}"):
        metrics_on_logits([metric], SPARSE)


@pytest.mark.parametrize(
    "make",
    [
        keras.metrics.AUC,
        keras.metrics.BinaryAccuracy,
        lambda: keras.metrics.BinaryAccuracy(threshold=0.7),
        keras.metrics.BinaryIoU,
        keras.metrics.BinaryCrossentropy,
        keras.metrics.Precision,
        lambda: keras.metrics.Recall([0.0, 0.5]),
        keras.metrics.FalsePositives,
        lambda: keras.metrics.F1Score(threshold=0.5),
        lambda: keras.metrics.FBetaScore(threshold=0.5),
        keras.metrics.F1Score,
        lambda: keras.metrics.Recall(top_k=2),
        lambda: keras.metrics.PrecisionAtRecall(0.5),
        lambda: keras.metrics.SpecificityAtSensitivity(0.5),
        keras.metrics.KLDivergence,
        keras.metrics.Poisson,
    ],
)
def test_an_object_for_probabilities_gets_them(make):
    metric = metrics_on_logits(make(), BINARY)
    assert type(metric) is OfSigmoid
    again = OfSigmoid.from_config(metric.get_config())
    for found in (metric, again):
        np.testing.assert_allclose(value(found, LOGITS), value(make(), PROBABILITIES), rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("given", ["kl_divergence", keras.metrics.poisson, "f1_score"])
def test_a_name_without_an_argument_for_logits(given):
    metric = metrics_on_logits(given, BINARY)
    np.testing.assert_allclose(
        value(metric, LOGITS), value(keras.metrics.get(metric.name), PROBABILITIES), atol=ROUNDING
    )


def test_what_is_right_stays():
    class OfProbabilities(keras.metrics.Precision):
        def update_state(self, y_true, y_pred, sample_weight=None):
            return super().update_state(y_true, keras.ops.sigmoid(y_pred), sample_weight)

    def mine(y_true, y_pred):
        return y_pred

    right = [
        *(
            "mse",
            "top_k_categorical_accuracy",
            "categorical_accuracy",
            "hinge",
            mine,
            OfProbabilities,
            None,
        ),
        keras.metrics.AUC(from_logits=True),
        keras.metrics.BinaryAccuracy(threshold=0.0),
        keras.metrics.BinaryAccuracy(threshold=-1.5),
        keras.metrics.Precision(thresholds=0),
        keras.metrics.MeanIoU(3, sparse_y_pred=False),
        keras.metrics.MeanSquaredError(),
        keras.metrics.TopKCategoricalAccuracy(2),
        OfProbabilities(),
    ]
    assert all(a is b for a, b in zip(metrics_on_logits(right, BINARY), right, strict=True))
    numbers = [keras.metrics.BinaryAccuracy(), "binary_accuracy"]
    assert metrics_on_logits(numbers, keras.losses.MeanSquaredError()) is numbers


def ids(rows):
    shape = (rows, 5)
    token_ids = np.random.default_rng(3).integers(5, 15, shape)
    return {"token_ids": token_ids, "segment_ids": np.zeros(shape, int), "padding_mask": np.ones(shape, int)}


def compiled(task, **options):
    task.compile(optimizer="sgd", run_eagerly=True, **options)
    return task


def test_tasks(new_backbone):
    x = ids(4)
    names = ["accuracy", "binary_accuracy", "AUC", "binary_crossentropy", "precision"]
    several = {"num_classes": 3, "problem_type": "multi_label_classification"}
    task = compiled(BertClassifier(new_backbone(), **several), metrics=names[:2], weighted_metrics=names[2:])
    found = task.test_on_batch(x, LABELS, return_dict=True)
    accuracy = np.mean((np.asarray(task(x)) > 0) == LABELS)
    assert found["accuracy"] == found["binary_accuracy"] == np.float32(accuracy)
    np.testing.assert_allclose(found["binary_crossentropy"], found["loss"], rtol=ROUNDING)
    again = BertClassifier(new_backbone(), **several)
    again.compile_from_config(task.get_compile_config())
    assert again.test_on_batch(x, LABELS, return_dict=True) == pytest.approx(found, rel=ROUNDING)
    with pytest.raises(ValueError, match="`BertClassifier`: `metrics` must read logits"):
        compiled(again, weighted_metrics=[keras.metrics.Accuracy()])


@pytest.mark.parametrize("regression", [False, True])
def test_one_column(regression, new_backbone):
    backbone, x, y = new_backbone(), ids(4), np.array([[1.0], [0.0], [1.0], [0.0]])
    task = BertClassifier(backbone, problem_type="regression") if regression else BertCrossEncoder(backbone)
    found = compiled(task, metrics=["accuracy"]).test_on_batch(x, y, return_dict=True)
    assert found["accuracy"] == np.mean((np.asarray(task(x)) > (0.5 if regression else 0)) == y)
