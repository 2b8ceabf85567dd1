import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers import BertSentenceEncoder

TEXTS = ["good film", "bad film , a bad night", "night", "unhappy"]
OTHERS = ["a good night", "film", "night", "happy"]
SCORES = [0.75, -0.5, 1.0, 0.0]
# Unit vectors in float32, summed in another order.
TOLERANCE = 1e-5


@pytest.fixture
def encoder(backbone, preprocessor):
    return BertSentenceEncoder(backbone, preprocessor=preprocessor)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
def test_pooling_against_numpy(backbone, preprocessor, pooling, normalize):
    encoder = BertSentenceEncoder(backbone, pooling, normalize=normalize, preprocessor=preprocessor)
    vectors = encoder.predict(TEXTS, batch_size=3, verbose=0)
    assert vectors.dtype == np.float32
    for text, vector in zip(TEXTS, vectors, strict=True):
        hidden = np.array(backbone(preprocessor([text]))["sequence_output"])[0]
        expected = {"mean": hidden.mean(0), "max": hidden.max(0), "cls": hidden[0]}[pooling]
        if normalize:
            expected /= np.linalg.norm(expected)
        np.testing.assert_allclose(vector, expected, atol=TOLERANCE)


def test_pairs_give_cosines(encoder):
    first, second = encoder.predict(TEXTS, verbose=0), encoder.predict(OTHERS, verbose=0)
    cosines = encoder.predict((TEXTS, OTHERS), verbose=0)
    np.testing.assert_allclose(cosines, np.sum(first * second, axis=1), atol=TOLERANCE)
    assert cosines[2] == pytest.approx(1, abs=TOLERANCE)


def test_evaluate_is_the_squared_difference_of_cosine_and_score(encoder):
    cosines = encoder.predict((TEXTS, OTHERS), verbose=0)
    result = encoder.evaluate((TEXTS, OTHERS), SCORES, batch_size=4, verbose=0, return_dict=True)
    assert result["loss"] == pytest.approx(np.mean((cosines - SCORES) ** 2), abs=TOLERANCE)
    assert result["mean_absolute_error"] == pytest.approx(np.mean(np.abs(cosines - SCORES)), abs=TOLERANCE)


def test_fit_on_scored_pairs(encoder):
    encoder.compile(optimizer=keras.optimizers.Adam(3e-3))
    history = encoder.fit((TEXTS * 6, OTHERS * 6), SCORES * 6, epochs=12, batch_size=5, verbose=0).history["loss"]
    assert history[-1] < 0.3 * history[0]


def test_fit_on_target_vectors(encoder):
    targets = np.eye(15, dtype="float32")[: len(TEXTS)]
    encoder.compile(optimizer=keras.optimizers.Adam(3e-3))
    history = encoder.fit(TEXTS, targets, epochs=12, verbose=0).history["loss"]
    assert history[-1] < history[0]


def test_dataset_of_scored_pairs(encoder):
    dataset = tf.data.Dataset.from_tensor_slices(((TEXTS, OTHERS), SCORES)).batch(2)
    expected = encoder.evaluate((TEXTS, OTHERS), SCORES, batch_size=2, verbose=0)
    assert encoder.evaluate(dataset, verbose=0) == pytest.approx(expected, abs=TOLERANCE)
    cosines = encoder.predict((TEXTS, OTHERS), verbose=0)
    np.testing.assert_allclose(encoder.predict(dataset, verbose=0), cosines, atol=TOLERANCE)


def test_single_batches(encoder):
    cosines = encoder.predict((TEXTS, OTHERS), verbose=0)
    np.testing.assert_allclose(encoder.predict_on_batch((TEXTS, OTHERS)), cosines, atol=TOLERANCE)
    expected = encoder.evaluate((TEXTS, OTHERS), SCORES, verbose=0)
    assert encoder.test_on_batch((TEXTS, OTHERS), SCORES) == pytest.approx(expected, abs=TOLERANCE)


def test_no_texts_have_no_vectors(encoder):
    assert encoder.predict([], verbose=0).shape == (0, 15)
    assert encoder.predict(([], []), verbose=0).shape == (0,)


def test_training_leaves_the_pooler_alone(encoder):
    pooler = encoder.backbone.get_layer("pooler")
    before = np.array(pooler.weights[0])
    encoder.fit((TEXTS, OTHERS), SCORES, verbose=0)
    np.testing.assert_array_equal(before, pooler.weights[0])
    assert encoder.backbone.trainable_weights[-1] is pooler.weights[-1]


def test_keras_round_trip(encoder, tmp_path):
    encoder.fit((TEXTS, OTHERS), SCORES, verbose=0)
    encoder.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again.predict(TEXTS, verbose=0), encoder.predict(TEXTS, verbose=0))
    assert again.get_config() == encoder.get_config()


def test_config_holds_every_argument(encoder):
    import inspect

    assert set(encoder.get_config()) == set(inspect.signature(BertSentenceEncoder.__init__).parameters) - {"self"}


def test_export(encoder, tmp_path):
    encoder.export(tmp_path / "model")
    served = tf.saved_model.load(str(tmp_path / "model")).signatures
    expected = encoder.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(
        served["serving_default"](text=tf.constant(TEXTS))["embedding"], expected, atol=TOLERANCE
    )
    ids = served["tokenize"](text=tf.constant(TEXTS))
    np.testing.assert_allclose(served["token_ids"](**ids)["embedding"], expected, atol=TOLERANCE)


def test_score_out_of_range(encoder):
    with pytest.raises(ValueError, match=r"in \[-1, 1\], the range of a cosine. Received: 4.0 in row 1"):
        encoder.fit((TEXTS[:2], OTHERS[:2]), [0.5, 4.0])


@pytest.mark.parametrize("targets", [SCORES, np.array(SCORES)[:, None]], ids=["row", "column"])
def test_scores_of_single_texts(encoder, targets):
    with pytest.raises(ValueError, match=r"`y` must be target vectors `\(batch, 15\)` where texts are single"):
        encoder.fit(TEXTS, targets)


def test_normalize(backbone):
    with pytest.raises(TypeError, match="`normalize` must be True or False. Received: normalize='no'"):
        BertSentenceEncoder(backbone, normalize="no")


def test_missing_score(encoder):
    with pytest.raises(ValueError, match="Received: nan in row 0"):
        encoder.fit((TEXTS[:2], OTHERS[:2]), [float("nan"), 0.5])


def test_pooling(backbone):
    with pytest.raises(ValueError, match="`mode` must be one of .* Received: mode='median'"):
        BertSentenceEncoder(backbone, "median")
