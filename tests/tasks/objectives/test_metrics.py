"""Metrics of `compile` read logits."""

import keras
import numpy as np
import pytest

from keras_bert_layers import BertClassifier, BertCrossEncoder
from keras_bert_layers.tasks.objectives.metrics import metrics_on_logits

BINARY = keras.losses.BinaryCrossentropy(from_logits=True)
SPARSE = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
LOGITS = np.array([[2.0, -1.0, 0.3], [0.4, 0.2, -3.0], [-0.2, 1.5, 0.1], [-2.0, -0.5, 0.45]], "float32")
LABELS = np.array([[1, 0, 1], [0, 1, 0], [0, 1, 1], [0, 1, 0]], "float32")
PROBABILITIES = 1 / (1 + np.exp(-LOGITS))
# The probabilities of the reference are rounded to float32 once more.
ROUNDING = 1e-6
NAMES = "binary_accuracy BinaryAccuracy AUC auc binary_crossentropy bce precision Recall true_positives".split()
NAMES += "TrueNegatives false_positives FalseNegatives binary_io_u BinaryIoU".split()


KINDS = [(name, type(keras.metrics.get(name))) for name in NAMES]
KINDS += [(kind, kind) for _, kind in KINDS]
KINDS += [(keras.metrics.binary_accuracy, keras.metrics.BinaryAccuracy)]
KINDS += [(keras.metrics.binary_crossentropy, keras.metrics.BinaryCrossentropy)]


def value(metric, outputs):
    metric.update_state(LABELS, outputs)
    return keras.ops.convert_to_numpy(metric.result())


@pytest.mark.parametrize(("given", "kind"), KINDS)
def test_by_name_it_is_that_of_the_probabilities(given, kind):
    metric = metrics_on_logits("Task", given, BINARY)
    np.testing.assert_allclose(value(metric, LOGITS), value(kind(), PROBABILITIES), atol=ROUNDING)
    if isinstance(given, str):
        assert metric.name == given


@pytest.mark.parametrize("name", ["accuracy", "acc"])
def test_accuracy_of_several_labels_is_that_of_each(name):
    metric = metrics_on_logits("Task", {"a": [name]}, BINARY)["a"][0]
    assert metric.name == name
    assert value(metric, LOGITS) == np.mean((LOGITS > 0) == LABELS)
    assert metrics_on_logits("Task", name, SPARSE) == name


def test_cross_entropy_of_classes():
    metric = metrics_on_logits("Task", ["sparse_categorical_crossentropy"], SPARSE)[0]
    label = np.array([0])
    metric.update_state(label, LOGITS[:1])
    np.testing.assert_allclose(metric.result(), SPARSE(label, LOGITS[:1]), rtol=ROUNDING)


@pytest.mark.parametrize(
    ("metric", "cure"),
    [
        (keras.metrics.AUC(), r"AUC\(from_logits=False\).*keras.metrics.AUC\(from_logits=True\)"),
        (keras.metrics.BinaryAccuracy(), r"BinaryAccuracy\(threshold=0.5\).*BinaryAccuracy\(threshold=0.0\)"),
        (keras.metrics.BinaryAccuracy(threshold=0.7), r"BinaryAccuracy\(threshold=0.0\)"),
        (keras.metrics.BinaryIoU(), r"BinaryIoU\(threshold=0.0\)"),
        (keras.metrics.BinaryCrossentropy(), r"BinaryCrossentropy\(from_logits=True\)"),
        (keras.metrics.SparseCategoricalCrossentropy(), r"from_logits=True"),
        (keras.metrics.Precision(), r"Precision\(thresholds=None\).*Precision\(thresholds=0.0\)"),
        (keras.metrics.Recall([0.0, 0.5]), r"Recall\(thresholds=0.0\)"),
        (keras.metrics.FalsePositives(), r"thresholds=0.0"),
        (keras.metrics.F1Score(threshold=0.5), r"keras_bert_layers.metrics.F1Score"),
        (keras.metrics.FBetaScore(threshold=0.5), r"sigmoid"),
        (keras.metrics.MeanIoU(3), r"MeanIoU\(sparse_y_pred=False\)"),
        (keras.metrics.PrecisionAtRecall(0.5), r"sigmoid"),
        (keras.metrics.SpecificityAtSensitivity(0.5), r"sigmoid"),
        ("precision_at_recall", r"sigmoid"),
        ("kl_divergence", r"sigmoid"),
        (keras.metrics.poisson, r"sigmoid"),
        (keras.metrics.Accuracy(), r'Write "accuracy"'),
        (keras.metrics.binary_focal_crossentropy, r"from_logits=True"),
    ],
)
def test_what_reads_probabilities_is_refused(metric, cure):
    with pytest.raises(ValueError, match=f"(?s)`Task`: `metrics` must read logits.*{cure}"):
        metrics_on_logits("Task", [metric], BINARY)


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
            "f1_score",
            "hinge",
            mine,
            OfProbabilities,
            None,
        ),
        keras.metrics.AUC(from_logits=True),
        keras.metrics.BinaryAccuracy(threshold=0.0),
        keras.metrics.BinaryAccuracy(threshold=-1.5),
        keras.metrics.Precision(thresholds=0),
        keras.metrics.Recall(top_k=2),
        keras.metrics.F1Score(),
        keras.metrics.MeanIoU(3, sparse_y_pred=False),
        keras.metrics.MeanSquaredError(),
        keras.metrics.TopKCategoricalAccuracy(2),
        OfProbabilities(),
    ]
    assert all(a is b for a, b in zip(metrics_on_logits("Task", right, BINARY), right, strict=True))
    numbers = [keras.metrics.BinaryAccuracy(), "binary_accuracy"]
    assert metrics_on_logits("Task", numbers, keras.losses.MeanSquaredError()) is numbers


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
        compiled(again, weighted_metrics=[keras.metrics.AUC()])


@pytest.mark.parametrize("regression", [False, True])
def test_one_column(regression, new_backbone):
    backbone, x, y = new_backbone(), ids(4), np.array([[1.0], [0.0], [1.0], [0.0]])
    task = BertClassifier(backbone, problem_type="regression") if regression else BertCrossEncoder(backbone)
    found = compiled(task, metrics=["accuracy"]).test_on_batch(x, y, return_dict=True)
    assert found["accuracy"] == np.mean((np.asarray(task(x)) > (0.5 if regression else 0)) == y)
