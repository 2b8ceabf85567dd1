import gc
import re

import keras
import numpy as np
import pytest

from keras_bert_layers import BertMaskedLM, BertPreprocessor, BertTokenizer
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.feeding.epochs import RowOrder
from keras_bert_layers.tasks.serving.answers import as_text

TEXTS = ["good film", "bad film", "a good night", "unhappy night", "good , good !", "bad", "a film"]
MASKED = ["a [MASK] film", "[MASK][MASK] night", "good", "", "un [MASK] , a bad film , [MASK] night"]
ODD = [b"", b" \t ", "😀 ليلة".encode(), b"good " * 5_000 + b"[MASK]", b"\xff[MASK] bad", b"[SEP]" * 30, b"[MASK]" * 40]
MAX_LENGTH = 9
# The same float32 sums in another order: eager against traced, one batch against another.
TRACE_TOLERANCE = 1e-5
# Most batches here have rows without a mask, whose answers are empty.
pytestmark = pytest.mark.filterwarnings("ignore:.*texts with no mask")


@pytest.fixture(scope="module")
def make_backbone(new_backbone, vocabulary):
    sizes = {"vocabulary_size": len(vocabulary) + 2, "dropout": 0.1, "attention_dropout": 0.1}
    return lambda **options: new_backbone(**sizes, **options)


@pytest.fixture(scope="module")
def preprocessor(tokenizer):
    return BertPreprocessor(tokenizer, max_length=MAX_LENGTH)


@pytest.fixture(scope="module")
def masked_lm(make_backbone, preprocessor, trains_and_evaluates_eagerly):
    """One model for all tests that do not change it."""
    return trains_and_evaluates_eagerly(BertMaskedLM(make_backbone(), preprocessor, top_k=3, seed=4))


@pytest.fixture(scope="module")
def served(masked_lm, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "model"
    masked_lm.export(path)
    return tf.saved_model.load(str(path)).signatures


def drawn(batches):
    return [[np.array(part).tolist() for part in keras.tree.flatten(batch)] for batch in batches]


class TestMasks:
    def batches(self, task, *, batch_size=3, epochs=None):
        return task.pipeline.batches(TEXTS, batch_size=batch_size, epochs=epochs)

    def test_training_masks_anew_in_every_epoch(self, masked_lm, make_epochs):
        batches = self.batches(masked_lm, epochs=make_epochs())
        epochs = [drawn(batches) for _ in range(3)]
        assert epochs[0] != epochs[1] != epochs[2] != epochs[0]

    def test_the_seed_repeats_them(self, masked_lm, preprocessor, make_epochs):
        """The task's own seed, whatever that of the training is."""
        tasks = [masked_lm, BertMaskedLM(masked_lm.backbone, preprocessor, seed=4)]
        first, second = (
            drawn(self.batches(task, epochs=make_epochs(seed, RowOrder.AS_GIVEN)))
            for task, seed in zip(tasks, (1, 2), strict=True)
        )
        assert first == second

    def test_evaluation_masks_follow_from_the_text_alone(self, masked_lm):
        def rows(dataset):
            found = {}
            for inputs, labels, weights in dataset:
                for row in range(len(labels)):
                    size = int(tf.reduce_sum(inputs["padding_mask"][row]))
                    masks = int(tf.reduce_sum(weights[row]))
                    found[str(inputs["token_ids"][row, :size])] = labels[row, :masks].numpy().tolist()
            return found

        expected = rows(self.batches(masked_lm))
        assert rows(self.batches(masked_lm, batch_size=2)) == expected
        reversed_batches = masked_lm.pipeline.batches(TEXTS[::-1], batch_size=7)
        assert rows(reversed_batches) == expected

    def test_sample_weight(self, masked_lm):
        weights = np.arange(7.0)
        _, _, found = masked_lm.pipeline.batches.one(TEXTS, None, weights)
        np.testing.assert_array_equal(found[:, 0], weights)

    def test_training_text_is_read_as_the_reference_reads_it(self, masked_lm, preprocessor):
        inputs, _, _ = masked_lm.pipeline.encode(["a [MASK] film"])
        size = preprocessor(["a [MASK] film"])["token_ids"].shape[1]
        assert inputs["token_ids"].shape[1] == size > 5  # "[", "mask" and "]" are plain words to Google's code


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        ("a good film", "no mask"),
        (["a [MASK] film", b"a [mask] film"], "1 of 2 texts with no mask, first in row 1"),
        (["a <mask> film"], "mask token of another model"),
        (["a [MASK] <mask> film"], "mask token of another model"),
    ],
    ids=["no mask", "another case", "RoBERTa's", "both"],
)
def test_answer_warns_of_texts_without_the_mask(masked_lm, texts, kind):
    with pytest.warns(UserWarning, match=rf"is written '\[MASK\]'\. Received: .*{kind}"):
        masked_lm.pipeline.answer_columns(np.atleast_1d(texts).astype(object))


class TestNumbers:
    def test_predict_gives_the_head_at_the_masks(self, masked_lm, preprocessor):
        logits = masked_lm.predict(MASKED, batch_size=2, verbose=0)
        assert logits.shape == (5, 2, 20)
        assert logits.dtype == np.float32
        for text, row in zip(MASKED, logits, strict=True):
            ids = masked_lm.pipeline.reader([text])
            hidden = masked_lm.backbone(ids)["sequence_output"]
            places = np.flatnonzero(ids["token_ids"][0] == preprocessor.tokenizer.mask_id)
            expected = masked_lm.get_layer("masked_lm_head")(hidden)[0].numpy()[places]
            np.testing.assert_allclose(row[: len(places)], expected, atol=TRACE_TOLERANCE)

    def test_both_references_read_the_mask(self, masked_lm, vocabulary, eagerly):
        tokenizer = BertTokenizer(vocabulary, reference="huggingface")
        other = BertMaskedLM(masked_lm.backbone, BertPreprocessor(tokenizer, max_length=MAX_LENGTH), top_k=3)
        other.set_weights(masked_lm.get_weights())
        with eagerly():
            answer = other.serve(tf.constant(MASKED))
        expected = masked_lm.answer(MASKED)
        np.testing.assert_array_equal(as_text({"token": answer["token"].numpy()})["token"], expected["token"])
        np.testing.assert_allclose(answer["probability"], expected["probability"], atol=TRACE_TOLERANCE)

    def test_answer_is_the_softmax_of_predict(self, masked_lm, vocabulary):
        logits = masked_lm.predict(MASKED, verbose=0)[..., : len(vocabulary)]
        probabilities = np.array(keras.ops.softmax(logits))
        answer = masked_lm.answer(MASKED, batch_size=2)
        assert answer["token"].shape == answer["probability"].shape == (5, 2, 3)
        for row, count in enumerate([1, 2, 0, 0, 1]):  # the second mask of the last text is beyond max_length
            best = np.argsort(-probabilities[row, :count], axis=-1)[:, :3]
            np.testing.assert_array_equal(answer["token"][row, :count], np.array(vocabulary)[best])
            np.testing.assert_allclose(
                answer["probability"][row, :count],
                np.take_along_axis(probabilities[row, :count], best, axis=-1),
                atol=TRACE_TOLERANCE,
            )
            assert (answer["token"][row, count:] == "").all()
            assert (answer["probability"][row, count:] == -1).all()

    def test_evaluate_is_the_same_for_all_batches_and_kinds_of_data(self, masked_lm):
        expected = masked_lm.evaluate(TEXTS, batch_size=7, verbose=0, return_dict=True)
        assert set(expected) == {"loss", "accuracy", "perplexity"}
        assert expected["perplexity"] == pytest.approx(np.exp(expected["loss"]), rel=TRACE_TOLERANCE)
        for x in (TEXTS, np.array(TEXTS[::-1])):
            masked_lm.reset_metrics()
            assert masked_lm.test_on_batch(x, return_dict=True) == pytest.approx(expected, rel=TRACE_TOLERANCE)
        batch = next(iter(masked_lm.pipeline.batches(TEXTS, batch_size=7)))
        (same,) = masked_lm.pipeline.batches(tf.data.Dataset.from_tensor_slices(TEXTS).batch(7))
        keras.tree.map_structure(np.testing.assert_array_equal, same, batch)
        inputs, labels, weights = batch
        logits = masked_lm(inputs).numpy()
        losses = -np.take_along_axis(np.array(keras.ops.log_softmax(logits)), labels.numpy()[..., None], -1)[..., 0]
        assert expected["loss"] == pytest.approx(np.average(losses, weights=weights), rel=TRACE_TOLERANCE)

    def test_predict_on_ids_datasets_and_single_batches(self, masked_lm, monkeypatch):
        monkeypatch.setattr(masked_lm, "run_eagerly", True)  # ids have a graph of their own
        expected = masked_lm.predict(MASKED, verbose=0)
        ids = {name: values.numpy() for name, values in masked_lm.pipeline.reader(MASKED).items()}
        batches = tf.data.Dataset.from_tensor_slices(MASKED).batch(1)
        for found in (masked_lm.predict(ids, verbose=0), masked_lm.predict(batches, verbose=0)):
            counts = [1, 2, 0, 0, 1]
            for row, count in enumerate(counts):
                np.testing.assert_allclose(found[row, :count], expected[row, :count], atol=TRACE_TOLERANCE)
        np.testing.assert_allclose(masked_lm.predict_on_batch(MASKED), expected, atol=TRACE_TOLERANCE)
        assert masked_lm.predict_on_batch({**ids, "mask_positions": np.zeros((5, 4), "int32")}).shape == (5, 4, 20)

    def test_no_masks_and_no_texts(self, masked_lm):
        assert masked_lm.predict(["good", "bad film"], verbose=0).shape == (2, 0, 20)
        assert masked_lm.predict([], verbose=0).shape == (0, 0, 20)
        assert masked_lm.answer(["good"])["token"].shape == (1, 0, 3)
        assert masked_lm.answer([])["probability"].shape == (0, 0, 3)

    def test_pairs(self, masked_lm):
        assert masked_lm.predict_on_batch((["a [MASK]"], ["[MASK] night"])).shape == (1, 2, 20)

    def test_pooler_is_not_trained_and_the_matrix_is_counted_once(self, masked_lm):
        pooler = masked_lm.backbone.get_layer("pooler").weights
        assert len(masked_lm.weights) == len(masked_lm.backbone.weights) + 5
        assert len(masked_lm.trainable_variables) == len(masked_lm.weights) - len(pooler)


class TestServed:
    @pytest.mark.parametrize("batch", [MASKED, ODD, *([text] for text in ODD), []], ids=len)
    def test_answers_what_keras_answers(self, masked_lm, served, batch):
        text = tf.constant(batch, shape=[len(batch)], dtype=tf.string)
        answer = served["serving_default"](text=text)
        expected = masked_lm.answer(batch)
        assert set(expected) == {"token", "probability"}
        assert set(answer) == {*expected, "bytes_cut"}
        np.testing.assert_array_equal(as_text({"token": answer["token"].numpy()})["token"], expected["token"])
        np.testing.assert_allclose(answer["probability"], expected["probability"], atol=TRACE_TOLERANCE)

    def test_ids(self, masked_lm, served):
        ids = served["tokenize"](text=tf.constant(MASKED))
        assert set(ids) == {"token_ids", "segment_ids", "padding_mask"}
        logits = served["token_ids"](**ids)["logits"]
        np.testing.assert_allclose(logits, masked_lm.predict(MASKED, verbose=0), atol=TRACE_TOLERANCE)

    def test_a_text_has_its_answer_in_every_batch(self, masked_lm):
        together = masked_lm.answer([*MASKED, *ODD])
        for row, text in enumerate([*MASKED, *ODD]):
            alone = masked_lm.answer([text])
            num_masks = alone["token"].shape[1]
            np.testing.assert_array_equal(alone["token"][0], together["token"][row, :num_masks])
            np.testing.assert_allclose(
                alone["probability"][0], together["probability"][row, :num_masks], atol=TRACE_TOLERANCE
            )
            assert (together["token"][row, num_masks:] == "").all()

    def test_masks_beyond_the_largest_length_keep_their_places(self, masked_lm):
        answer = masked_lm.answer([b"[MASK]" * 40])
        assert answer["token"].shape == (1, 40, 3)
        assert (answer["token"][0] != "").all(axis=-1).tolist() == [True] * (MAX_LENGTH - 2) + [False] * 33


@pytest.fixture(scope="module")
def trained(make_backbone, preprocessor):
    task = BertMaskedLM(make_backbone(), preprocessor, seed=4)
    task.compile(optimizer=keras.optimizers.Adam(1e-2))
    history = task.fit(["a good night"] * 40, epochs=6, batch_size=20, validation_data=["a good night"], verbose=0)
    return task, history.history


@pytest.mark.slow
class TestTraining:
    def test_it_learns_what_is_missing(self, trained):
        task, history = trained
        assert history["loss"][-1] < history["loss"][0] / 3
        assert {"val_loss", "val_accuracy", "val_perplexity", "accuracy", "perplexity"} <= set(history)
        answer = task.answer(["a [MASK] night", "a good [MASK]"])
        assert answer["token"][:, 0, 0].tolist() == ["good", "night"]

    @pytest.mark.usefixtures("traces_nothing")
    def test_keras_file_keeps_them_tied(self, vocabulary, trained, tmp_path):
        task, _ = trained
        task.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        assert again.get_config() == task.get_config()
        assert again.get_layer("masked_lm_head").token_embedding is again.backbone.get_layer("embedding")
        assert again.count_params() == task.count_params()
        assert int(again.optimizer.iterations) == int(task.optimizer.iterations) == 12
        np.testing.assert_array_equal(again.answer(MASKED)["token"], task.answer(MASKED)["token"])
        again.run_eagerly = task.run_eagerly = True  # quicker than two more graphs
        assert again.test_on_batch(TEXTS) == pytest.approx(task.test_on_batch(TEXTS))
        before = again.backbone.get_layer("embedding").token_embedding.numpy()
        again.train_on_batch(["a good night"])
        moved = np.abs(again.backbone.get_layer("embedding").token_embedding.numpy() - before).max(axis=-1)
        assert moved[vocabulary.index("?")] > 0  # no text holds it: that came through the logits


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_half_precision(make_backbone, preprocessor):
    task = BertMaskedLM(make_backbone(dtype="mixed_bfloat16"), preprocessor)
    task.compile(run_eagerly=True)  # quicker than a graph for one step
    assert np.isfinite(task.train_on_batch(TEXTS)).all()
    assert task(task.pipeline.encode(TEXTS)[0]).dtype == tf.float32
    assert np.isfinite(task.answer(MASKED)["probability"]).all()


@pytest.mark.slow
def test_without_preprocessor(make_backbone, masked_lm, tmp_path):
    task = BertMaskedLM(make_backbone())
    task.compile(run_eagerly=True)
    batch = masked_lm.pipeline.encode(TEXTS)
    inputs, labels, weights = keras.tree.map_structure(np.array, batch)
    assert np.isfinite(task.train_on_batch(inputs, labels, sample_weight=weights)).all()
    task.export(tmp_path / "model")
    served = tf.saved_model.load(str(tmp_path / "model")).signatures
    assert set(served) == {"token_ids", "serving_default"}  # the same one, as there is no other
    np.testing.assert_allclose(served["token_ids"](**batch[0])["logits"], task(inputs), atol=TRACE_TOLERANCE)
    del task
    gc.collect()


@pytest.mark.parametrize("metrics", [{"metrics": []}, {"weighted_metrics": ["accuracy"]}])
def test_own_metrics(make_backbone, metrics):
    task = BertMaskedLM(make_backbone())
    task.compile(optimizer="sgd", **metrics)
    config = task.get_compile_config()
    assert config["metrics"] is None
    assert config["weighted_metrics"] == next(iter(metrics.values()))


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"top_k": 0}, ValueError, "`BertMaskedLM`: `top_k` must be at least 1"),
            ({"top_k": 19}, ValueError, "`top_k` must be at most 18, the vocabulary's size. Received: top_k=19"),
            ({"mask_selection_rate": 1}, ValueError, "`BertMaskedLM`: `mask_selection_rate` must be at least 0 and"),
            ({"whole_words": "yes"}, TypeError, "`BertMaskedLM`: `whole_words` must be True or False"),
            ({"backbone": None}, TypeError, "`backbone` must be a BertBackbone"),
        ],
    )
    def test_arguments(self, masked_lm, preprocessor, arguments, error, message):
        with pytest.raises(error, match=re.escape(message)):
            BertMaskedLM(**{"backbone": masked_lm.backbone, "preprocessor": preprocessor, **arguments})

    def test_vocabulary_without_mask(self, masked_lm):
        tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
        with pytest.raises(ValueError, match=r"`BertMaskedLM`: `tokenizer` must have a mask token in its vocabulary"):
            BertMaskedLM(masked_lm.backbone, BertPreprocessor(tokenizer, max_length=MAX_LENGTH))

    @pytest.mark.parametrize("method", ["fit", "evaluate", "train_on_batch", "test_on_batch"])
    def test_labels(self, masked_lm, method):
        with pytest.raises(ValueError, match="`y` must be None for raw text.* The task masks tokens of the texts"):
            getattr(masked_lm, method)(TEXTS, [0] * 7)

    def test_labels_in_a_dataset(self, masked_lm):
        with pytest.raises(ValueError, match="`y` must be None for raw text"):
            masked_lm.fit(tf.data.Dataset.from_tensors((TEXTS, [0] * 7)))

    def test_nothing_to_train_on(self, masked_lm):
        with pytest.raises(ValueError, match="`x` must hold at least one row"):
            masked_lm.fit([])

    def test_call_without_positions(self, masked_lm, preprocessor):
        with pytest.raises(ValueError, match="mask_positions"):
            masked_lm(preprocessor(TEXTS))


def test_head_of_another_kind_than_the_encoder(make_backbone):
    task = BertMaskedLM(make_backbone(), head_activation="relu", head_layer_norm_epsilon=0.5)
    head = task.get_layer("masked_lm_head")
    assert (head.activation, head.layer_norm_epsilon) == ("relu", 0.5)
    assert (task.backbone.config.activation, task.backbone.config.layer_norm_epsilon) == ("gelu_erf", 1e-12)
    again = BertMaskedLM.from_config(task.get_config()).get_layer("masked_lm_head")
    assert (again.activation, again.layer_norm_epsilon) == ("relu", 0.5)
    with pytest.raises(ValueError, match=r"`MaskedLMHead`: `activation` must be one of .*'gelu'"):
        BertMaskedLM(make_backbone(), head_activation="gelu")
