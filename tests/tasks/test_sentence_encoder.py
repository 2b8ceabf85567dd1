import functools

import keras
import numpy as np
import pytest

from keras_bert_layers import BertPreprocessor, BertSentenceEncoder
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.losses import in_batch

TEXTS = ["good film", "bad film , a bad night", "night", "unhappy"]
OTHERS = ["a good night", "film", "night", "happy"]
NEGATIVES = ["bad", "!", "good good", "."]
SCORES = [0.75, -0.5, 1.0, 0.0]
ODD_TEXTS = ["", "\0 \t", b"\xff bad", "[SEP] [CLS] [MASK]", "\N{SNOWMAN} \U0001f600", "جيد", "good " * 4_000]
# Unit vectors in float32, summed in another order.
TOLERANCE = 1e-5
# A loss of cosines over 0.05 is 20 times as far off.
LOSS_TOLERANCE = 2e-4


@pytest.fixture(scope="module")
def make(new_backbone, tokenizer):
    preprocessor = BertPreprocessor(tokenizer, max_length=9)

    def make(dtype=None, **options):
        backbone = new_backbone(dtype=dtype, attention_dropout=0.1)
        return BertSentenceEncoder(backbone, preprocessor=preprocessor, **options)

    return make


@pytest.fixture(scope="module")
def encoder(make, trains_and_evaluates_eagerly):
    """One model for all tests of this file, which no test trains."""
    return trains_and_evaluates_eagerly(make())


@pytest.fixture(scope="module")
def hidden_states(encoder):
    """The hidden states of one text alone, `(tokens, hidden_dim)`."""
    return functools.cache(
        lambda text: np.asarray(encoder.backbone(encoder.preprocessor([text]))["sequence_output"])[0]
    )


@pytest.fixture(scope="module")
def embed(hidden_states):
    """Vectors of texts, computed one text at a time and without `predict`."""

    def embed(texts):
        means = np.array([hidden_states(text).mean(0) for text in texts])
        return means / np.linalg.norm(means, axis=-1, keepdims=True)

    return embed


@pytest.fixture(scope="module")
def served(encoder, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "model"
    encoder.export(path)
    return tf.saved_model.load(str(path)).signatures


@pytest.fixture(scope="module")
def trained(make, trains_and_evaluates_eagerly):
    """Learns from one kind of data after the other; a test below adds pairs without scores."""
    encoder = make()
    encoder.compile(optimizer=keras.optimizers.Adam(2e-3))
    pooler = np.asarray(encoder.backbone.get_layer("pooler").weights[0])
    kinds = {
        "triplets": ((TEXTS * 20, OTHERS * 20, NEGATIVES * 20), None),
        "vectors": (TEXTS * 20, np.tile(3 * np.eye(15, dtype="float32")[:4], (20, 1))),
        "scores": ((TEXTS * 20, OTHERS * 20), SCORES * 20),
    }
    histories = {
        kind: encoder.fit(x, y, epochs=2, batch_size=4, verbose=0, shuffle=False).history
        for kind, (x, y) in kinds.items()
    }
    return trains_and_evaluates_eagerly(encoder), histories, pooler


def in_batch_loss(embed, columns, temperature=0.05):
    """The mean cross entropy of each row's own partner, all texts being different."""
    first, *candidates = (embed(column) for column in columns)
    logits = first @ np.concatenate(candidates).T / temperature
    return np.mean(np.log(np.exp(logits).sum(axis=1)) - np.diag(logits)), np.mean(
        logits.argmax(axis=1) == np.arange(len(first))
    )


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
def test_pooling_against_numpy(encoder, hidden_states, pooling, normalize):
    backbone, preprocessor = encoder.backbone, encoder.preprocessor
    vectors = np.asarray(BertSentenceEncoder(backbone, pooling, normalize=normalize)(preprocessor(TEXTS)))
    assert vectors.dtype == np.float32
    for text, vector in zip(TEXTS, vectors, strict=True):
        hidden = hidden_states(text)
        expected = {"mean": hidden.mean(0), "max": hidden.max(0), "cls": hidden[0]}[pooling]
        if normalize:
            expected = expected / np.linalg.norm(expected)
        np.testing.assert_allclose(vector, expected, atol=TOLERANCE)


def test_predict(encoder, embed):
    vectors = encoder.predict(TEXTS, batch_size=3, verbose=0)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, embed(TEXTS), atol=TOLERANCE)
    assert encoder.predict([], verbose=0).shape == (0, 15)
    assert encoder.predict(([], []), verbose=0).shape == (0,)


def test_pairs_give_cosines(encoder, embed):
    expected = np.sum(embed(TEXTS) * embed(OTHERS), axis=1)
    np.testing.assert_allclose(encoder.predict((TEXTS, OTHERS), verbose=0), expected, atol=TOLERANCE)
    np.testing.assert_allclose(encoder.predict_on_batch((TEXTS, OTHERS)), expected, atol=TOLERANCE)
    dataset = tf.data.Dataset.from_tensor_slices(((TEXTS, OTHERS), SCORES)).batch(3)
    np.testing.assert_allclose(encoder.predict(dataset, verbose=0), expected, atol=TOLERANCE)
    assert expected[2] == pytest.approx(1, abs=TOLERANCE)


def test_scored_pairs(encoder, embed):
    cosines = np.sum(embed(TEXTS) * embed(OTHERS), axis=1)
    dataset = tf.data.Dataset.from_tensor_slices(((TEXTS, OTHERS), SCORES)).batch(4)
    result = encoder.evaluate(dataset, verbose=0, return_dict=True)
    assert set(result) == {"loss", "mean_absolute_error", "spearman_correlation"}
    assert result["loss"] == pytest.approx(np.mean((cosines - SCORES) ** 2), abs=TOLERANCE)
    assert result["mean_absolute_error"] == pytest.approx(np.mean(np.abs(cosines - SCORES)), abs=TOLERANCE)
    ranks = np.argsort(np.argsort(cosines)), np.argsort(np.argsort(SCORES))
    assert result["spearman_correlation"] == pytest.approx(np.corrcoef(*ranks)[0, 1], abs=TOLERANCE)


def test_weights_of_scored_pairs(encoder, embed):
    weights = np.array([0.5, 2.0, 0.0, 1.5])
    squares = (np.sum(embed(TEXTS) * embed(OTHERS), axis=1) - SCORES) ** 2
    encoder.reset_metrics()
    found = encoder.test_on_batch((TEXTS, OTHERS), SCORES, sample_weight=weights, return_dict=True)
    assert found["loss"] == pytest.approx(np.mean(weights * squares), abs=TOLERANCE)


@pytest.mark.parametrize("columns", [(TEXTS, [*OTHERS[:2], "a", "happy"]), (TEXTS, [*OTHERS[:2], "a", "!"], NEGATIVES)])
def test_pairs_and_triplets_without_scores(encoder, embed, columns):
    if len(columns) == 3:
        columns = (*columns[:2], ["bad", "un", "good good", "."])
    encoder.reset_metrics()
    result = encoder.test_on_batch(columns, return_dict=True)
    loss, accuracy = in_batch_loss(embed, columns)
    assert result == {
        "loss": pytest.approx(loss, abs=LOSS_TOLERANCE),
        "accuracy": pytest.approx(accuracy, abs=TOLERANCE),
    }


def test_the_same_text_is_never_its_own_negative(encoder, embed):
    """Both rows of a text have both partners, and a partner that is another row's anchor is that text itself."""
    columns = (["good", "good", "film"], ["night", "bad", "good"])
    encoder.reset_metrics()
    found = encoder.test_on_batch(columns, return_dict=True)
    first, second = embed(columns[0]), embed(columns[1])
    logits = first @ second.T / 0.05
    allowed = np.array([[True, False, False], [False, True, False], [True, True, True]])
    logits = np.where(allowed, logits, -np.inf)
    expected = np.mean(np.log(np.exp(logits).sum(axis=1)) - np.diag(logits))
    assert found["loss"] == pytest.approx(expected, abs=LOSS_TOLERANCE)


def test_a_row_may_have_several_negatives_or_none(encoder, embed):
    negatives = [["bad", "!"], [], ["un"], "."]
    encoder.reset_metrics()
    found = encoder.test_on_batch((TEXTS, ["a", "film", "good", "happy"], negatives), return_dict=True)
    loss, _ = in_batch_loss(embed, (TEXTS, ["a", "film", "good", "happy", "bad", "!", "un", "."]))
    assert found["loss"] == pytest.approx(loss, abs=LOSS_TOLERANCE)


@pytest.mark.slow
def test_learns_from_every_kind_of_data(trained):
    _, histories, _ = trained
    for kind, history in histories.items():
        assert history["loss"][-1] < 0.96 * history["loss"][0], kind
    names = {kind: set(history) for kind, history in histories.items()}
    assert names["scores"] == {"loss", "mean_absolute_error", "spearman_correlation"}
    assert names["triplets"] == {"loss", "accuracy"}
    assert names["vectors"] == {"loss", "mean_absolute_error"}
    assert histories["triplets"]["accuracy"][-1] > 0.7


@pytest.mark.slow
def test_validation_may_be_of_another_kind(trained):
    encoder, _, _ = trained
    history = encoder.fit((TEXTS, OTHERS), validation_data=((TEXTS, OTHERS), SCORES), verbose=0).history
    expected = {"loss", "accuracy", "val_loss", "val_mean_absolute_error", "val_spearman_correlation"}
    assert set(history) == expected


@pytest.mark.slow
def test_training_leaves_the_pooler_alone(trained):
    encoder, _, before = trained
    pooler = encoder.backbone.get_layer("pooler")
    np.testing.assert_array_equal(before, pooler.weights[0])
    assert encoder.backbone.trainable_weights[-1] is pooler.weights[-1]


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_keras_round_trip(trained, tmp_path):
    encoder, _, _ = trained
    encoder.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again.predict_on_batch(TEXTS), encoder.predict_on_batch(TEXTS), atol=TOLERANCE)
    assert again.get_config() == encoder.get_config()
    assert set(again.test_on_batch((TEXTS, OTHERS), return_dict=True)) == {"loss", "accuracy"}


@pytest.mark.usefixtures("traces_nothing")
def test_bfloat16(make):
    encoder = make(dtype="mixed_bfloat16")
    encoder.compile(run_eagerly=True)  # less work than a trace, for one step
    for x, y in [((TEXTS, OTHERS), SCORES), ((TEXTS, OTHERS, NEGATIVES), None)]:
        assert np.isfinite(encoder.train_on_batch(x, y)).all()
    vectors = encoder.answer(TEXTS)["embedding"]
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-1), 1, atol=TOLERANCE)


def test_gradient_of_a_vector_of_zeros_is_finite():
    first = tf.Variable(np.zeros((2, 5), "float32"))
    with tf.GradientTape() as tape:
        cosines = in_batch.cosine(first, tf.ones((2, 5)))
    assert np.isfinite(np.asarray(tape.gradient(cosines, first))).all()
    assert np.asarray(cosines).tolist() == [0, 0]


def test_export(encoder, served, embed, eagerly):
    expected = embed(TEXTS)
    found = served["serving_default"](text=tf.constant(TEXTS))["embedding"]
    np.testing.assert_allclose(found, expected, atol=TOLERANCE)
    ids = served["tokenize"](text=tf.constant(TEXTS))
    np.testing.assert_allclose(served["token_ids"](**ids)["embedding"], expected, atol=TOLERANCE)
    with eagerly():
        np.testing.assert_allclose(encoder.answer(TEXTS)["embedding"], expected, atol=TOLERANCE)


def test_a_text_has_the_same_vector_alone_and_in_a_batch(encoder, served):
    together = served["serving_default"](text=tf.constant(ODD_TEXTS))["embedding"].numpy()
    alone = [served["serving_default"](text=tf.constant([text]))["embedding"].numpy()[0] for text in ODD_TEXTS]
    np.testing.assert_allclose(together, alone, atol=TOLERANCE)
    np.testing.assert_allclose(encoder.predict(ODD_TEXTS, batch_size=3, verbose=0), together, atol=TOLERANCE)


class TestErrors:
    def test_score_out_of_range(self, encoder):
        with pytest.raises(ValueError, match=r"in \[-1, 1\], the range of a cosine. Received: 4.0 in row 1"):
            encoder.fit((TEXTS[:2], OTHERS[:2]), [0.5, 4.0])

    def test_missing_score(self, encoder):
        with pytest.raises(ValueError, match="Received: nan in row 0"):
            encoder.fit((TEXTS[:2], OTHERS[:2]), [float("nan"), 0.5])

    @pytest.mark.parametrize("targets", [SCORES, np.array(SCORES)[:, None], OTHERS], ids=["row", "column", "texts"])
    def test_no_vectors_beside_single_texts(self, encoder, targets):
        with pytest.raises(
            ValueError, match=r"`y` must be target vectors `\(batch, 15\)` where texts are single.*Pairs"
        ):
            encoder.fit(TEXTS, targets)

    def test_scores_of_triplets(self, encoder):
        with pytest.raises(ValueError, match="`y` must be None beside triplets"):
            encoder.fit((TEXTS, OTHERS, NEGATIVES), SCORES)

    def test_single_texts_without_labels(self, encoder):
        with pytest.raises(ValueError, match=r"`x` must be pairs of texts .*Or give target vectors"):
            encoder.fit(TEXTS)

    @pytest.mark.parametrize("method", ["predict", "predict_on_batch"])
    def test_triplets_have_no_answer(self, encoder, method):
        with pytest.raises(ValueError, match="`x` must be texts or pairs of texts. Received: x='a tuple of 3'"):
            getattr(encoder, method)((TEXTS, OTHERS, NEGATIVES))

    def test_too_many_columns(self, encoder):
        with pytest.raises(ValueError, match="a tuple of two to 3 lists. Received: a tuple of 4"):
            encoder.fit((TEXTS, OTHERS, NEGATIVES, NEGATIVES))

    def test_negatives_that_are_not_texts(self, encoder):
        with pytest.raises(TypeError, match=r"texts must be strings. Received: \['a', 3\] in row 2"):
            encoder.fit((TEXTS, OTHERS, ["a", ["b"], ["a", 3], "c"]))
        with pytest.raises(TypeError, match=r"`x\[2\]` must be a column of texts, or of lists of texts"):
            encoder.fit((TEXTS, OTHERS, iter(NEGATIVES)))

    def test_lengths(self, encoder):
        with pytest.raises(ValueError, match="same number of texts. Received: 4 and 4 and 3"):
            encoder.fit((TEXTS, OTHERS, NEGATIVES[:3]))

    def test_a_custom_loss_without_scores(self, make):
        encoder = make()
        encoder.compile(loss="mean_absolute_error", run_eagerly=True)
        with pytest.raises(ValueError, match='`loss` must be "auto", or one of `losses`, where pairs have no `y`'):
            encoder.train_on_batch((TEXTS, OTHERS))

    def test_pooling(self, encoder):
        with pytest.raises(ValueError, match="`mode` must be one of .* Received: mode='median'"):
            BertSentenceEncoder(encoder.backbone, "median")

    def test_normalize(self, encoder):
        with pytest.raises(TypeError, match="`normalize` must be True or False. Received: normalize='no'"):
            BertSentenceEncoder(encoder.backbone, normalize="no")

    def test_temperature(self, encoder):
        with pytest.raises(ValueError, match="`temperature` must be greater than 0. Received: temperature=0"):
            BertSentenceEncoder(encoder.backbone, temperature=0)


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_projection(make, tmp_path):
    task = make(projection_dim=7, projection_activation="relu")
    vectors = task.predict(TEXTS, verbose=0)
    hidden = np.stack([np.asarray(task.backbone(task.preprocessor([t]))["sequence_output"])[0].mean(0) for t in TEXTS])
    dense = task.get_layer("dense_projection")
    expected = np.maximum(hidden @ np.asarray(dense.kernel.value) + np.asarray(dense.bias.value), 0)
    np.testing.assert_allclose(vectors, expected / np.linalg.norm(expected, axis=-1, keepdims=True), atol=TOLERANCE)
    task.run_eagerly = True
    assert np.isfinite(task.train_on_batch(TEXTS, np.eye(4, 7))).all()
    assert task.predict([], verbose=0).shape == (0, 7)
    task.save(tmp_path / "x.keras")
    again = keras.models.load_model(tmp_path / "x.keras")
    np.testing.assert_allclose(again.predict(TEXTS, verbose=0), task.predict(TEXTS, verbose=0), atol=TOLERANCE)


def test_layers_in_a_row_and_a_cut(make, tmp_path):
    """The cut comes last: cut vectors are shorter than 1, and their cosine is that of what is left."""
    task = make(pooling=["cls", "max"], projection_dim=[9, 7], projection_activation=["relu", "linear"], truncate_dim=4)
    task.compile(run_eagerly=True)
    hidden = [np.asarray(task.backbone(task.preprocessor([text]))["sequence_output"])[0] for text in TEXTS]
    expected = np.stack([np.concatenate([tokens[0], tokens.max(0)]) for tokens in hidden])
    for layer in (task.get_layer("dense_projection"), task.get_layer("dense_projection_1")):
        expected = np.asarray(
            layer.activation(expected @ np.asarray(layer.kernel.value) + np.asarray(layer.bias.value))
        )
    expected = (expected / np.linalg.norm(expected, axis=-1, keepdims=True))[:, :4]
    vectors = task.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(vectors, expected, atol=TOLERANCE)
    cosines = np.sum(in_batch.unit(vectors[:2]) * in_batch.unit(vectors[2:]), axis=-1)
    np.testing.assert_allclose(task.predict((TEXTS[:2], TEXTS[2:]), verbose=0), cosines, atol=TOLERANCE)
    assert np.isfinite(task.train_on_batch(TEXTS, np.eye(4))).all()
    task.save(tmp_path / "x.keras")
    again = keras.models.load_model(tmp_path / "x.keras")
    assert again.get_config() == task.get_config()
    assert (again.pooling, again.projection_dim, again.truncate_dim) == (("cls", "max"), (9, 7), 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"projection_dim": 0}, "`projection_dim` must be at least 1"),
        ({"projection_activation": "gelu"}, "`projection_activation` must be one of"),
        ({"projection_dim": (7, 0)}, "`projection_dim` must be at least 1"),
        (
            {"projection_dim": 7, "projection_activation": ["relu"] * 2},
            "`projection_activation` must be one activation",
        ),
        ({"truncate_dim": 0}, "`truncate_dim` must be at least 1"),
        ({"truncate_dim": 16}, "`truncate_dim` must be at most the vectors' 15"),
        ({"projection_dim": 7, "truncate_dim": 8}, "`truncate_dim` must be at most the vectors' 7"),
    ],
)
def test_bad_projection(make, options, message):
    with pytest.raises(ValueError, match=f"`BertSentenceEncoder`: {message}"):
        make(**options)


def test_similarity_of_texts_and_vectors(encoder, embed):
    first, second = embed(TEXTS), embed(OTHERS[:3])
    expected = first @ second.T
    np.testing.assert_allclose(encoder.similarity(TEXTS, OTHERS[:3]), expected, atol=TOLERANCE)
    np.testing.assert_allclose(encoder.similarity(3 * first, OTHERS[:3]), expected, atol=TOLERANCE)
    np.testing.assert_allclose(encoder.similarity(TEXTS[1], tf.constant(second)), expected[1:2], atol=TOLERANCE)
    np.testing.assert_allclose(encoder.similarity(first[1], second[0]), expected[1:2, :1], atol=TOLERANCE)
    assert encoder.similarity([], TEXTS).shape == (0, 4)
    with pytest.raises(ValueError, match=r"be texts, or vectors \(rows, 15\)\. Received: x=shape \(2, 3\)"):
        encoder.similarity(TEXTS, np.ones((2, 3)))
