import keras
import numpy as np
import pytest

from keras_bert_layers import BertCrossEncoder, BertPreprocessor
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.losses import LambdaRank, ListNet, RankNet
from keras_bert_layers.tasks.feeding.streams import as_dataset

QUERIES = ["good ?", "bad ?", "good ?", "bad ?", "night ?"]
DOCUMENTS = ["a good film", "a good film", "bad", "bad", "a night ! a night"]
RELEVANCES = [1, 0, 0.25, 1, 0.75]
CANDIDATES = [["a good film", "bad", "night"], ["bad"], ["good", "a night !"]]
GRADES = [[1, 0, 0.5], [1], [0.25, 0]]
ROWS = (QUERIES[:3], CANDIDATES)
PRESENT = np.array([[place < len(row) for place in range(3)] for row in CANDIDATES])
PAIRS = ([query for query, row in zip(*ROWS, strict=True) for _ in row], sum(CANDIDATES, []))  # noqa: RUF017
PADDED = np.array([[1, 0, 0.5], [1, -1, -1], [0.25, 0, -1]], np.float32)
ODD_TEXTS = ["", "\0 \t", b"\xff bad", "[SEP] [CLS] [MASK]", "\N{SNOWMAN} \U0001f600", "جيد", "good " * 4_000]
# The same float32 sums in another order: eager against traced, one batch against another.
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def make(new_backbone, tokenizer):
    preprocessor = BertPreprocessor(tokenizer, max_length=11)
    return lambda **options: BertCrossEncoder(new_backbone(seed=17, attention_dropout=0.1, **options), preprocessor)


@pytest.fixture(scope="module")
def encoder(make, train_eagerly):
    """One model for all tests of this file, trained on its few rows; eagerly, as steps are few."""
    encoder = make()
    encoder.compile(optimizer=keras.optimizers.Adam(2e-2))
    logs = train_eagerly(encoder, (QUERIES, DOCUMENTS), RELEVANCES, steps=12)
    encoder.first_logs, encoder.last_logs = logs[0], logs[-1]
    return encoder


@pytest.fixture(scope="module")
def logits(encoder):
    """One logit per pair, computed one pair at a time from backbone and head."""
    head = encoder.get_layer("classification_head").dense
    rows = []
    for query, document in zip(QUERIES, DOCUMENTS, strict=True):
        pooled = encoder.backbone(encoder.preprocessor(([query], [document])))["pooled_output"]
        rows.append(np.asarray(pooled)[0] @ np.asarray(head.kernel)[:, 0] + np.asarray(head.bias)[0])
    return np.array(rows)


@pytest.fixture(scope="module")
def rows(encoder):
    """One logit per candidate."""
    return encoder.predict(ROWS, verbose=0)


@pytest.fixture(scope="module")
def served(encoder, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "model"
    encoder.export(path)
    return tf.saved_model.load(str(path)).signatures


def sigmoid(logits):
    return 1 / (1 + np.exp(-np.asarray(logits, np.float64)))


def test_predict(encoder, logits):
    found = encoder.predict((QUERIES, DOCUMENTS), batch_size=3, verbose=0)
    assert (found.shape, found.dtype) == ((5, 1), np.float32)
    np.testing.assert_allclose(found[:, 0], logits, atol=TOLERANCE)
    assert encoder.predict(([], []), verbose=0).shape == (0, 1)


def test_loss_of_graded_relevances(encoder, logits):
    weights = np.array([1.0, 2.0, 0.0, 0.5, 1.0])
    relevances = np.array(RELEVANCES)
    rows = relevances * np.log(sigmoid(logits)) + (1 - relevances) * np.log(1 - sigmoid(logits))
    result = encoder.evaluate((QUERIES, DOCUMENTS), RELEVANCES, sample_weight=weights, verbose=0, return_dict=True)
    assert result["loss"] == pytest.approx(-np.mean(weights * rows), abs=TOLERANCE)
    assert set(result) == {"loss", "auc"}


def test_it_learns(encoder, logits):
    assert encoder.last_logs["loss"] < 0.9 * encoder.first_logs["loss"]
    assert encoder.last_logs["auc"] > 0.7
    assert logits[[0, 3]].min() > logits[1] + 1  # relevances of 1 and of 0


@pytest.mark.parametrize(
    "column", [np.array(RELEVANCES)[:, None], np.array([1, 0, 0, 1, 1]), [True, False] * 2 + [True]]
)
def test_columns_of_relevances(encoder, column):
    encoded = encoder.pipeline.labels(None, column)
    np.testing.assert_array_equal(encoded, np.asarray(column, np.float32).reshape(-1))


def test_rank(encoder):
    documents = ["bad", "a good film", "", "good good", "a good film", "a film . a bad film !"]
    scores = encoder.answer((["good ?"] * 6, documents))["score"]
    found = encoder.rank("good ?", documents, batch_size=4)
    assert [row["corpus_id"] for row in found] == np.argsort(-scores, kind="stable").tolist()
    np.testing.assert_allclose([row["score"] for row in found], np.sort(scores)[::-1], atol=TOLERANCE)
    places = [row["corpus_id"] for row in found]
    assert places.index(1) + 1 == places.index(4), "equal documents keep their order"
    best = encoder.rank(b"good ?", np.array(documents), top_k=2, return_documents=True)
    assert [(row["corpus_id"], row["text"]) for row in best] == [(place, documents[place]) for place in places[:2]]


@pytest.mark.usefixtures("traces_nothing")
def test_scores_without_a_sigmoid(encoder, logits):
    """The loss stays that of the logit."""
    task = BertCrossEncoder(encoder.backbone, encoder.preprocessor, activation="linear")
    task.compile(run_eagerly=True)
    task.set_weights(encoder.get_weights())
    serve = task.signatures()[0].function
    np.testing.assert_allclose(serve(tf.constant(QUERIES), tf.constant(DOCUMENTS))["score"], logits, atol=TOLERANCE)
    ranks = task.rank(QUERIES[0], [DOCUMENTS[0], DOCUMENTS[2]])
    np.testing.assert_allclose([row["score"] for row in ranks], sorted(logits[[0, 2]], reverse=True), atol=TOLERANCE)
    encoder.reset_metrics()
    losses = [model.test_on_batch((QUERIES, DOCUMENTS), RELEVANCES)[0] for model in (task, encoder)]
    assert losses[0] == pytest.approx(losses[1], abs=TOLERANCE)
    assert task.get_config()["activation"] == "linear"


def test_rank_nothing(encoder):
    assert encoder.rank("good", []) == []


@pytest.mark.usefixtures("traces_nothing")
def test_keras_round_trip(encoder, tmp_path):
    encoder.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == encoder.get_config()
    columns = (QUERIES, DOCUMENTS)
    np.testing.assert_allclose(again.predict_on_batch(columns), encoder.predict_on_batch(columns), atol=TOLERANCE)


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_bfloat16(make):
    encoder = make(dtype="mixed_bfloat16")
    encoder.compile(run_eagerly=True)  # less work than a trace, for one step
    assert np.isfinite(encoder.train_on_batch((QUERIES, DOCUMENTS), RELEVANCES)).all()
    scores = encoder.answer((QUERIES, DOCUMENTS))["score"]
    assert scores.dtype == np.float32
    assert ((scores > 0) & (scores < 1)).all()


def test_export(encoder, served, logits):
    pairs = {"text": tf.constant(QUERIES), "text_pair": tf.constant(DOCUMENTS)}
    found = served["serving_default"](**pairs)["score"]
    assert found.shape == (5,)
    np.testing.assert_allclose(found, sigmoid(logits), atol=TOLERANCE)
    ids = served["tokenize"](**pairs)
    np.testing.assert_allclose(served["token_ids"](**ids)["logits"][:, 0], logits, atol=TOLERANCE)
    np.testing.assert_allclose(encoder.answer((QUERIES, DOCUMENTS))["score"], found, atol=TOLERANCE)


def test_a_pair_has_the_same_score_alone_and_in_a_batch(served):
    queries, documents = tf.constant(ODD_TEXTS * 7), tf.constant([text for text in ODD_TEXTS for _ in range(7)])
    together = served["serving_default"](text=queries, text_pair=documents)["score"].numpy()
    for row in (0, 6, 9, 33, 47, 48):
        alone = served["serving_default"](text=queries[row : row + 1], text_pair=documents[row : row + 1])["score"]
        assert together[row] == pytest.approx(alone.numpy()[0], abs=TOLERANCE)


@pytest.fixture
def compiled(encoder, trains_and_evaluates_eagerly):
    """The encoder, compiled with another loss within the test."""
    before = encoder.get_compile_config()

    def compile_it(loss="auto", **options):
        encoder.compile(keras.optimizers.SGD(0.0), loss=loss, **options)
        trains_and_evaluates_eagerly(encoder)
        return encoder

    yield compile_it
    encoder.compile_from_config(before)


class TestRowsOfCandidates:
    def test_predict(self, encoder, rows):
        assert rows.shape == (3, 3)
        np.testing.assert_allclose(rows[PRESENT], encoder.predict(PAIRS, verbose=0)[:, 0], atol=TOLERANCE)
        assert (rows[~PRESENT] == -1e9).all()
        streamed = list(encoder.predict_stream(zip(*ROWS, strict=True)))
        np.testing.assert_allclose(np.array(streamed)[PRESENT], rows[PRESENT], atol=TOLERANCE)

    @pytest.mark.parametrize("loss", [ListNet(), RankNet(), LambdaRank(top_k=2)])
    def test_losses_of_rows(self, compiled, rows, loss):
        grades = 3 * np.maximum(PADDED, -1 / 3)
        weights = np.array([1.0, 0.0, 2.0])
        result = compiled(loss).evaluate(
            ROWS, [[3 * grade for grade in row] for row in GRADES], sample_weight=weights, verbose=0, return_dict=True
        )
        assert result["loss"] == pytest.approx(float(loss(grades, rows, sample_weight=weights)), abs=TOLERANCE)

    def test_without_a_ranking_loss_rows_are_as_their_pairs(self, compiled):
        encoder, options = compiled(weighted_metrics=["accuracy"]), {"verbose": 0, "return_dict": True}
        expected = encoder.evaluate(PAIRS, PADDED[PRESENT], **options)
        assert encoder.evaluate(ROWS, GRADES, **options) == pytest.approx(expected, abs=TOLERANCE)
        weights = [0.5, 2, 0]
        expected = encoder.evaluate(PAIRS, PADDED[PRESENT], sample_weight=np.repeat(weights, [3, 1, 2]), **options)
        found = encoder.evaluate(ROWS, GRADES, sample_weight=weights, **options)
        assert found == pytest.approx(expected, abs=TOLERANCE)

    def test_every_kind_of_column_is_the_same_data(self, encoder, rows):
        filled = np.array([[*row, "", ""][:3] for row in CANDIDATES])
        for x, y in [
            ((np.array(ROWS[0]), filled), PADDED),
            ((tf.constant(ROWS[0]), tf.ragged.constant(CANDIDATES)), tf.ragged.constant(GRADES)),
            ((ROWS[0], filled.tolist()), np.maximum(PADDED, 0).tolist()),
        ]:
            np.testing.assert_allclose(encoder.predict(x, verbose=0), rows, atol=TOLERANCE)
            np.testing.assert_array_equal(encoder.pipeline.labels(encoder.pipeline.columns(x), y), PADDED)

    def test_every_kind_of_data_gives_the_same_batch(self, encoder):
        def generator():
            yield ROWS, GRADES
            yield (ROWS[0][1:], CANDIDATES[1:]), GRADES[1:]

        stream, _ = as_dataset(encoder.pipeline, generator())
        columns = encoder.pipeline.batches(ROWS, GRADES)
        table = encoder.pipeline.batches({"text": ROWS[0], "text_pair": CANDIDATES, "label": GRADES})
        for batches in (columns, table, encoder.pipeline.batches(stream)):
            ids, labels = next(iter(batches))
            np.testing.assert_array_equal(labels, PADDED)
            assert ids["token_ids"].shape[0] == 9
            assert np.asarray(ids["padding_mask"])[4].sum() == 3  # nothing but special tokens

    def test_only_rows_need_one_device_of_tensorflow(self, encoder):
        assert encoder.pipeline.counts_rows(ROWS)
        assert not encoder.pipeline.counts_rows(PAIRS)

    @pytest.mark.slow
    def test_fit(self, make):
        encoder = make()
        encoder.compile(keras.optimizers.Adam(2e-2), loss=ListNet())
        options = {"batch_size": 2, "verbose": 0, "validation_data": (ROWS, GRADES)}
        history = encoder.fit(ROWS, GRADES, epochs=8, group_by_length=True, **options).history
        assert history["val_loss"][-1] < history["val_loss"][0]
        assert set(history) == {"loss", "auc", "val_loss", "val_auc"}
        encoder.fit(ROWS, GRADES, validation_split=0.4, verbose=0)


class TestErrors:
    def test_rows_of_candidates(self, encoder, compiled):
        pipeline = encoder.pipeline
        with pytest.raises(ValueError, match="every candidate must have a grade. Received: .1, 0. in row 0 of 3"):
            pipeline.batches(ROWS, [[1, 0], [1], [0, 1]])
        with pytest.raises(
            ValueError, match=r"every grade must be in \[0, 1\] for this loss. Received: .* in row 2. Divide"
        ):
            pipeline.batches(ROWS, [[1, 0, 0], [1], [2, 1]])
        with pytest.raises(ValueError, match="every query must have its row of candidates. Received: 3 queries and 2"):
            pipeline.batches((ROWS[0], CANDIDATES[:2]), GRADES)
        with pytest.raises(ValueError, match="a candidate that is not empty. Received: none in row 1"):
            pipeline.batches((ROWS[0], [["a"], [""], ["b"]]), GRADES)
        with pytest.raises(ValueError, match="must be pairs of texts. Received: x=lists of texts. `rank` orders"):
            encoder.answer(ROWS)
        with pytest.raises(ValueError, match="`x` must yield"):
            pipeline.batches(tf.data.Dataset.from_tensors(((["a"], [[1]]), [[1.0]])))
        with pytest.raises(ValueError, match="must be those of pairs .* Give them as `weighted_metrics`"):
            compiled(metrics=["accuracy"]).test_on_batch(ROWS, GRADES)
        encoder = compiled(ListNet())
        with pytest.raises(ValueError, match="at least 0. Received: .* in row 0"):
            encoder.test_on_batch(ROWS, [[1, -1, 0], [1], [0, 1]])
        with pytest.raises(ValueError, match="`ListNet`: `y_true` must have several candidates .* as one row"):
            encoder.test_on_batch((QUERIES, DOCUMENTS), RELEVANCES)

    def test_single_texts(self, encoder):
        with pytest.raises(ValueError, match="this model takes pairs of texts. Received: single texts"):
            encoder.predict(QUERIES)

    def test_no_relevances(self, encoder):
        with pytest.raises(ValueError, match="`y` must hold one label for each text"):
            encoder.fit((QUERIES, DOCUMENTS))

    def test_relevance_out_of_range(self, encoder):
        with pytest.raises(ValueError, match=r"one number in \[0, 1\]. Received: 3.0 in row 2. Divide grades"):
            encoder.fit((QUERIES, DOCUMENTS), [1, 0, 3, 0, 0])

    def test_rank(self, encoder):
        with pytest.raises(TypeError, match=r"`query` must be one string. Received: query=\['good'\]"):
            encoder.rank(["good"], DOCUMENTS)
        with pytest.raises(ValueError, match="`top_k` must be at least 1. Received: top_k=0"):
            encoder.rank("good", DOCUMENTS, top_k=0)
        with pytest.raises(ValueError, match="`batch_size` must be at least 1"):
            encoder.rank("good", DOCUMENTS, batch_size=0)
        with pytest.raises(ValueError, match="texts must be a list. Received: one string"):
            encoder.rank("good", "film")
        with pytest.raises(ValueError, match="`preprocessor` must be given for raw text"):
            BertCrossEncoder(encoder.backbone).rank("good", DOCUMENTS)

    def test_activation(self, encoder):
        with pytest.raises(ValueError, match="`activation` must be one of .* Received: activation='gelu'"):
            BertCrossEncoder(encoder.backbone, activation="gelu")

    def test_dropout(self, encoder):
        with pytest.raises(ValueError, match="`dropout` must be at least 0 and less than 1. Received: dropout=1"):
            BertCrossEncoder(encoder.backbone, dropout=1)
