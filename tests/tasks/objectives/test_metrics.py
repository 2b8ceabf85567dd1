"""Metrics of `compile` read logits: of labels in columns, and of one class per text, one-hot or an index."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers import BertClassifier, BertCrossEncoder, BertMaskedLM, BertMultipleChoice, BertTokenClassifier
from keras_bert_layers.metrics import MatthewsCorrelation
from keras_bert_layers.tasks.objectives.metrics import OfClasses, OfSigmoid, metrics_for, take_indices

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
    default_metrics = dict


KINDS = [(name, type(keras.metrics.get(name))) for name in NAMES]
KINDS += [(kind, kind) for _, kind in KINDS]
KINDS += [(keras.metrics.binary_accuracy, keras.metrics.BinaryAccuracy)]
KINDS += [(keras.metrics.binary_crossentropy, keras.metrics.BinaryCrossentropy)]


def metrics_on_logits(metrics, loss):
    return metrics_for(Task(), [loss], metrics)


def value_of(metric, labels, outputs):
    metric.update_state(labels, outputs)
    return keras.ops.convert_to_numpy(metric.result())


def value(metric, outputs):
    return value_of(metric, LABELS, outputs)


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


@pytest.mark.parametrize("given", ["precision", "Recall", keras.metrics.AUC()])
def test_a_loss_of_the_users_own_changes_nothing(given):
    """The default loss shows what the labels are: a loss on logits may have any name."""
    own = SimpleNamespace(from_logits=True)
    ours = metrics_for(Task(), [own, BINARY], given)
    reference = keras.metrics.get(given.lower() if isinstance(given, str) else keras.metrics.AUC())
    ours.update_state(LABELS, LOGITS)
    reference.update_state(LABELS, PROBABILITIES)
    assert float(ours.result()) == pytest.approx(float(reference.result()), abs=ROUNDING)


@pytest.mark.parametrize("given", ["PrecisionAtRecall", keras.metrics.MeanIoU])
def test_a_metric_with_arguments_is_made_by_the_user(given):
    with pytest.raises(ValueError, match=r"must need no arguments.*Make it yourself: `keras\.metrics\."):
        metrics_on_logits(given, BINARY)


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
        (keras.metrics.categorical_focal_crossentropy, r"one of your own that takes logits"),
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


@pytest.mark.parametrize(
    "given", ["kl_divergence", keras.metrics.poisson, "f1_score", "mse", "MAE", "cosine_similarity", "r2_score"]
)
def test_a_name_without_an_argument_for_logits(given):
    metric = metrics_on_logits(given, BINARY)
    np.testing.assert_allclose(
        value(metric, LOGITS), value(keras.metrics.get(metric.name), PROBABILITIES), atol=ROUNDING
    )


def test_a_function_without_a_class():
    """Keras's focal losses are functions alone."""
    given = keras.metrics.binary_focal_crossentropy
    expected = np.mean(given(LABELS, PROBABILITIES))
    metric = metrics_on_logits(given, BINARY)
    assert metric.name == "binary_focal_crossentropy"
    np.testing.assert_allclose(value(metric, LOGITS), expected, rtol=ROUNDING)
    again = OfSigmoid.from_config(metric.get_config())
    np.testing.assert_allclose(value(again, LOGITS), expected, rtol=ROUNDING)


def test_hinges_are_of_margins():
    metrics = metrics_on_logits(["hinge", keras.metrics.SquaredHinge()], BINARY)
    for metric, kind in zip(metrics, (keras.metrics.Hinge, keras.metrics.SquaredHinge), strict=True):
        np.testing.assert_allclose(value(metric, LOGITS), value(kind(), LOGITS), rtol=ROUNDING)


def test_what_is_right_stays():
    class OfProbabilities(keras.metrics.Precision):
        def update_state(self, y_true, y_pred, sample_weight=None):
            return super().update_state(y_true, keras.ops.sigmoid(y_pred), sample_weight)

    def mine(y_true, y_pred):
        return y_pred

    right = [
        *(mine, OfProbabilities, None),
        keras.metrics.AUC(from_logits=True),
        keras.metrics.BinaryAccuracy(threshold=0.0),
        keras.metrics.BinaryAccuracy(threshold=-1.5),
        keras.metrics.Precision(thresholds=0),
        keras.metrics.MeanIoU(3, sparse_y_pred=False),
        keras.metrics.Hinge(),
        keras.metrics.MeanMetricWrapper(mine),
        keras.metrics.Mean(),
        OfProbabilities(),
    ]
    assert all(a is b for a, b in zip(metrics_on_logits(right, BINARY), right, strict=True))
    numbers = [keras.metrics.BinaryAccuracy(), "binary_accuracy"]
    assert metrics_on_logits(numbers, keras.losses.MeanSquaredError()) == numbers


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


def test_names_of_the_packages_own_metrics(new_backbone):
    kinds = "single_label_classification", "multi_label_classification", "regression"
    single, several, number = (
        BertClassifier(new_backbone(), 1 if kind == "regression" else 2, problem_type=kind) for kind in kinds
    )
    tagger = BertTokenClassifier(new_backbone(), tag_names=["O", "B-x", "I-x"])
    for task, names in (
        (single, ["f1", "matthews_correlation", "MatthewsCorrelation", "calibration_error"]),
        (several, ["f1", "calibration_error"]),
        (number, ["pearson_correlation", "SpearmanCorrelation"]),
        (tagger, ["f1", "EntityF1", "entity_f1"]),
        (BertMaskedLM(new_backbone()), ["perplexity"]),
    ):
        for found in metrics_for(task, [task.default_loss()], names):
            assert type(found).__module__.startswith("keras_bert_layers.metrics"), found
    found = compiled(single, metrics=["f1"], weighted_metrics=["matthews_correlation"])
    found = found.test_on_batch(ids(4), np.array([1, 0, 1, 0]), return_dict=True)
    assert sorted(found) == ["f1", "loss", "matthews_correlation"]
    assert metrics_for(number, [number.default_loss()], ["f1"]) == ["f1"], "Keras refuses it"


@pytest.mark.parametrize("regression", [False, True])
def test_one_column(regression, new_backbone):
    backbone, x, y = new_backbone(), ids(4), np.array([[1.0], [0.0], [1.0], [0.0]])
    task = BertClassifier(backbone, problem_type="regression") if regression else BertCrossEncoder(backbone)
    found = compiled(task, metrics=["accuracy"]).test_on_batch(x, y, return_dict=True)
    assert found["accuracy"] == np.mean((np.asarray(task(x)) > (0.5 if regression else 0)) == y)


# One class per row. Float32 sums in another order, and thresholds of probabilities and logits.
CLASS_ROUNDING = 1e-5
CLASS_LOGITS = np.random.default_rng(3).normal(0, 2, (40, 3)).astype("float32")
CLASSES = np.random.default_rng(4).integers(0, 3, 40)
TEXTS = ["a good film", "bad night", "good !", "unhappy"]


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)


def metrics_of_classes(metrics):
    task = SimpleNamespace(output=np.zeros((1, 3)), default_metrics=dict)
    return metrics_for(task, [keras.losses.SparseCategoricalCrossentropy(from_logits=True)], metrics)


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
    keras.metrics.MeanSquaredError,
    keras.metrics.CosineSimilarity,
    keras.metrics.R2Score,
]


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_metric_of_class_indices_gets_them(columns, classes):
    labels, logits = CLASSES % classes, CLASS_LOGITS[:, :classes]
    y = np.eye(classes, dtype="float32")[labels] if columns else labels
    share = np.mean(logits.argmax(axis=1) == labels)
    assert value_of(metrics_of_classes(keras.metrics.Accuracy()), y, logits) == np.float32(share)
    expected = value_of(keras.metrics.MeanIoU(classes), labels, logits.argmax(axis=1))
    for is_of_indices in (False, True):
        found = metrics_of_classes(keras.metrics.MeanIoU(classes, sparse_y_pred=is_of_indices))
        assert value_of(found, y, logits) == expected
    found = metrics_of_classes(keras.metrics.SparseCategoricalCrossentropy())
    expected = value_of(keras.metrics.SparseCategoricalCrossentropy(from_logits=True), labels, logits)
    np.testing.assert_allclose(value_of(found, y, logits), expected, rtol=CLASS_ROUNDING)


def test_a_hinge_of_classes_is_of_logits():
    one_hot = np.eye(3, dtype="float32")[CLASSES]
    found = metrics_of_classes(keras.metrics.CategoricalHinge())
    expected = value_of(keras.metrics.CategoricalHinge(), one_hot, CLASS_LOGITS)
    np.testing.assert_allclose(value_of(found, CLASSES, CLASS_LOGITS), expected, rtol=CLASS_ROUNDING)


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("make", MADE)
def test_a_metric_gets_one_hot_labels_and_probabilities(make, columns):
    one_hot = np.eye(3, dtype="float32")[CLASSES]
    expected = value_of(make(), one_hot, softmax(CLASS_LOGITS))
    found = value_of(metrics_of_classes(make()), one_hot if columns else CLASSES, CLASS_LOGITS)
    np.testing.assert_allclose(found, expected, atol=CLASS_ROUNDING)


@pytest.mark.parametrize("make", [keras.metrics.AUC, keras.metrics.Precision, keras.metrics.BinaryAccuracy])
def test_of_two_classes_the_second_is_the_positive_one(make):
    labels, logits = CLASSES % 2, CLASS_LOGITS[:, :2]
    expected = value_of(make(), labels.astype("float32"), softmax(logits)[:, 1])
    np.testing.assert_allclose(value_of(metrics_of_classes(make()), labels, logits), expected, atol=CLASS_ROUNDING)


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
    labels, logits = CLASSES % classes, CLASS_LOGITS[:, :classes]
    found, expected = (value_of(metrics_of_classes(make()), labels, logits) for make in (for_logits, for_probabilities))
    np.testing.assert_allclose(found, expected, atol=CLASS_ROUNDING)


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
    value_of(metric, CLASSES, CLASS_LOGITS)
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
    one_hot = np.eye(3)[indices]
    assert task.test_on_batch(TEXTS, one_hot, return_dict=True) == pytest.approx(expected, rel=CLASS_ROUNDING)
    columns = np.asarray(task.pipeline.batches.one(TEXTS, one_hot)[1])
    for dtype in ("int32", "bool"):  # what the step above was given
        np.testing.assert_array_equal(task.pipeline.batches.one(TEXTS, one_hot.astype(dtype))[1], columns, strict=True)
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, one_hot.astype("int32"))).batch(2)
    batches = [np.asarray(labels) for _, labels in task.pipeline.batches(dataset)]
    np.testing.assert_array_equal(np.concatenate(batches), columns, strict=True)
    ids, _, _ = task.pipeline.batches.one(TEXTS)
    assert task.test_on_batch(ids, one_hot.astype("int32"), return_dict=True) == pytest.approx(
        expected, rel=CLASS_ROUNDING
    )


def test_shares_of_classes(make):
    task = make(loss="categorical_crossentropy")
    shares = softmax(CLASS_LOGITS[:4])
    found = task.test_on_batch(TEXTS, shares, return_dict=True)
    probabilities = softmax(task.predict(TEXTS, verbose=0))
    assert found["loss"] == pytest.approx(-(shares * np.log(probabilities)).sum(axis=1).mean(), rel=CLASS_ROUNDING)
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
    assert again.test_on_batch(TEXTS, [0, 1, 2, 0], return_dict=True) == pytest.approx(expected, rel=CLASS_ROUNDING)


def test_choices(new_backbone, preprocessor):
    chooser = BertMultipleChoice(new_backbone(), preprocessor=preprocessor)
    chooser.compile("sgd", metrics=[keras.metrics.AUC(), "top_k_categorical_accuracy"], run_eagerly=True)
    found = chooser.test_on_batch((["a", "good"], [["bad", "film"], ["night", "!", "a"]]), [0, 2], return_dict=True)
    assert found["top_k_categorical_accuracy"] == 1
