import re

import keras
import numpy as np
import pytest

from keras_bert_layers import BertPreprocessor, BertPretrainer
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.serving.answers import as_text

TEXTS = ["good film", "bad film", "a good night", "unhappy night", "good , good !", "bad", "a film"]
DOCUMENTS = [TEXTS[:4], TEXTS[4:], TEXTS[2:], ["", "night"], []]
PAIRS = (TEXTS, TEXTS[::-1])
LABELS = [0, 1, 1, 0, 1, 0, 1]
MASKED = (["a [MASK] film", "good night", "[MASK]", ""], ["[MASK] night [MASK]", "[MASK]", "bad", ""])
ODD = [b"", b" \t ", "😀 ليلة".encode(), b"good " * 5_000 + b"[MASK]", b"\xff[MASK] bad", b"[SEP]" * 30, b"[MASK]" * 40]
MAX_LENGTH = 11
# The same float32 sums in another order: eager against traced, one batch against another.
TRACE_TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def preprocessor(tokenizer):
    return BertPreprocessor(tokenizer, max_length=MAX_LENGTH)


@pytest.fixture(scope="module")
def make(new_backbone, preprocessor):
    def make(dtype=None):
        backbone = new_backbone(dtype=dtype, dropout=0.1, attention_dropout=0.1)
        return BertPretrainer(backbone, preprocessor, top_k=3, seed=4)

    return make


@pytest.fixture(scope="module")
def pretrainer(make, trains_and_evaluates_eagerly):
    """One model for all tests that do not change it."""
    return trains_and_evaluates_eagerly(make())


@pytest.fixture(scope="module")
def trained(make):
    """Trained on two documents in which one sentence follows one other."""
    task = make()
    task.compile(optimizer=keras.optimizers.Adam(1e-2))
    documents = [["a good night", "unhappy film"], ["bad bad", "! , ?"]] * 80
    # With other dropout it has not always learned the second in half as many steps.
    history = task.fit(documents, epochs=4, batch_size=8, validation_split=0.1, verbose=0)
    return task, history.history


def rows(batches):
    """All pairs of an epoch, each as its tokens, masks and label."""
    found = []
    for inputs, labels, weights in batches:
        for row in range(len(weights["next_sentence"])):
            size = int(tf.reduce_sum(inputs["padding_mask"][row]))
            masks = int(tf.reduce_sum(weights["masked_lm"][row]))
            parts = inputs["token_ids"][row, :size], inputs["segment_ids"][row, :size]
            parts += inputs["mask_positions"][row, :masks], labels["masked_lm"][row, :masks]
            found.append([*(part.numpy().tolist() for part in parts), int(labels["next_sentence"][row])])
    return found


@pytest.fixture(scope="module")
def training(pretrainer, make_epochs):
    """The batches of documents, which differ from pass to pass."""
    return pretrainer.pipeline.batches(DOCUMENTS, batch_size=3, epochs=make_epochs())


@pytest.fixture(scope="module")
def epochs(training):
    """The rows of three epochs."""
    return [rows(training) for _ in range(3)]


@pytest.fixture(scope="module")
def evaluation(pretrainer):
    """All rows that the documents are evaluated on, as one batch."""
    (batch,) = pretrainer.pipeline.batches(DOCUMENTS, batch_size=99)
    return batch


class TestPairsOfDocuments:
    def test_rows_are_two_segments(self, epochs, preprocessor):
        tokenizer = preprocessor.tokenizer
        for ids, segments, positions, labels, _ in epochs[0]:
            restored = np.array(ids)
            restored[positions] = labels
            first = segments.index(1)
            assert len(ids) <= MAX_LENGTH
            assert restored[0] == tokenizer.start_id
            assert np.flatnonzero(restored == tokenizer.separator_id).tolist() == [first - 1, len(ids) - 1]
            assert segments == [0] * first + [1] * (len(ids) - first)
            assert len(positions) == max(1, round(0.15 * len(ids)))

    def test_every_epoch_has_other_pairs_but_as_many(self, epochs, training):
        assert epochs[0] != epochs[1] != epochs[2]
        assert {len(epoch) for epoch in epochs} == {len(epochs[0])}
        assert int(training.cardinality()) == -(-len(epochs[0]) // 3)

    def test_the_seed_repeats_them(self, make, epochs, make_epochs):
        """The task's own seed, whatever that of the training is."""
        assert rows(make().pipeline.batches(DOCUMENTS, batch_size=3, epochs=make_epochs(seed=1))) == epochs[0]

    def test_evaluation_is_the_same_each_time_in_batches_of_any_size(self, pretrainer, evaluation):
        batches = pretrainer.pipeline.batches(DOCUMENTS, batch_size=5)
        assert rows(batches) == rows(batches) == rows([evaluation])


class TestNumbers:
    def test_loss_is_the_sum_of_both(self, pretrainer, evaluation):
        result = pretrainer.evaluate(DOCUMENTS, verbose=0, return_dict=True)
        assert set(result) == {
            "loss",
            "masked_lm_loss",
            "masked_lm_accuracy",
            "masked_lm_perplexity",
            "next_sentence_loss",
            "next_sentence_accuracy",
        }
        both = result["masked_lm_loss"] + result["next_sentence_loss"]
        assert result["loss"] == pytest.approx(both, rel=TRACE_TOLERANCE)
        assert result["masked_lm_perplexity"] == pytest.approx(np.exp(result["masked_lm_loss"]), rel=TRACE_TOLERANCE)
        inputs, labels, weights = evaluation
        outputs = pretrainer(inputs)
        for name in ("masked_lm", "next_sentence"):
            shares = np.array(keras.ops.log_softmax(outputs[name]))
            losses = -np.take_along_axis(shares, labels[name].numpy()[..., None], -1)[..., 0]
            expected = np.average(losses, weights=weights[name])
            assert result[f"{name}_loss"] == pytest.approx(expected, rel=TRACE_TOLERANCE)

    def test_pairs_with_labels(self, pretrainer):
        dataset = tf.data.Dataset.from_tensor_slices((PAIRS, LABELS)).batch(7)
        ((inputs, labels, weights),) = pretrainer.pipeline.batches(dataset)
        assert labels["next_sentence"].numpy().tolist() == LABELS
        pretrainer.reset_metrics()
        expected = pretrainer.test_on_batch(PAIRS, LABELS, return_dict=True)
        pretrainer.reset_metrics()
        found = keras.Model.test_on_batch(pretrainer, inputs, labels, sample_weight=weights, return_dict=True)
        assert found == pytest.approx(expected, rel=TRACE_TOLERANCE)
        _, labels, weights = pretrainer.pipeline.batches.one(PAIRS, LABELS, np.arange(7.0))
        assert labels["next_sentence"].tolist() == LABELS
        np.testing.assert_array_equal(weights["masked_lm"][:, 0], np.arange(7.0))
        np.testing.assert_array_equal(weights["next_sentence"], np.arange(7.0))

    def test_predict_is_both_heads_on_the_backbone(self, pretrainer):
        found = pretrainer.predict(MASKED, batch_size=2, verbose=0)
        ids = pretrainer.pipeline.model_inputs(pretrainer.pipeline.reader(MASKED))
        hidden = pretrainer.backbone({name: ids[name] for name in ("token_ids", "segment_ids", "padding_mask")})
        masked = pretrainer.get_layer("masked_lm_head")(hidden["sequence_output"], ids["mask_positions"])
        assert found["masked_lm"].shape == (4, 3, len(pretrainer.preprocessor.tokenizer.get_config()["vocabulary"]))
        is_mask = np.asarray(ids["mask_positions"]) > 0
        np.testing.assert_allclose(found["masked_lm"][is_mask], masked.numpy()[is_mask], atol=TRACE_TOLERANCE)
        pairs = pretrainer.get_layer("next_sentence_head")(hidden["pooled_output"])
        np.testing.assert_allclose(found["next_sentence"], pairs, atol=TRACE_TOLERANCE)

    def test_answer(self, pretrainer, vocabulary):
        answer = pretrainer.answer(MASKED, batch_size=3)
        logits = pretrainer.predict(MASKED, verbose=0)
        expected = np.array(keras.ops.softmax(logits["next_sentence"]))[:, 0]
        np.testing.assert_allclose(answer["is_next_probability"], expected, atol=TRACE_TOLERANCE)
        assert answer["token"].shape == (4, 3, 3)
        best = np.array(vocabulary)[logits["masked_lm"].argmax(axis=-1)]
        for row, count in enumerate([3, 1, 1, 0]):
            assert answer["token"][row, :count, 0].tolist() == best[row, :count].tolist()
            assert (answer["token"][row, count:] == "").all()

    def test_masks_that_truncation_cuts_off_keep_their_places(self, pretrainer):
        answer = pretrainer.answer((["a [MASK] " + "good " * 9 + "[MASK]"], ["[MASK] " + "bad " * 9]))
        assert (answer["token"][0] != "").all(axis=-1).tolist() == [True, False, True]

    def test_no_rows(self, pretrainer):
        assert pretrainer.predict(([], []), verbose=0)["next_sentence"].shape == (0, 2)
        assert pretrainer.answer(([], []))["is_next_probability"].shape == (0,)


class TestFiles:
    def test_export(self, pretrainer, tmp_path):
        pretrainer.export(tmp_path / "model")
        served = tf.saved_model.load(str(tmp_path / "model")).signatures
        for pair in (MASKED, (ODD, ODD[::-1]), (ODD[3:4], ODD[3:4]), ([], [])):
            text, text_pair = (tf.constant(side, shape=[len(side)], dtype=tf.string) for side in pair)
            answer, expected = served["serving_default"](text=text, text_pair=text_pair), pretrainer.answer(pair)
            assert set(expected) == {"is_next_probability", "token", "probability"}
            assert set(answer) == {*expected, "bytes_cut"}
            np.testing.assert_array_equal(as_text({"token": answer["token"].numpy()})["token"], expected["token"])
            for name in ("is_next_probability", "probability"):
                np.testing.assert_allclose(answer[name], expected[name], atol=TRACE_TOLERANCE)
        ids = served["tokenize"](text=tf.constant(MASKED[0]), text_pair=tf.constant(MASKED[1]))
        logits = served["token_ids"](**ids)
        keras.tree.map_structure(
            lambda found, wanted: np.testing.assert_allclose(found, wanted, atol=TRACE_TOLERANCE),
            dict(logits),
            pretrainer.predict(MASKED, verbose=0),
        )

    def test_a_pair_has_its_answer_in_every_batch(self, pretrainer):
        together = pretrainer.answer((ODD, ODD[::-1]))
        for row, pair in enumerate(zip(ODD, ODD[::-1], strict=True)):
            alone = pretrainer.answer(tuple([side] for side in pair))
            num_masks = alone["token"].shape[1]
            np.testing.assert_array_equal(alone["token"][0], together["token"][row, :num_masks])
            np.testing.assert_allclose(
                alone["is_next_probability"][0], together["is_next_probability"][row], atol=TRACE_TOLERANCE
            )

    @pytest.mark.slow
    @pytest.mark.usefixtures("traces_nothing")
    def test_keras_round_trip(self, trained, tmp_path):
        task, _ = trained
        task.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        assert again.get_config() == task.get_config()
        assert again.get_layer("masked_lm_head").token_embedding is again.backbone.get_layer("embedding")
        assert again.count_params() == task.count_params()
        again.run_eagerly = task.run_eagerly = True  # quicker than two more graphs
        assert again.test_on_batch(PAIRS, LABELS) == pytest.approx(task.test_on_batch(PAIRS, LABELS))
        answer, expected = again.answer(MASKED), task.answer(MASKED)
        np.testing.assert_array_equal(answer["is_next_probability"], expected["is_next_probability"])


@pytest.mark.slow
def test_it_learns_both(trained):
    task, history = trained
    assert {"val_loss", "val_masked_lm_perplexity", "val_next_sentence_accuracy"} <= set(history)
    assert history["masked_lm_loss"][-1] < 0.8 * history["masked_lm_loss"][0]
    answer = task.answer((["a good [MASK]"] * 2, ["unhappy film", "! , ?"]))
    follows, does_not = answer["is_next_probability"]
    assert follows > 1.5 * does_not


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_half_precision(make):
    task = make(dtype="mixed_bfloat16")
    task.compile(run_eagerly=True)  # quicker than a graph for one step
    assert np.isfinite(task.train_on_batch(PAIRS, LABELS)).all()
    outputs = task(task.pipeline.encode(PAIRS, tf.constant(LABELS))[0])
    assert {output.dtype for output in outputs.values()} == {tf.float32}
    assert np.isfinite(task.answer(MASKED)["is_next_probability"]).all()


class TestErrors:
    def test_labels_beside_documents(self, pretrainer):
        with pytest.raises(ValueError, match="`BertPretrainer`: `y` must be None where rows are made of documents"):
            pretrainer.fit(DOCUMENTS, LABELS)
        with pytest.raises(ValueError, match="`sample_weight` must be None where rows are made of documents"):
            pretrainer.evaluate(DOCUMENTS, sample_weight=LABELS)

    @pytest.mark.parametrize("method", ["fit", "evaluate", "train_on_batch", "test_on_batch"])
    def test_no_labels_beside_pairs(self, pretrainer, method):
        with pytest.raises(ValueError, match="`y` must be given for pairs of texts. .* Give 0 where the second"):
            getattr(pretrainer, method)(PAIRS)

    def test_labels_of_pairs(self, pretrainer):
        with pytest.raises(ValueError, match=r"every label must be 0 .* or 1 .*Received: .*2.* in row 1"):
            pretrainer.fit((["a", "a"], ["a", "a"]), [0, 2])

    def test_not_documents(self, pretrainer):
        with pytest.raises(TypeError, match="`BertPretrainer`: a document must be a list of sentences. .*'good film'"):
            pretrainer.fit(TEXTS)
        with pytest.raises(TypeError, match="`BertPretrainer`: `documents` must be a list of lists of sentences"):
            pretrainer.evaluate(iter(DOCUMENTS))
        with pytest.raises(TypeError, match="sentences must be strings. Received: 3 as sentence 0 of document 0"):
            pretrainer.fit([[3]], validation_split=0.5)

    def test_split_leaves_nothing(self, pretrainer):
        with pytest.raises(ValueError, match="`validation_split` must leave a row of 1 to train on"):
            pretrainer.fit([["good", "bad"]], validation_split=0.5)

    def test_top_k(self, pretrainer, preprocessor):
        with pytest.raises(ValueError, match=re.escape("`BertPretrainer`: `top_k` must be at most 18")):
            BertPretrainer(pretrainer.backbone, preprocessor, top_k=19)
