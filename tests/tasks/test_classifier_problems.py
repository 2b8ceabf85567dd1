"""`BertClassifier` where a text has several labels, or a number."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers import BertClassifier, BertPreprocessor, BertTokenizer
from keras_bert_layers.tasks.serving.answers import as_text

TEXTS = ["good film", "bad film", "a good night", "unhappy night", "good , good !", "bad", "a film"]
NAMES = ["good", "bad", "night"]
LABELS = [["good"], ["bad"], ["night", "good"], ["bad", "night"], ["good"], ["bad"], []]
COLUMNS = np.array([[name in labels for name in NAMES] for labels in LABELS], "float32")
SCORES = [4.5, 0.5, 4.0, 1.0, 5.0, 0.0, 2.5]
# The same float32 sums in another order: eager against traced, one batch against another, against float64.
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def make(new_backbone, vocabulary):
    """A function that makes an eager model; `fit` does not change it, so that its losses are known beforehand."""
    preprocessor = BertPreprocessor(BertTokenizer(vocabulary), max_length=9)

    def make(*, dtype=None, **options):
        classifier = BertClassifier(new_backbone(seed=17, dtype=dtype), preprocessor=preprocessor, **options)
        classifier.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
        return classifier

    return make


@pytest.fixture(scope="module")
def labeller(make):
    return make(class_names=NAMES, problem_type="multi_label_classification", threshold=0.4)


@pytest.fixture(scope="module")
def scorer(make):
    return make(problem_type="regression")


def sigmoid(logits):
    return 1 / (1 + np.exp(-np.asarray(logits, "float64")))


def outputs(classifier):
    return np.asarray(classifier(classifier.preprocessor(TEXTS)), "float64")


def datasets(labels):
    return tf.data.Dataset.from_tensor_slices((TEXTS, labels)).batch(3)


class TestSeveralLabels:
    def test_loss_and_f1(self, labeller):
        probabilities = sigmoid(outputs(labeller))
        loss = -np.where(COLUMNS == 1, np.log(probabilities), np.log1p(-probabilities)).mean()
        predicted = probabilities > 0.5
        f1 = 2 * (predicted * COLUMNS).sum() / (predicted.sum() + COLUMNS.sum())
        history = labeller.fit(TEXTS, LABELS, validation_split=0.3, verbose=0).history
        assert set(history) == {"loss", "f1", "val_loss", "val_f1"}
        ragged = datasets(tf.ragged.constant(LABELS))
        for x, y in [(TEXTS, LABELS), (TEXTS, COLUMNS), (ragged, None)]:
            result = labeller.evaluate(x, y, verbose=0, return_dict=True)
            assert result == pytest.approx({"loss": loss, "f1": f1}, abs=TOLERANCE)

    @pytest.mark.parametrize(
        "labels",
        [
            COLUMNS.astype(int).tolist(),
            COLUMNS.astype(bool),
            [tuple(labels) for labels in LABELS],
            np.array([[*labels, "", ""][:2] for labels in LABELS]),
            [[label.encode() for label in labels] for labels in LABELS],
        ],
        ids=["columns", "booleans", "tuples", "filled up", "bytes"],
    )
    def test_every_kind_of_labels_is_the_same(self, labeller, labels):
        encoded = labeller.pipeline.labels(None, labels)
        assert encoded.dtype == np.float32
        np.testing.assert_array_equal(encoded, COLUMNS)

    def test_texts_without_any_label(self, labeller):
        assert labeller.pipeline.labels(None, [[], []]).tolist() == [[0, 0, 0]] * 2

    @pytest.mark.parametrize("filled", [True, False])
    def test_names_in_graph(self, labeller, filled):
        names = tf.ragged.constant(LABELS)
        _, encoded = labeller.pipeline.encode(tf.constant(TEXTS), names.to_tensor("") if filled else names)
        np.testing.assert_array_equal(encoded, COLUMNS)

    def test_answers_the_labels_above_the_threshold(self, labeller):
        probabilities = sigmoid(outputs(labeller))
        answers = labeller.answer(TEXTS, batch_size=3)
        np.testing.assert_allclose(answers["probabilities"], probabilities, atol=TOLERANCE)
        for row, labels in zip(probabilities, answers["label"], strict=True):
            expected = [NAMES[column] for column in np.argsort(-row) if row[column] > 0.4]
            assert [label for label in labels if label] == expected

    def test_round_trip_and_export(self, labeller, tmp_path):
        labeller.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        assert again.get_config() == labeller.get_config()
        assert (again.problem_type, again.threshold) == ("multi_label_classification", 0.4)
        again.export(tmp_path / "model")
        served = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
        answer, expected = served(text=tf.constant(TEXTS)), labeller.answer(TEXTS)
        assert as_text({"label": answer["label"].numpy()})["label"].tolist() == expected["label"].tolist()
        np.testing.assert_allclose(answer["probabilities"], expected["probabilities"], atol=TOLERANCE)

    def test_bfloat16(self, make):
        labeller = make(dtype="mixed_bfloat16", num_classes=3, problem_type="multi_label_classification")
        assert np.isfinite(labeller.train_on_batch(TEXTS, COLUMNS)).all()
        assert labeller.answer(TEXTS[:2])["probabilities"].dtype == np.float32

    def test_defaults(self, make):
        labeller = make(num_classes=3, problem_type="multi_label_classification")
        assert (labeller.threshold, labeller.class_names) == (0.5, None)
        answers = labeller.answer(TEXTS)
        for probabilities, labels in zip(answers["probabilities"], answers["label"], strict=True):
            assert {int(label) for label in labels if label} == set(np.flatnonzero(probabilities > 0.5))


class TestSeveralLabelsErrors:
    def test_unknown_name(self, labeller):
        with pytest.raises(ValueError, match=r"one of \['good', 'bad', 'night'\]. Received: 'day' in row 1"):
            labeller.fit(["a", "b"], [["good"], ["bad", "day"]])

    def test_unknown_name_in_a_dataset(self, labeller):
        with pytest.raises(tf.errors.InvalidArgumentError, match="every label must be one of"):
            labeller.evaluate(datasets(tf.ragged.constant([["day"]] * 7)), verbose=0)

    def test_one_name_a_text(self, labeller):
        with pytest.raises(TypeError, match="the labels of a text must be a list. Received: 'good' in row 0"):
            labeller.fit(["a"], ["good"])
        with pytest.raises(ValueError, match=r"`y` must be \(batch, labels\), or ragged where it holds names"):
            labeller.evaluate(datasets(["good"] * 7))

    @pytest.mark.parametrize("labels", [[0, 2], [[0, 1], [1, 0]], [[0], [1, 2]]])
    def test_numbers_of_classes(self, labeller, labels):
        with pytest.raises((TypeError, ValueError), match="`BertClassifier`: .*Received: "):
            labeller.fit(["a", "b"], labels)

    @pytest.mark.parametrize("value", [2.0, -1.0, float("nan")])
    def test_columns_out_of_range(self, labeller, value):
        with pytest.raises(ValueError, match=r"columns of labels must be between 0 and 1. Received: \[.*\] in row 1"):
            labeller.fit(["a", "b"], [[0.0, 1.0, 0.0], [0.0, value, 1.0]])

    def test_class_weight(self, labeller):
        with pytest.raises(
            ValueError, match="`class_weight` must be None, as a text with several labels.*sample_weight"
        ):
            labeller.fit(TEXTS, LABELS, class_weight={"good": 2.0})

    @pytest.mark.parametrize("threshold", [1.0, -0.1])
    def test_threshold(self, make, threshold):
        with pytest.raises(ValueError, match="`threshold` must be at least 0 and less than 1"):
            make(num_classes=3, problem_type="multi_label_classification", threshold=threshold)


class TestRegression:
    def test_loss_and_metrics(self, scorer):
        numbers = outputs(scorer)
        assert numbers.shape == (7, 1)
        numbers = numbers[:, 0]
        expected = {
            "loss": np.mean((numbers - SCORES) ** 2),
            "mean_absolute_error": np.mean(np.abs(numbers - SCORES)),
            "pearson_correlation": np.corrcoef(numbers, SCORES)[0, 1],
        }
        history = scorer.fit(TEXTS, SCORES, verbose=0).history
        assert {name: values[0] for name, values in history.items()} == pytest.approx(expected, abs=TOLERANCE)
        for x, y in [(TEXTS, np.array(SCORES)[:, None]), (datasets(SCORES), None)]:
            result = scorer.evaluate(x, y, verbose=0, return_dict=True)
            assert result == pytest.approx(expected, abs=TOLERANCE)

    def test_answers_scores(self, scorer):
        answers = scorer.answer(TEXTS, batch_size=3)
        assert set(answers) == {"score"}
        assert answers["score"].dtype == np.float32
        np.testing.assert_allclose(answers["score"], outputs(scorer)[:, 0], atol=TOLERANCE)
        assert scorer.answer([])["score"].shape == (0,)

    def test_config(self, scorer):
        again = BertClassifier.from_config(scorer.get_config())
        assert again.get_config() == scorer.get_config()
        assert (again.num_classes, again.output_shape) == (1, (None, 1))

    def test_bfloat16(self, make):
        scorer = make(dtype="mixed_bfloat16", problem_type="regression")
        assert np.isfinite(scorer.train_on_batch(TEXTS, SCORES)).all()
        assert scorer.answer(TEXTS[:2])["score"].dtype == np.float32


@pytest.mark.slow
def test_regression_of_several_numbers(make):
    model = make(num_classes=2, class_names=["x", "y"], problem_type="regression")
    labels = np.stack([SCORES, SCORES], axis=1)
    history = model.fit(TEXTS, labels, verbose=0).history
    assert set(history) == {"loss", "mean_absolute_error"}
    assert model.evaluate(TEXTS, labels, verbose=0)[0] == pytest.approx(np.square(outputs(model) - labels).mean(), 1e-4)
    np.testing.assert_allclose(model.answer(TEXTS)["score"], outputs(model), atol=1e-5)
    with pytest.raises(ValueError, match=r"`y` must hold 2 numbers per text, \(rows, 2\)"):
        model.fit(TEXTS, SCORES)


class TestRegressionErrors:
    def test_names(self, scorer):
        with pytest.raises(TypeError, match="`y` must hold numbers. .*float"):
            scorer.fit(["a"], ["3.5"])
        with pytest.raises(ValueError, match="`y` must hold numbers in a regression"):
            scorer.evaluate(datasets(["3.5"] * 7))

    def test_missing_number(self, scorer):
        with pytest.raises(ValueError, match="every label must be a finite number. Received: nan in row 1"):
            scorer.fit(["a", "b"], [1.0, float("nan")])

    def test_several_numbers(self, scorer):
        with pytest.raises(ValueError, match="`y` must hold one number per text"):
            scorer.fit(["a"], [[1.0, 2.0]])

    def test_class_weight(self, scorer):
        with pytest.raises(ValueError, match="`class_weight` must be None, as a regression has no classes"):
            scorer.fit(TEXTS, SCORES, class_weight={0: 2.0})

    def test_classes(self, make):
        with pytest.raises(ValueError, match="`class_names` must be None in a regression of one number"):
            make(class_names=NAMES, problem_type="regression")


def test_problem_type(make):
    with pytest.raises(ValueError, match="`problem_type` must be one of .*Received: problem_type='ranking'"):
        make(num_classes=3, problem_type="ranking")


def test_threshold_of_one_label(make):
    with pytest.raises(ValueError, match="`threshold` must be None unless .*multi_label_classification"):
        make(num_classes=3, threshold=0.5)
