import unicodedata

import byte_pair_models
import keras
import numpy as np
import pytest

from keras_bert_layers import BertPreprocessor, BertQuestionAnswerer, BertTokenizer
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.decoding import decode_spans
from keras_bert_layers.layers.span_head import MASKED_LOGIT
from keras_bert_layers.preprocessing import BytePairTokenizer, SpanPreprocessor
from keras_bert_layers.tasks.prediction import windows as prediction_windows
from keras_bert_layers.tasks.serving.answers import as_text

QUESTIONS = ["good ?", "", "a film", "bad night ?", "film"]
CONTEXTS = ["a good film , a bad night , a good good film .", "", "Ünhappy films", "bad !", "ünhappy good ! " * 9]
STARTS = [[2, 30], [], [0], [], [8]]
ANSWERS = [["good film", "good"], [], ["Ünhappy"], [], ["good"]]
X, Y = (QUESTIONS, CONTEXTS), (STARTS, ANSWERS)
ODD_TEXTS = [
    "",
    " \t\n",
    "\0",
    b"\xff bad \xc3",
    "[SEP] [CLS]",
    "\N{SNOWMAN} \U0001f600 film",
    "جيد",
    "good film " * 200,  # several parts of windows
]
MAX_LENGTH, STRIDE, MAX_ANSWER_LENGTH, NUM_BEST = 13, 2, 3, 4
# The same float32 sums in another order: eager against traced, one batch against another.
TOLERANCE = 1e-5
KEYS = ("start", "end", "answer")
SIDES = ("start_logits", "end_logits")


@pytest.fixture(scope="module")
def make(new_backbone, vocabulary):
    preprocessor = SpanPreprocessor(BertTokenizer(vocabulary), MAX_LENGTH, stride=STRIDE)

    def make(dtype=None):
        backbone = new_backbone(seed=13, dtype=dtype, max_sequence_length=MAX_LENGTH, attention_dropout=0.1)
        return BertQuestionAnswerer(backbone, preprocessor, max_answer_length=MAX_ANSWER_LENGTH, n_best=NUM_BEST)

    return make


@pytest.fixture(scope="module")
def answerer(make, train_eagerly, eagerly):
    """One model for all tests of this file, trained until it knows its few rows; eagerly, as steps are few."""
    answerer = make()
    answerer.compile(keras.optimizers.Adam(2e-2))
    train_eagerly(answerer, X, Y, steps=16)
    with eagerly():
        answerer.tune_threshold(X, ANSWERS)
    return answerer


@pytest.fixture(scope="module")
def windows(answerer):
    return {name: tensor.numpy() for name, tensor in answerer.preprocessor(X).items()}


@pytest.fixture(scope="module")
def labels(answerer):
    """The places of starts and ends in all windows of X."""
    return {side: answerer.pipeline.batches.one(X, Y)[1][side] for side in SIDES}


@pytest.fixture(scope="module")
def logits(answerer):
    return answerer.predict(X, batch_size=3, verbose=0)


@pytest.fixture(scope="module")
def answers(answerer):
    return answerer.answer(X)


@pytest.fixture(scope="module")
def best(answerer, eagerly):
    """The best answers without their graph, which is a part of the graph of `answers`."""
    with eagerly():
        return answerer.best_answers(X)


@pytest.fixture(scope="module")
def served(answerer, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "model"
    answerer.export(path)
    return tf.saved_model.load(str(path))


def serve(answerer, x=X):
    """The answers without a graph, which would take seconds to trace."""
    return as_text({name: tensor.numpy() for name, tensor in answerer.serve(*map(tf.constant, x)).items()})


def ask(served, signature, questions, contexts):
    found = served.signatures[signature](question=tf.constant(questions), context=tf.constant(contexts))
    if signature != "tokenize":
        assert found.pop("bytes_cut").numpy().tolist() == [0] * len(questions)
    return as_text({name: tensor.numpy() for name, tensor in found.items()})


def check_equal(found, expected):
    assert set(found) == set(expected)
    for name, values in expected.items():
        if values.dtype == object or values.dtype.kind == "i":
            assert found[name].tolist() == values.tolist(), name
        else:
            np.testing.assert_allclose(found[name], values, atol=TOLERANCE, err_msg=name)


class TestTraining:
    @pytest.mark.slow
    def test_learns(self, make):
        answerer = make()
        answerer.compile(keras.optimizers.Adam(1e-2))
        rows = (QUESTIONS * 12, CONTEXTS * 12)  # an epoch costs more than its steps
        history = answerer.fit(rows, (STARTS * 12, ANSWERS * 12), batch_size=8, epochs=2, verbose=0).history
        assert history["loss"][-1] < 0.7 * history["loss"][0]
        names = {"loss", *(f"{side}_{what}" for side in SIDES for what in ("loss", "accuracy"))}
        assert set(history) == names
        answerer.tune_threshold(X, ANSWERS)
        found = dict(zip(QUESTIONS, answerer.answer(X)["answer"], strict=True))
        assert found[""] == found["bad night ?"] == ""
        assert found["a film"] == "Ünhappy"

    def test_evaluate(self, answerer, windows, logits, labels):
        """The mean over all windows of half the sum of two cross entropies, in NumPy."""
        losses, right = [], []
        for side in SIDES:
            values, places = logits[side].astype("float64"), labels[side]
            own = values[np.arange(len(values)), places]
            losses.append(np.log(np.exp(values - own[:, None]).sum(axis=1)))
            right.append(values.argmax(axis=1) == places)
        result = answerer.evaluate(X, Y, batch_size=len(windows["rows"]), verbose=0, return_dict=True)
        assert result["loss"] == pytest.approx(np.mean(losses), abs=TOLERANCE)
        assert [result[f"{side}_accuracy"] for side in SIDES] == pytest.approx(np.mean(right, axis=1).tolist())

    def test_labels_are_of_the_first_answer(self, windows, labels):
        start, end = (labels[side] for side in SIDES)
        for window, row in enumerate(windows["rows"]):
            if (start[window], end[window]) == (0, 0):
                continue
            begin, stop = windows["starts"][window, start[window]], windows["ends"][window, end[window]]
            assert CONTEXTS[row].encode()[begin:stop].decode() == ANSWERS[row][0]
        assert set(windows["rows"][start > 0]) == {0, 2, 4}

    def test_steps_hold_windows_in_the_order_of_the_rows(self, answerer, windows, labels):
        batches = answerer.pipeline.batches(X, Y, batch_size=4)
        steps = list(batches.as_numpy_iterator())
        sizes = [len(ids["token_ids"]) for ids, _ in steps]
        assert sizes[:-1] == [4] * (len(sizes) - 1)
        assert len(sizes) == int(batches.cardinality())
        for side in SIDES:
            np.testing.assert_array_equal(np.concatenate([step[side] for _, step in steps]), labels[side])
        for ids, _ in steps:
            width = ids["padding_mask"].sum(axis=1).max()
            assert {tensor.shape[1] for tensor in ids.values()} == {width}
        first = np.concatenate([ids["token_ids"][:, :5] for ids, _ in steps])
        np.testing.assert_array_equal(first, windows["token_ids"][:, :5])

    def test_shuffled_steps_hold_the_same_windows(self, answerer, windows, make_epochs):
        found = [
            row[mask > 0].tolist()
            for ids, _ in answerer.pipeline.batches(X, Y, batch_size=4, epochs=make_epochs()).as_numpy_iterator()
            for row, mask in zip(ids["token_ids"], ids["padding_mask"], strict=True)
        ]
        expected = [
            row[mask > 0].tolist() for row, mask in zip(windows["token_ids"], windows["padding_mask"], strict=True)
        ]
        assert sorted(found) == sorted(expected)
        assert found != expected

    def test_other_forms_of_data(self, answerer, windows, labels):
        dictionaries = [{"answer_start": start, "text": text} for start, text in zip(STARTS, ANSWERS, strict=True)]
        y = ([start[0] if start else -1 for start in STARTS], [answer[0] if answer else "" for answer in ANSWERS])
        weights = np.arange(5.0)
        dataset = tf.data.Dataset.from_tensor_slices((X, y, weights)).batch(5)
        (step,) = answerer.pipeline.batches(dataset).as_numpy_iterator()
        for ids, found, weight in (step, answerer.pipeline.batches.one(X, dictionaries, weights)):
            np.testing.assert_array_equal(ids["token_ids"], windows["token_ids"])
            np.testing.assert_array_equal(weight, weights[windows["rows"]])
            for side in SIDES:
                np.testing.assert_array_equal(found[side], labels[side])

    def test_split(self, answerer):
        (x, y, _), (last_x, last_y, _) = answerer.pipeline.split(X, Y, None, 0.4)
        assert [column.tolist() for column in (*x, *last_x)] == [
            *(column[:3] for column in X),
            *(column[3:] for column in X),
        ]
        assert [column.tolist() for column in (*y, *last_y)] == [
            [2, -1, 0],
            ["good film", "", "Ünhappy"],
            [-1, 8],
            ["", "good"],
        ]

    def test_the_pooler_is_left_alone(self, answerer):
        assert not any("pooler" in weight.path for weight in answerer.trainable_weights)
        assert len(answerer.trainable_variables) == len(answerer.weights) - 2

    @pytest.mark.usefixtures("traces_nothing")
    def test_mixed_bfloat16(self, make):
        answerer = make(dtype="mixed_bfloat16")
        answerer.compile(run_eagerly=True)
        assert np.isfinite(answerer.train_on_batch(X, Y)).all()
        assert {output.dtype for output in answerer.output.values()} == {"float32"}
        assert serve(answerer)["answer"][1] == ""


class TestAnswers:
    def test_equal_the_decoded_logits(self, best, windows, logits):
        expected = decode_spans(
            *(logits[side] for side in SIDES),
            windows,
            CONTEXTS,
            num_best=NUM_BEST,
            max_answer_length=MAX_ANSWER_LENGTH,
        )
        check_equal(best, as_text({name: tensor.numpy() for name, tensor in expected.items()}))

    def test_are_cut_from_the_bytes(self, answers):
        for context, answer, start, end in zip(
            CONTEXTS, answers["answer"], answers["start"], answers["end"], strict=True
        ):
            assert answer == (context.encode()[start:end].decode() if start >= 0 else "")
            assert (start == -1) == (end == -1) == (answer == "")

    def test_do_not_depend_on_the_batch(self, answerer, answers):
        check_equal(answerer.answer(X, batch_size=1), answers)

    def test_do_not_depend_on_how_many_windows_go_together(self, answerer, answers, monkeypatch):
        monkeypatch.setattr(prediction_windows, "default_max_tokens", lambda: 3 * 24)
        check_equal(serve(answerer), answers)

    def test_only_the_context_and_cls_have_logits(self, windows, logits):
        may_be = windows["starts"] >= 0
        may_be[:, 0] = True
        for side in SIDES:
            np.testing.assert_array_equal(logits[side] != MASKED_LOGIT, may_be)

    def test_no_rows(self, answerer, served):
        assert answerer.answer(([], []))["answer"].shape == (0,)
        none = tf.constant([], tf.string)
        assert ask(served, "n_best", none, none)["start"].shape == (0, NUM_BEST)
        assert answerer.predict(([], []))["end_logits"].shape == (0, 0)


class TestFiles:
    @pytest.mark.usefixtures("traces_nothing")
    def test_keras_round_trip(self, answerer, answers, tmp_path):
        answerer.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        assert again.get_config() == answerer.get_config()
        assert again.no_answer_threshold == answerer.no_answer_threshold is not None
        check_equal(serve(again), answers)
        assert again.get_compile_config() == answerer.get_compile_config()
        assert again.get_compile_config()["loss_weights"] == dict.fromkeys(SIDES, 0.5)

    def test_served_answers(self, served, answers, best):
        assert set(served.signatures) == {"serving_default", "n_best", "token_ids", "tokenize"}
        check_equal(ask(served, "serving_default", *X), answers)
        check_equal(ask(served, "n_best", *X), best)

    @pytest.mark.parametrize("signature", ["serving_default", "n_best"])
    def test_what_is_cut_is_reported(self, served, signature):
        found = served.signatures[signature](question=tf.constant(["good"]), context=tf.constant(["x" * 100_007]))
        assert found["bytes_cut"].numpy().tolist() == [7]

    @pytest.mark.usefixtures("traces_nothing")
    def test_odd_texts(self, answerer, served):
        contexts = [text for text in ODD_TEXTS for _ in range(2)]
        questions = ["good ?", *ODD_TEXTS[:-1]] * 2
        check_equal(ask(served, "serving_default", questions, contexts), answerer.answer((questions, contexts)))
        check_equal(ask(served, "n_best", questions, contexts), answerer.best_answers((questions, contexts)))

    def test_served_ids(self, served, logits, windows):
        tokens = ask(served, "tokenize", *X)
        assert {values.shape[0] for values in tokens.values()} == {len(QUESTIONS)}
        is_window = tokens["padding_mask"].any(axis=2)
        for name, values in tokens.items():
            np.testing.assert_array_equal(values[is_window], windows[name])
        ids = {name: tf.constant(windows[name]) for name in ("token_ids", "segment_ids", "padding_mask")}
        found = served.signatures["token_ids"](**ids)
        for side in SIDES:
            np.testing.assert_allclose(found[side], logits[side], atol=TOLERANCE)

    @pytest.mark.parametrize("signature", ["serving_default", "n_best", "tokenize"])
    def test_served_question_too_long(self, served, signature):
        """Its row reports it, and the others are answered as without it."""
        questions, contexts = [*QUESTIONS[:3], "good " * 8, *QUESTIONS[3:]], [*CONTEXTS[:3], "a", *CONTEXTS[3:]]
        found = ask(served, signature, questions, contexts)
        check_equal({name: np.delete(values, 3, axis=0) for name, values in found.items()}, ask(served, signature, *X))
        failed = {name: set(values[3:4].ravel().tolist()) for name, values in found.items()}
        if signature == "tokenize":
            assert failed == {name: {-1} if name in ("starts", "ends") else {0} for name in found}
        else:
            assert failed.pop("no_answer_score", {1e9}) == {1e9}
            assert failed == {name: {""} if name == "answer" else {-1} for name in failed}

    def test_served_questions_all_too_long(self, served):
        found = ask(served, "serving_default", ["good " * 8, "film " * 99], ["a", "good film"])
        assert found["no_answer_probability"].tolist() == found["score"].tolist() == [-1, -1]
        assert ask(served, "tokenize", ["good " * 8], ["a"])["token_ids"].shape[:2] == (1, 0)


class TestErrors:
    def test_question_too_long(self, answerer):
        x = (["good", "good " * 8], ["a", "a"])
        for act in (answerer.answer, answerer.predict, lambda x: answerer.fit(x, ([0, 0], ["a", "a"]))):
            with pytest.raises(ValueError, match="at most 7 tokens, .* Received: 8 tokens in row 1, 'good good"):
                act(x)

    def test_single_texts(self, answerer):
        for act in (answerer.answer, answerer.predict, lambda x: answerer.fit(x, Y)):
            with pytest.raises(ValueError, match=r"`x` must be a tuple of two columns, \(questions, contexts\)"):
                act(QUESTIONS)
        dataset = tf.data.Dataset.from_tensor_slices((QUESTIONS, [0] * 5)).batch(2)
        with pytest.raises(ValueError, match=r"`x` must yield `\(\(questions, contexts\),\)` or"):
            answerer.fit(dataset)

    def test_answers(self, answerer):
        with pytest.raises(ValueError, match="`y` must hold one label"):
            answerer.fit(X)
        with pytest.raises(
            ValueError, match="'film' at 3 in row 0, where the context has 'ood film .* Its first occurrence is at 7"
        ):
            answerer.evaluate(X, ([3, 0, 0, 0, 0], ["film", "", "", "", ""]))
        with pytest.raises(ValueError, match="one row for each question. Received: 5 questions and 1 rows"):
            answerer.fit(X, ([0], ["a"]))

    def test_preprocessors(self, backbone, tokenizer):
        made = BertQuestionAnswerer(backbone, BertPreprocessor(tokenizer, 12))
        assert (made.preprocessor.max_length, made.preprocessor.stride) == (12, 4)
        with pytest.raises(TypeError, match="`preprocessor` must be a SpanPreprocessor or None. Received:"):
            BertQuestionAnswerer(backbone, "vocab.txt")
        with pytest.raises(ValueError, match=r"`preprocessor.max_length` must be at most .* \(13\)"):
            BertQuestionAnswerer(backbone, SpanPreprocessor(tokenizer, 14, stride=1))
        with pytest.raises(ValueError, match="`preprocessor` must be given for raw text"):
            BertQuestionAnswerer(backbone).answer(X)

    @pytest.mark.parametrize("option", ["max_answer_length", "n_best"])
    def test_numbers(self, backbone, option):
        with pytest.raises(ValueError, match=f"`BertQuestionAnswerer`: `{option}` must be at least 1"):
            BertQuestionAnswerer(backbone, **{option: 0})

    @pytest.mark.parametrize("threshold", ["0", True, float("nan"), float("inf")])
    def test_threshold(self, backbone, answerer, threshold):
        with pytest.raises(TypeError, match="`no_answer_threshold` must be a finite number or None"):
            BertQuestionAnswerer(backbone, no_answer_threshold=threshold)
        with pytest.raises(TypeError, match="`no_answer_threshold` must be a finite number or None"):
            answerer.no_answer_threshold = threshold


@pytest.mark.parametrize("num_segments", [1, 2])
def test_an_encoder_or_a_tokenizer_with_one_segment(num_segments, new_backbone, vocabulary, monkeypatch):
    """The segments still mark the context; the encoder sees zeros."""
    preprocessor = SpanPreprocessor(BertTokenizer(vocabulary), MAX_LENGTH, stride=STRIDE)
    if num_segments > 1:
        monkeypatch.setattr(preprocessor.tokenizer, "second_segment", 0, raising=False)
    backbone = new_backbone(seed=13, max_sequence_length=MAX_LENGTH, num_segments=num_segments)
    answerer = BertQuestionAnswerer(backbone, preprocessor)
    token_ids = np.array([[5, 6, 3, 7, 8, 3, 0]], "int32")
    ids = {"token_ids": token_ids, "segment_ids": np.array([[0, 0, 0, 1, 1, 1, 0]], "int32")}
    ids["padding_mask"] = (token_ids > 0).astype("int32")
    hidden = backbone({**ids, "segment_ids": 0 * token_ids})["sequence_output"]
    kernel, bias = (np.asarray(weight) for weight in answerer.get_layer("span_head").weights)
    logits = answerer(ids)
    expected = np.asarray(hidden) @ kernel + bias
    for column, side in enumerate(SIDES):
        allowed = np.asarray(logits[side])[0] > MASKED_LOGIT / 2
        assert allowed.tolist() == [True, False, False, True, True, False, False]
        np.testing.assert_allclose(np.asarray(logits[side])[0, allowed], expected[0, allowed, column], atol=TOLERANCE)


class TestThreshold:
    """At the end of the file, as a new threshold drops the traced functions of all answers."""

    def test_threshold(self, answerer, answers, best):
        tuned = answerer.no_answer_threshold
        scores = best["no_answer_score"]
        np.testing.assert_array_equal(answers["answer"] == "", scores > tuned)
        np.testing.assert_array_equal(
            answers["score"][scores > tuned], answers["no_answer_probability"][scores > tuned]
        )
        try:
            answerer.no_answer_threshold = None
            assert (serve(answerer)["answer"] == "").tolist() == [False, True, False, False, False]
            answerer.no_answer_threshold = -1e8
            assert set(serve(answerer)["answer"]) == {""}
        finally:
            answerer.no_answer_threshold = tuned

    @pytest.mark.slow
    def test_tune_threshold(self, answerer):
        before = answerer.no_answer_threshold
        threshold = answerer.tune_threshold(X, ANSWERS, metric="exact_match")
        assert threshold == answerer.no_answer_threshold == answerer.get_config()["no_answer_threshold"]
        scores = answerer.best_answers(X)["no_answer_score"]
        assert (scores > threshold).tolist() == [False, True, False, True, False]
        answerer.no_answer_threshold = before


@pytest.mark.parametrize("kind", ["wordpiece", "byte-level"])
def test_answers_are_what_people_see(new_backbone, eagerly, kind):
    """Without the space that ModernBERT's tokens begin with, and with the marks that an uncased model drops."""
    tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"zoewnta", *(f"##{c}" for c in "zoewnta")])
    if kind == "byte-level":
        tokenizer = BytePairTokenizer(**byte_pair_models.modern())
    backbone = new_backbone(vocabulary_size=tokenizer.vocabulary_size(), max_sequence_length=32, num_layers=1)
    answerer = BertQuestionAnswerer(backbone, SpanPreprocessor(tokenizer, 32, stride=4), n_best=30)
    context = "Zoe\u0308 went\n\n to  न\u0940 tea "
    with eagerly():
        best = answerer.best_answers((["who"], [context]))
    found = {
        (start, end): answer for start, end, answer in zip(*(best[key][0] for key in KEYS), strict=True) if end > 0
    }
    assert len(found) > 10
    for (start, end), answer in found.items():
        assert context.encode()[start:end].decode() == answer == answer.strip() != ""
        assert not unicodedata.combining(context.encode()[end:].decode()[:1] or " ")
        assert context.encode()[end:].decode()[:1] != "\u0940"
