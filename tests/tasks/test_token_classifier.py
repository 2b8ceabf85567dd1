import functools
import inspect

import keras
import numpy as np
import pytest

from keras_bert_layers import BertPreprocessor, BertTokenClassifier, BertTokenizer
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import WordAligner
from keras_bert_layers.tasks.serving.answers import as_text

NAMES = ["O", "B-mood", "I-mood", "B-time", "I-time"]
# "goods" is two pieces, "un-happy" three words to the tokenizer, the third row is longer than the model.
WORDS = [
    ["a", "good", "film", "."],
    ["goods", "un-happy", "night", "!"],
    ["a", "bad", "bad", "night", "?", "good", "film", "a", "unhappy", "film", "nights", "night", ".", "good", "!"],
    [],
    ["night"],
]
TAGS = [
    ["O", "B-mood", "O", "O"],
    ["O", "B-mood", "B-time", "O"],
    ["O", "B-mood", "I-mood", "B-time", "O", "B-mood", "O", "O", "B-mood", "O", "B-time", "I-time", "O", "B-mood", "O"],
    [],
    ["B-time"],
]
TEXTS = [" ".join(words) for words in WORDS]
SPANS = [
    [(2, 6, "mood")],
    [(6, 14, "mood"), (15, 20, "time")],
    [(2, 9, "mood"), (10, 15, "time"), (18, 22, "mood"), (30, 37, "mood"), (43, 55, "time"), (58, 62, "mood")],
    [],
    [(0, 5, "time")],
]
ODD = [
    b"",
    b" \t ",
    "😀 ليلة".encode(),
    b"good " * 400 + b"night",
    b"\xff bad",
    b"[SEP]" * 30,
    "a good\u0301 film".encode(),
]
MAX_LENGTH = 9
# The same float32 sums in another order: eager against traced, one batch against another.
TRACE_TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def make(new_backbone, vocabulary):
    vocabulary = [*vocabulary, "-"]
    preprocessor = BertPreprocessor(BertTokenizer(vocabulary), max_length=MAX_LENGTH)

    def make(*, crf, dtype=None, **options):
        backbone = new_backbone(vocabulary_size=len(vocabulary), dtype=dtype)
        return BertTokenClassifier(backbone, NAMES, crf=crf, preprocessor=preprocessor, **options)

    return make


@pytest.fixture(scope="module")
def classifiers(make):
    """Without and with a field, for all tests that do not change them."""
    return [untrained(make, crf=crf) for crf in (False, True)]


def untrained(make, *, crf):
    classifier = make(crf=crf)
    generator = np.random.default_rng(1)
    head = classifier.get_layer("token_classification_head").dense.kernel
    head.assign(generator.normal(size=head.shape))
    if crf:
        classifier.crf.set_weights([generator.normal(size=weight.shape) for weight in classifier.crf.weights])
    # Without a trace for each size of a batch; what was fitted has traced the field.
    classifier.compile(run_eagerly=True)
    return classifier


@pytest.fixture(params=[0, pytest.param(1, marks=pytest.mark.slow)], ids=["softmax", "crf"])
def classifier(request, classifiers):
    return classifiers[request.param]


@pytest.fixture
def softmax(classifiers):
    """For what does not depend on the head."""
    return classifiers[0]


@pytest.fixture(
    scope="module",
    params=[pytest.param(False, marks=pytest.mark.exhaustive), pytest.param(True, marks=pytest.mark.slow)],
    ids=["softmax", "crf"],
)
def fitted(request, make):
    """A model, the history of its training, what it can, and its weights before.

    All steps have the same rows, so that one trace does.
    """
    classifier = make(crf=request.param, stride=3)
    before = {weight.path: np.array(weight) for weight in classifier.weights}
    classifier.compile(optimizer=keras.optimizers.Adam(0.02))
    first = classifier.fit(WORDS * 60, TAGS * 60, batch_size=15, shuffle=False, verbose=0).history
    last = classifier.evaluate(WORDS * 3, TAGS * 3, batch_size=15, verbose=0, return_dict=True)
    return classifier, first, last, before


@pytest.fixture(scope="module")
def served(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "model"
    fitted[0].export(path)
    return tf.saved_model.load(str(path)).signatures


def entities_of(tags):
    """`(label, first, last)` of a row of tag names, as conlleval reads them."""
    found, before = [], "O"
    for place, tag in enumerate(tags):
        if tag != "O" and (tag[0] == "B" or tag[2:] != before[2:]):
            found.append([tag[2:], place, place])
        elif tag != "O":
            found[-1][2] = place
        before = tag
    return {tuple(entity) for entity in found}


def f1_of(gold, predicted):
    gold, predicted = [[entities_of(row) for row in rows] for rows in (gold, predicted)]
    correct = sum(len(a & b) for a, b in zip(gold, predicted, strict=True))
    return 2 * correct / max(1, sum(map(len, gold)) + sum(map(len, predicted)))


@functools.lru_cache(maxsize=2)
def aligner_of(preprocessor, stride):
    """One for all rows: what it traces, it traces once."""
    return WordAligner(preprocessor, stride=stride)


def emissions_of_words(classifier, words):
    """The logits of all words of the tokenizer in one row, and which given word each belongs to."""
    aligned = aligner_of(classifier.preprocessor, classifier.stride).align(tf.ragged.constant([words], ragged_rank=1))
    logits = np.asarray(classifier(aligned.inputs)).reshape(-1, len(NAMES))
    return logits[aligned.places.numpy()[0]], aligned.word_ids.numpy()[0]


def evaluated(classifier, x, y, **options):
    """`evaluate` on one batch, without a dataset."""
    classifier.reset_metrics()
    return classifier.test_on_batch(x, y, **options)


class TestWords:
    @pytest.mark.usefixtures("traces_nothing")
    def test_predict_gives_the_logits_of_first_pieces(self, softmax):
        logits = softmax.predict(WORDS, batch_size=2, verbose=0)
        assert logits.dtype == np.float32
        assert logits.shape == (5, 15, 5)
        for row, words in zip(logits, WORDS, strict=True):
            assert (row[len(words) :] == 0).all()
            if words:
                expected, word_ids = emissions_of_words(softmax, words)
                firsts = np.unique(word_ids, return_index=True)[1]
                np.testing.assert_allclose(row[: len(words)], expected[firsts], atol=TRACE_TOLERANCE)

    def test_short_rows_are_the_preprocessors(self, softmax):
        logits = np.asarray(softmax(softmax.preprocessor(TEXTS[:2])))
        found = softmax.predict(WORDS[:2], verbose=0)
        np.testing.assert_allclose(found[0], logits[0, 1:5], atol=TRACE_TOLERANCE)
        np.testing.assert_allclose(found[1], logits[1, [1, 3, 6, 7]], atol=TRACE_TOLERANCE)

    def test_loss_is_that_of_whole_rows_by_word(self, classifier):
        """The parts of "un-happy" all count, its tag on the first."""
        tags = [list(row) for row in TAGS]
        tags[1][1:2] = ["B-mood", "I-mood", "I-mood"]
        total = count = 0
        for words, row in zip(WORDS, tags, strict=True):
            if words:
                emissions, _ = emissions_of_words(classifier, words)
                ids = np.array([NAMES.index(tag) for tag in row])
                if classifier.crf is None:
                    chosen = np.asarray(keras.ops.log_softmax(emissions))[np.arange(len(ids)), ids]
                else:
                    chosen = classifier.crf.log_likelihood(emissions[None], ids[None]).numpy()
                total, count = total - chosen.sum(), count + len(ids)
        found = evaluated(classifier, WORDS, TAGS, return_dict=True)
        assert found["loss"] == pytest.approx(total / count, abs=TRACE_TOLERANCE)

    def test_f1_is_that_of_the_predicted_tags(self, classifier):
        predicted = classifier.predict_tags(WORDS, batch_size=3)
        assert [len(row) for row in predicted] == [len(row) for row in WORDS]
        if classifier.crf is None:
            logits = classifier.predict(WORDS, verbose=0)
            assert predicted[2] == [NAMES[tag] for tag in logits[2].argmax(axis=-1)]
        found = evaluated(classifier, WORDS, predicted, return_dict=True)
        assert found["f1"] == pytest.approx(1)
        found = evaluated(classifier, WORDS, TAGS, return_dict=True)
        assert found["f1"] == pytest.approx(f1_of(TAGS, predicted))

    @pytest.mark.slow
    def test_every_way_of_giving_them_is_the_same(self, softmax):
        expected = evaluated(softmax, WORDS, TAGS)
        ids = [[NAMES.index(tag) for tag in row] for row in TAGS]
        words, tags = tf.ragged.constant(WORDS), tf.ragged.constant(TAGS)
        for x, y in [(WORDS, ids), (words, tags)]:
            assert evaluated(softmax, x, y) == pytest.approx(expected, abs=TRACE_TOLERANCE)
        # All of the tokenizer's words are given words then, and count in the metric.
        found = evaluated(softmax, TEXTS, SPANS)
        assert found[0] == pytest.approx(expected[0], abs=TRACE_TOLERANCE)
        spans = tuple(
            tf.ragged.constant([[span[part] for span in row] for row in SPANS], dtype, ragged_rank=1)
            for part, dtype in enumerate((tf.int32, tf.int32, tf.string))
        )
        for columns, same in [((words, tags), expected), ((TEXTS, spans), found)]:
            dataset = tf.data.Dataset.from_tensor_slices(columns).batch(5)
            assert softmax.evaluate(dataset, verbose=0) == pytest.approx(same, abs=TRACE_TOLERANCE)
        assert softmax.test_on_batch(WORDS, TAGS) == pytest.approx(expected, abs=TRACE_TOLERANCE)

    @pytest.mark.usefixtures("traces_nothing")
    def test_every_way_of_asking_is_the_same(self, softmax):
        expected = softmax.predict(WORDS, verbose=0)
        words = tf.ragged.constant(WORDS)
        dataset = tf.data.Dataset.from_tensor_slices(words).batch(5)
        for found in (
            softmax.predict(words, verbose=0),
            softmax.predict(dataset, verbose=0),
            softmax.predict_on_batch(WORDS),
        ):
            np.testing.assert_allclose(found, expected, atol=TRACE_TOLERANCE)
        assert softmax.predict_tags(dataset) == softmax.predict_tags(WORDS)
        # The words of a text are those of the tokenizer: "un-happy" is three.
        assert softmax.predict(TEXTS[:2], verbose=0).shape == (2, 6, 5)

    def test_weights_of_rows(self, classifier):
        alone = evaluated(classifier, WORDS[:1], TAGS[:1])[0]
        weighted = evaluated(classifier, WORDS[:2], TAGS[:2], sample_weight=[2.0, 0.0])[0]
        assert weighted == pytest.approx(alone * 2 * 4 / 10, abs=TRACE_TOLERANCE)  # of 4 words and of 6

    def test_tokens_with_tags(self, classifier):
        """Without words: ids, and a tag or -100 for each token."""
        ids = {name: np.asarray(values) for name, values in classifier.preprocessor(TEXTS[:1]).items()}
        tags = np.array([[-100, *(NAMES.index(tag) for tag in TAGS[0]), -100]])
        expected = evaluated(classifier, WORDS[:1], TAGS[:1])
        assert evaluated(classifier, ids, tags) == pytest.approx(expected, abs=TRACE_TOLERANCE)
        assert classifier.predict(ids, verbose=0).shape == (1, 6, 5)

    def test_no_rows(self, softmax):
        assert softmax.predict([], verbose=0).shape == (0, 0, 5)
        assert softmax.predict_tags([]) == []
        assert softmax.answer([])["entity_text"].shape == (0, 0)


class TestAnswers:
    def test_entities_are_those_of_the_tags(self, classifier):
        """Of text without parts of words, so that given words are the tokenizer's."""
        row = WORDS[2]
        answer = classifier.answer([TEXTS[2]])
        starts = np.cumsum([0, *(len(word) + 1 for word in row)])
        expected = sorted(entities_of(classifier.predict_tags([row])[0]), key=lambda entity: entity[1])
        assert len(expected) > 1
        assert answer["entity_label"].tolist() == [[label for label, *_ in expected]]
        assert answer["entity_start"].tolist() == [[starts[first] for _, first, _ in expected]]
        assert answer["entity_end"].tolist() == [[starts[last] + len(row[last]) for *_, last in expected]]
        assert answer["entity_text"].tolist() == [[" ".join(row[a : b + 1]) for _, a, b in expected]]

    def test_score_is_the_mean_probability(self, classifier):
        logits = classifier.predict(TEXTS[2:3], verbose=0)
        probabilities = np.asarray(keras.ops.softmax(logits) if classifier.crf is None else classifier.crf(logits))[0]
        tags = classifier.predict_tags(WORDS[2:3])[0]
        chosen = probabilities[np.arange(len(tags)), [NAMES.index(tag) for tag in tags]]
        expected = [chosen[a : b + 1].mean() for _, a, b in sorted(entities_of(tags), key=lambda entity: entity[1])]
        np.testing.assert_allclose(classifier.answer(TEXTS[2:3])["entity_score"][0], expected, atol=TRACE_TOLERANCE)

    def test_crf_begins_every_entity(self, classifier):
        tags = classifier.predict_tags([["a", "good", "bad", "night", "film"] * 7])[0]
        broken = [
            tag for before, tag in zip(["O", *tags], tags, strict=False) if tag[0] == "I" and before[2:] != tag[2:]
        ]
        assert (broken == []) == (classifier.crf is not None)

    def test_more_windows_than_go_through_at_once(self, classifier):
        """The words of 40 windows of one text, and of a short text beside it, are tagged as `predict` has them."""
        texts = ["a good night . " * 60, "bad"]
        tags = classifier.predict_tags([text.split() for text in texts])
        found = [row[row >= 0].tolist() for row in classifier.answer(texts)["entity_start"]]
        for text, row, starts in zip(texts, tags, found, strict=True):
            places = np.cumsum([0, *(len(word) + 1 for word in text.split())])
            assert starts == sorted(places[first] for _, first, _ in entities_of(row))

    def test_a_long_text_does_not_take_memory_once_for_each_short_one_beside_it(self, softmax, monkeypatch):
        decoded, decode = [], softmax._decode
        monkeypatch.setattr(
            softmax, "_decode", lambda logits, mask: decoded.append(logits.shape) or decode(logits, mask)
        )
        softmax.serve(tf.constant(["good " * 400, *["bad"] * 30]))
        windows, sequence, tags = decoded[0]
        assert sequence <= MAX_LENGTH
        assert windows * sequence * tags < 3 * 400 * len(NAMES)


class TestFitted:
    def test_it_learned(self, fitted, eagerly):
        classifier, history, result, before = fitted
        assert set(history) == {"loss", "f1"}
        with eagerly():  # of graphs before, with each row three times
            found = evaluated(classifier, WORDS, TAGS, return_dict=True)
        assert found == pytest.approx(result, abs=TRACE_TOLERANCE)
        assert result["loss"] < 0.3 * history["loss"][0]
        assert result["f1"] > 0.8
        assert f1_of(TAGS, classifier.predict_tags(WORDS)) > 0.8
        after = {weight.path: np.array(weight) for weight in classifier.weights}
        same = {path for path, values in before.items() if np.array_equal(values, after[path])}
        assert same == {weight.path for weight in classifier.backbone.get_layer("pooler").weights}

    def test_keras_round_trip(self, fitted, tmp_path):
        classifier = fitted[0]
        classifier.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        np.testing.assert_allclose(
            again.predict(WORDS, verbose=0), classifier.predict(WORDS, verbose=0), atol=TRACE_TOLERANCE
        )
        assert again.predict_tags(WORDS) == classifier.predict_tags(WORDS)
        assert again.get_config() == classifier.get_config()
        assert int(again.optimizer.iterations) == int(classifier.optimizer.iterations) > 0
        arguments = set(inspect.signature(BertTokenClassifier.__init__).parameters) - {"self"}
        assert set(classifier.get_config()) == arguments

    @pytest.mark.parametrize("batch", [TEXTS, ODD, ODD[:2], []], ids=["texts", "odd", "nothing in them", "none"])
    def test_export_answers_what_keras_answers(self, fitted, served, batch):
        texts = tf.constant(batch, tf.string, shape=[len(batch)])
        answer = as_text({name: tensor.numpy() for name, tensor in served["serving_default"](text=texts).items()})
        expected = fitted[0].answer(batch)
        assert set(expected) == {f"entity_{part}" for part in ("label", "text", "start", "end", "score")}
        assert set(answer) == {*expected, "bytes_cut"}
        for name, values in expected.items():
            if name == "entity_score":
                np.testing.assert_allclose(answer[name], values, atol=TRACE_TOLERANCE)
            else:
                np.testing.assert_array_equal(answer[name], values)
        ids = served["tokenize"](text=texts)
        logits = served["token_ids"](**ids)["logits"]
        assert logits.shape == (*ids["token_ids"].shape, len(NAMES))

    def test_a_text_alone_has_the_answer_that_it_has_in_a_batch(self, fitted, served):
        texts = [*ODD, *TEXTS]
        together = served["serving_default"](text=tf.constant(texts))
        for row, text in enumerate(texts):
            alone = served["serving_default"](text=tf.constant([text]))
            assert alone.pop("bytes_cut").numpy().tolist() == [0]
            size = alone["entity_text"].shape[1]
            for name, values in alone.items():
                found = together[name].numpy()[row]
                assert (found[size:] == (b"" if found.dtype == object else -1)).all()
                if name == "entity_score":
                    np.testing.assert_allclose(found[:size], values[0], atol=TRACE_TOLERANCE)
                else:
                    assert found[:size].tolist() == values.numpy()[0].tolist()
            if size:
                cut = [
                    text.encode()[a:b] if isinstance(text, str) else text[a:b]
                    for a, b in zip(*(alone[f"entity_{end}"].numpy()[0] for end in ("start", "end")), strict=True)
                ]
                assert cut == alone["entity_text"].numpy()[0].tolist()


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_bfloat16(make):
    classifier = make(crf=True, dtype="mixed_bfloat16")
    classifier.compile(run_eagerly=True)
    loss, _ = classifier.train_on_batch(WORDS[:2], TAGS[:2])
    assert np.isfinite(loss)
    assert classifier.predict(WORDS[:2], verbose=0).dtype == np.float32
    assert classifier.answer(TEXTS[:2])["entity_score"].dtype == np.float32


@pytest.mark.exhaustive
def test_compiled_for_a_length(make):
    """XLA, as `compile` chooses it where all batches have one size."""
    classifier = make(crf=True)
    config = classifier.get_config()
    padded = BertPreprocessor(classifier.preprocessor.tokenizer, MAX_LENGTH, padding="max_length")
    compiled = BertTokenClassifier(classifier.backbone, NAMES, crf=True, preprocessor=padded, name=config["name"])
    compiled.compile(jit_compile=True)
    loss, f1 = compiled.train_on_batch(WORDS[:2], TAGS[:2])
    assert np.isfinite([loss, f1]).all()


@pytest.mark.slow
def test_validation_split_takes_the_last_rows(softmax):
    weights = softmax.get_weights()
    history = softmax.fit(WORDS, TAGS, validation_split=0.4, verbose=0).history
    expected = softmax.evaluate(WORDS[3:], TAGS[3:], verbose=0)
    softmax.set_weights(weights)
    assert [history["val_loss"][0], history["val_f1"][0]] == pytest.approx(expected, abs=TRACE_TOLERANCE)


class TestErrors:
    def test_tag_names(self, backbone):
        with pytest.raises(ValueError, match="`BertTokenClassifier`: `tag_names` must hold at least one name, each"):
            BertTokenClassifier(backbone, ["O", "O"])
        with pytest.raises(ValueError, match="`BertTokenClassifier`: `scheme` must be one of .*'bioes'"):
            BertTokenClassifier(backbone, NAMES, scheme="no")

    def test_aggregation(self, backbone):
        with pytest.raises(ValueError, match="`BertTokenClassifier`: `aggregation` must be one of .*'average'"):
            BertTokenClassifier(backbone, NAMES, aggregation="last")
        with pytest.raises(ValueError, match='`aggregation` must be "first" with crf=True'):
            BertTokenClassifier(backbone, NAMES, crf=True, aggregation="max")

    def test_other_arguments(self, backbone, preprocessor):
        with pytest.raises(TypeError, match="`BertTokenClassifier`: `crf` must be True or False"):
            BertTokenClassifier(backbone, NAMES, crf="yes")
        with pytest.raises(ValueError, match="`BertTokenClassifier`: `stride` must be less than 7"):
            BertTokenClassifier(backbone, NAMES, preprocessor=preprocessor, stride=7)

    @pytest.mark.parametrize(
        ("x", "y", "text"),
        [
            (WORDS, TAGS[:2], "`y` must have one row for each row of x"),
            (WORDS[:1], [["O"]], "there must be one tag for each word. Received: 4 words and 1 tags in row 0"),
            (WORDS[:1], [["O", "B-x", "O", "O"]], "every tag must be one of .* Received: 'B-x' at word 1 of row 0"),
            (TEXTS[:1], [[(0, 90, "mood")]], "every span must lie in its text of 13 characters"),
            (WORDS, None, "`y` must hold one label for each text"),
            ([], [], "`x` must hold at least one row"),
        ],
    )
    def test_data(self, softmax, x, y, text):
        with pytest.raises(ValueError, match=f"`BertTokenClassifier`: {text}"):
            softmax.fit(x, y)

    def test_class_weight(self, softmax):
        with pytest.raises(
            ValueError, match="`class_weight` must be None. Received: .* Weigh rows with `sample_weight`"
        ):
            softmax.fit(WORDS, TAGS, class_weight={0: 0.5})

    def test_pairs(self, softmax):
        with pytest.raises(TypeError, match="`x` must be a list of texts, or of lists of words"):
            softmax.fit((TEXTS, TEXTS), SPANS)

    def test_dataset_of_something_else(self, softmax):
        with pytest.raises(ValueError, match="`x` must yield `\\(words, tags\\)`, ragged .* by `dataset.ragged_batch"):
            softmax.fit(tf.data.Dataset.from_tensor_slices((TEXTS, [1, 2, 3, 4, 5])).batch(2))

    def test_dataset_without_tags(self, softmax):
        with pytest.raises(ValueError, match="the dataset must yield tags or spans too. Received: `x` alone"):
            softmax.fit(tf.data.Dataset.from_tensor_slices(tf.ragged.constant(WORDS)).batch(2), verbose=0)

    def test_validation_split_of_a_dataset(self, softmax):
        dataset = tf.data.Dataset.from_tensor_slices((tf.ragged.constant(WORDS), tf.ragged.constant(TAGS))).batch(2)
        with pytest.raises(ValueError, match="`validation_split` must be 0 for a dataset"):
            softmax.fit(dataset, validation_split=0.5)

    def test_tags_of_texts(self, softmax):
        with pytest.raises(TypeError, match="`words` must be rows of words. .* Ask `answer` for the entities of texts"):
            softmax.predict_tags(TEXTS)

    def test_entities_of_words(self, softmax):
        with pytest.raises(TypeError, match="`x` must be texts. .* Ask `predict_tags` for the tags of given words"):
            softmax.answer(WORDS)

    def test_words_without_a_preprocessor(self, backbone):
        with pytest.raises(ValueError, match="`preprocessor` must be given for raw text"):
            BertTokenClassifier(backbone, NAMES).predict(WORDS)
