"""Numbers and relevances as labels: how they are read, what the loss is, and what the answers are."""

import numpy as np
import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.config import ACTIVATIONS
from keras_bert_layers.tasks.labels import Regression, Relevance

SCORES = [4.5, 0.5, 4.0, 1.0]
LOGITS = np.array([[4.0], [1.0], [2.0], [0.5]], "float32")
RELEVANCES = [1, 0, 0.25, 1, 0.75]
TOLERANCE = 1e-5  # float32 against float64


def sigmoid(logits):
    return 1 / (1 + np.exp(-np.asarray(logits, np.float64)))


class TestOneNumber:
    @pytest.mark.parametrize("column", [np.array(SCORES), np.array(SCORES)[:, None], np.array(SCORES, "float32")])
    def test_every_kind_of_column_is_the_same(self, column):
        encoded = Regression(None, None).encode(column)
        assert (encoded.dtype, encoded.tolist()) == (np.float32, SCORES)

    def test_integers_are_numbers(self):
        assert Regression(None, None).encode(np.array([3, 4])).tolist() == [3.0, 4.0]

    def test_numbers_in_graph_stay(self):
        numbers = tf.constant(SCORES)
        assert Regression(None, None).encode_in_graph(numbers) is numbers

    def test_loss_and_metrics(self):
        labels = Regression(None, None)
        assert labels.num_classes == 1
        found = {}
        for metric in labels.metrics():
            metric.update_state(SCORES, LOGITS)
            found[metric.name] = float(metric.result())
        numbers = LOGITS[:, 0]
        assert float(labels.loss()(np.array(SCORES)[:, None], LOGITS)) == pytest.approx(
            np.mean((numbers - SCORES) ** 2), abs=TOLERANCE
        )
        assert found == {
            "mean_absolute_error": pytest.approx(np.abs(numbers - SCORES).mean(), abs=TOLERANCE),
            "pearson_correlation": pytest.approx(np.corrcoef(numbers, SCORES)[0, 1], abs=TOLERANCE),
        }

    def test_decode(self):
        answer = Regression(None, None).decode(tf.constant(LOGITS, tf.bfloat16))
        assert set(answer) == {"score"}
        assert answer["score"].dtype == tf.float32
        assert answer["score"].numpy().tolist() == LOGITS[:, 0].tolist()
        assert Regression(None, None).decode(tf.zeros((0, 1)))["score"].shape == (0,)


class TestSeveralNumbers:
    @pytest.fixture
    def labels(self):
        return Regression(2, ["x", "y"])

    def test_encode(self, labels):
        encoded = labels.encode(np.stack([SCORES, SCORES], axis=1))
        assert encoded.dtype == np.float32
        assert encoded.tolist() == [[score, score] for score in SCORES]

    def test_metrics(self, labels):
        assert [metric.name for metric in labels.metrics()] == ["mean_absolute_error"]

    def test_decode(self, labels):
        logits = np.concatenate([LOGITS, -LOGITS], axis=1)
        np.testing.assert_array_equal(labels.decode(tf.constant(logits))["score"], logits)

    def test_one_number_is_refused(self, labels):
        with pytest.raises(ValueError, match=r"`y` must hold 2 numbers per text, \(rows, 2\)"):
            labels.encode(np.array(SCORES))


class TestErrorsOfNumbers:
    def test_names(self):
        with pytest.raises(TypeError, match="`y` must hold numbers. .*float"):
            Regression(None, None).encode(np.array(["3.5"], object))
        with pytest.raises(ValueError, match="`y` must hold numbers in a regression"):
            Regression(None, None).encode_in_graph(tf.constant(["3.5"]))

    def test_missing_number(self):
        with pytest.raises(ValueError, match="every label must be a finite number. Received: nan in row 1"):
            Regression(None, None).encode(np.array([1.0, float("nan")]))

    def test_several_numbers(self):
        with pytest.raises(ValueError, match="`y` must hold one number per text"):
            Regression(None, None).encode(np.array([[1.0, 2.0]]))

    def test_class_weight(self):
        with pytest.raises(ValueError, match="`class_weight` must be None, as a regression has no classes"):
            Regression(None, None).class_weight({0: 2.0})

    def test_class_names_of_one_number(self):
        with pytest.raises(ValueError, match="`class_names` must be None in a regression of one number"):
            Regression(None, ["score"])


class TestRelevance:
    @pytest.mark.parametrize(
        "column",
        [np.array(RELEVANCES), np.array(RELEVANCES)[:, None], np.array([1, 0, 0, 1, 1]), np.array([True, False])],
        ids=["row", "column", "integers", "booleans"],
    )
    def test_encode(self, column):
        encoded = Relevance().encode(column)
        assert (encoded.shape, encoded.dtype) == ((len(column),), np.float32)
        np.testing.assert_array_equal(encoded, np.asarray(column, np.float32).reshape(-1))

    def test_encode_in_graph(self):
        encoded = Relevance().encode_in_graph(tf.constant([1, 0]))
        assert (encoded.dtype, encoded.numpy().tolist()) == (tf.float32, [[1.0], [0.0]])

    def test_loss_and_metrics(self):
        logits = np.array([[2.0], [-1.0], [0.5], [3.0], [-0.25]], "float32")
        relevances, shares = np.array(RELEVANCES)[:, None], sigmoid(logits)
        expected = -np.mean(relevances * np.log(shares) + (1 - relevances) * np.log(1 - shares))
        for activation in ("sigmoid", "linear"):  # the loss is that of the logit
            found = Relevance(activation).loss()(relevances.astype("float32"), logits)
            assert float(found) == pytest.approx(expected, abs=TOLERANCE)
        assert [metric.name for metric in Relevance().metrics()] == ["auc"]

    @pytest.mark.parametrize("activation", ACTIVATIONS)
    def test_activations(self, activation, numpy_bert):
        logits = np.linspace(-12, 12, 49)
        found = Relevance(activation).decode(tf.constant(logits[:, None], tf.float32))["score"]
        np.testing.assert_allclose(found, numpy_bert.ACTIVATIONS[activation](logits), atol=TOLERANCE)

    def test_class_weights_are_kerass(self):
        weights = {0: 1.0, 1: 2.0}
        assert Relevance().class_weight(weights) == weights

    @pytest.mark.parametrize("wrong", [-0.5, 3, float("nan")])
    def test_out_of_range(self, wrong):
        with pytest.raises(
            ValueError, match=rf"one number in \[0, 1\]. Received: {float(wrong)} in row 2. Divide grades"
        ):
            Relevance().encode(np.array([1, 0, wrong, 0, 0]))

    def test_anything_but_numbers(self):
        with pytest.raises(ValueError, match=r"one number in \[0, 1\]. Received: dtype=object"):
            Relevance().encode(np.array(["yes", "no"], object))
        with pytest.raises(ValueError, match=r"one number in \[0, 1\]. Received: shape=\(5, 2\)"):
            Relevance().encode(np.zeros((5, 2)))

    def test_activation(self):
        with pytest.raises(ValueError, match="`activation` must be one of .* Received: activation='gelu'"):
            Relevance("gelu")
