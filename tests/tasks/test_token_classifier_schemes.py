"""Token classifiers with tag schemes other than BIO, and other ways to tag a word than by its first piece."""

import keras
import numpy as np
import pytest

from keras_bert_layers import BertPreprocessor, BertTokenClassifier, BertTokenizer
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.serving.answers import as_text

# "nights" is two pieces, "un-happy" three words to the tokenizer.
WORDS = [["a", "good", "bad", "film", "night"], ["un-happy", "nights", "good", "."]]
TEXTS = [" ".join(words) for words in WORDS]
SPANS = [[(2, 6, "p"), (7, 10, "p"), (11, 21, "q")], [(0, 15, "p"), (16, 20, "q")]]
TAGS = {
    "bio": [["O", "B-p", "B-p", "B-q", "I-q"], ["B-p", "I-p", "B-q", "O"]],
    "iob1": [["O", "I-p", "B-p", "I-q", "I-q"], ["I-p", "I-p", "I-q", "O"]],
    "io": [["O", "p", "p", "q", "q"], ["p", "p", "q", "O"]],
    "bioes": [["O", "S-p", "S-p", "B-q", "E-q"], ["B-p", "E-p", "S-q", "O"]],
    "bilou": [["o", "p_U", "p_U", "q_B", "q_L"], ["p_B", "p_L", "q_U", "o"]],
    "labels": [["DET", "ADJ", "ADJ", "NOUN", "NOUN"], ["ADJ", "NOUN", "ADJ", "."]],
}
NAMES = {
    "bio": ["O", "B-p", "I-p", "B-q", "I-q"],
    "iob1": ["O", "B-p", "I-p", "I-q"],
    "io": ["O", "p", "q"],
    "bioes": ["O", *(f"{letter}-{label}" for label in "pq" for letter in "BIES"), "X", "[PAD]"],
    "bilou": ["o", *(f"{label}_{letter}" for label in "pq" for letter in "BILU")],
    "labels": ["DET", "ADJ", "NOUN", "."],
}
# Words of several pieces, at most as many as fit into a window.
PIECES = ["a goodness", "unhappyness nights", "", "films nightness bads", "un un goods !", "filmness a ."]
# float32 sums in another order.
TRACE_TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def preprocessor(vocabulary):
    return BertPreprocessor(BertTokenizer([*vocabulary, "-"]), max_length=9)


@pytest.fixture(scope="module")
def make(new_backbone, vocabulary, preprocessor):
    def make(names, **options):
        backbone = new_backbone(vocabulary_size=len(vocabulary) + 1)
        classifier = BertTokenClassifier(backbone, names, preprocessor=preprocessor, **options)
        kernel = classifier.get_layer("token_classification_head").dense.kernel
        kernel.assign(np.random.default_rng(2).normal(size=kernel.shape))
        classifier.compile(optimizer=keras.optimizers.Adam(0.02), run_eagerly=True)
        return classifier

    return make


@pytest.fixture(scope="module")
def tagger(make):
    """Each word is an answer of its own, and the tags of pieces differ."""
    classifier = make(NAMES["labels"])
    logits = np.asarray(classifier(classifier.preprocessor(PIECES)))
    classifier.get_layer("token_classification_head").dense.bias.assign(-logits.mean(axis=(0, 1)))
    return classifier


@pytest.mark.parametrize(
    ("scheme", "crf"),
    [
        *(pytest.param(scheme, False, marks=pytest.mark.exhaustive) for scheme in TAGS),
        pytest.param("iob1", True, marks=pytest.mark.exhaustive),
        pytest.param("bioes", True, marks=pytest.mark.slow),
        pytest.param("labels", True, marks=pytest.mark.exhaustive),
    ],
)
def test_it_learns_each_scheme(make, scheme, crf):
    classifier = make(NAMES[scheme], crf=crf)
    assert classifier.scheme == scheme
    _, by_word, _ = classifier.pipeline.batches.one(WORDS, TAGS[scheme])
    assert (np.asarray(by_word["tags"]) == -100).sum() == 1  # of 5 and 6 words
    if scheme != "labels":
        _, by_span, _ = classifier.pipeline.batches.one(TEXTS, SPANS)
        np.testing.assert_array_equal(by_span["tags"], by_word["tags"])
    classifier.compile(optimizer=keras.optimizers.Adam(0.02))
    classifier.fit(WORDS * 100, TAGS[scheme] * 100, batch_size=4, shuffle=False, verbose=0)
    assert classifier.predict_tags(WORDS) == TAGS[scheme]
    assert classifier.evaluate(WORDS, TAGS[scheme], verbose=0, return_dict=True)["f1"] == 1
    found = classifier.answer(TEXTS)
    if scheme not in ("labels", "io"):  # which joins two entities of the same label
        for row, spans in enumerate(SPANS):
            columns = (found[f"entity_{name}"][row].tolist() for name in ("start", "end", "label"))
            entities = [(start, end, label) for start, end, label in zip(*columns, strict=True)]
            assert [entity for entity in entities if entity[0] >= 0] == spans


@pytest.mark.usefixtures("traces_nothing")
def test_one_label_per_word_where_tags_are_not_spans(tagger):
    found = tagger.answer(TEXTS)
    words = [TEXTS[0].split(), ["un", "-", "happy", "nights", "good", "."]]
    assert [[text for text in row if text] for row in found["entity_text"]] == words
    assert [[label for label in row if label] for row in found["entity_label"]] == tagger.predict_tags(words)


def of_pieces(classifier, texts, aggregation):
    """Tags and probabilities, piece by piece and word by word in NumPy; each with its bytes."""
    found = []
    for text in texts:
        ids, starts, ends = (
            part.numpy()[0] for part in classifier.preprocessor.tokenizer.tokenize_with_offsets([text])
        )
        logits = np.asarray(classifier(classifier.preprocessor([text])))[0, 1 : len(ids) + 1]
        probabilities = np.asarray(keras.ops.softmax(logits))
        tokens = [classifier.preprocessor.tokenizer.id_to_token(int(piece)) for piece in ids]
        words = []
        for place, token in enumerate(tokens):
            if token.startswith("##") and aggregation != "simple":
                words[-1].append(place)
            else:
                words.append([place])
        rows = {
            "first": lambda part: part[0],
            "simple": lambda part: part[0],
            "average": lambda part: part.mean(axis=0),
            "max": lambda part: part[part.max(axis=1).argmax()],
        }
        chosen = [rows[aggregation](probabilities[word]) for word in words]
        found.append(
            [(row.argmax(), row.max(), starts[w[0]], ends[w[-1]]) for row, w in zip(chosen, words, strict=True)]
        )
    return found


@pytest.mark.parametrize("aggregation", ["first", "average", "max", "simple"])
@pytest.mark.usefixtures("traces_nothing")
def test_words_are_tagged_by_their_pieces(tagger, aggregation):
    tagger.aggregation = aggregation
    expected = of_pieces(tagger, PIECES, aggregation)
    assert len({tag for row in expected for tag, *_ in row}) > 1
    found = tagger.answer(PIECES)
    tagger.aggregation = "first"
    for row, words in enumerate(expected):
        kept = found["entity_start"][row] >= 0
        labels = [tagger.tag_names.index(label) for label in found["entity_label"][row][kept]]
        columns = [labels, *(found[f"entity_{name}"][row][kept] for name in ("score", "start", "end"))]
        assert len(labels) == len(words)
        np.testing.assert_allclose(np.transpose(columns), np.reshape(words, (-1, 4)), atol=TRACE_TOLERANCE)


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_pieces_of_many_windows(make):
    """A long text and a short one beside it; each piece is tagged in the window with most context."""
    classifier = make(NAMES["bio"], aggregation="average")
    texts = ["a good unhappyness night . " * 12, "nights"]
    together = classifier.answer(texts)
    for row, text in enumerate(texts):
        alone = classifier.answer([text])
        size = alone["entity_start"].shape[1]
        for name, values in alone.items():
            if name == "entity_score":
                np.testing.assert_allclose(together[name][row, :size], values[0], atol=TRACE_TOLERANCE)
            else:
                assert together[name][row, :size].tolist() == values[0].tolist()
    assert together["entity_end"].max() > len(texts[0]) // 2


@pytest.mark.slow
def test_aggregation_may_be_changed(tagger):
    texts = ["unhappyness nights goodness"]
    numbers = {}
    for aggregation in ("simple", "first"):
        tagger.aggregation = aggregation
        numbers[aggregation] = tagger.answer(texts)["entity_start"].shape[1]
    assert numbers["simple"] > numbers["first"] == 3
    assert tagger.get_config()["aggregation"] == "first"


@pytest.mark.slow
@pytest.mark.parametrize("aggregation", ["average", "max", "simple"])
def test_export(make, tmp_path, aggregation):
    classifier = make(NAMES["labels"], aggregation=aggregation)
    classifier.export(tmp_path / "model")
    serve = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    for texts in (["unhappyness nights " * 9, "a good"], ["", " "], ["\xff"]):
        found = as_text({name: tensor.numpy() for name, tensor in serve(text=tf.constant(texts)).items()})
        expected = classifier.answer(texts)
        for name, values in expected.items():
            if name == "entity_score":
                np.testing.assert_allclose(found[name], values, atol=TRACE_TOLERANCE)
            else:
                np.testing.assert_array_equal(found[name], values)


def test_config_of_an_older_file(make):
    """Without a scheme and an aggregation: BIO tags by first pieces."""
    classifier = make(NAMES["bio"], crf=True)
    config = classifier.get_config()
    assert (config.pop("scheme"), config.pop("aggregation")) == ("bio", "first")
    again = BertTokenClassifier.from_config(config)
    assert again.get_config() == classifier.get_config()


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_scheme_is_saved(make, tmp_path):
    classifier = make(NAMES["bio"], scheme="io", aggregation="max")
    classifier.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert (again.scheme, again.aggregation) == ("io", "max")
    for name, values in classifier.answer(TEXTS).items():
        np.testing.assert_array_equal(again.answer(TEXTS)[name], values)
