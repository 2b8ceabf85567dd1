import re

import numpy as np
import pytest

from keras_bert_layers import BertClassifier, BertPreprocessor, BertQuestionAnswerer, load_backbone, load_preprocessor
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.layers import ScalarMix
from keras_bert_layers.preprocessing import SpanPreprocessor
from keras_bert_layers.tasks import Features
from keras_bert_layers.tasks.inputs import FeatureInputs

# The same float32 sums in a graph that skips padding, or over other rows of a batch.
ROUNDING = 2e-6
# Float32 through six blocks, whose states are up to about 5.
OTHER_LIBRARY = 2e-5

# "unhappy" is the two pieces un ##happy, and "films" film ##s; the second text is longer than `max_length=9`.
TEXTS = ["Unhappy films!", "a good bad night , a bad good film . a night", "", "a"]
WORDS = [["unhappy", "films!"], [], ["", "a"]]


@pytest.fixture(scope="module")
def network(new_backbone):
    """A backbone of two blocks."""
    return new_backbone(num_layers=2)


@pytest.fixture(scope="module")
def by_word(network, preprocessor):
    return Features(network, preprocessor, per="word")


def states_of(network, preprocessor, text):
    """The hidden states of a text that fits, float32 `(layers, tokens, hidden_dim)`, without special tokens."""
    ids = preprocessor([text])
    hidden = network.get_layer("embedding")(ids["token_ids"], ids["segment_ids"])
    states = [hidden]
    for index in range(network.config.num_layers):
        hidden = network.get_layer(f"encoder_block_{index}")(hidden, ids["padding_mask"])
        states.append(hidden)
    return np.stack([np.asarray(state)[0, 1:-1] for state in states])


@pytest.mark.usefixtures("traces_nothing")
def test_tokens_and_words_of_texts(network, preprocessor, by_word):
    features = Features(network, preprocessor, layers=[-1, 0])
    found = features.predict(TEXTS, verbose=0)
    assert [row.shape for row in found] == [(5, 30), (12, 30), (0, 30), (1, 30)]
    assert {row.dtype for row in found} == {np.dtype("float32")}
    states = states_of(network, preprocessor, TEXTS[0])
    np.testing.assert_allclose(found[0], np.concatenate([states[2], states[0]], axis=-1), atol=ROUNDING)
    assert features.tokens(TEXTS[:1])[0] == [
        ("un", 0, 2), ("##happy", 2, 7), ("film", 8, 12), ("##s", 12, 13), ("!", 13, 14)
    ]  # fmt: skip
    assert [len(row) for row in features.tokens(TEXTS)] == [5, 12, 0, 1]

    found = by_word.predict(TEXTS, verbose=0)
    assert [row.shape for row in found] == [(3, 15), (12, 15), (0, 15), (1, 15)]
    pieces = [[0, 1], [2, 3], [4]]
    np.testing.assert_allclose(found[0], [states[2][word].mean(axis=0) for word in pieces], atol=ROUNDING)
    assert by_word.words(TEXTS[:1])[0] == [("Unhappy", 0, 7), ("films", 8, 13), ("!", 13, 14)]
    assert [len(row) for row in by_word.words(TEXTS)] == [3, 12, 0, 1]


def test_given_words(network, preprocessor, by_word):
    found = by_word.predict(WORDS, verbose=0)
    assert [row.shape for row in found] == [(2, 15), (0, 15), (2, 15)]
    states = states_of(network, preprocessor, "unhappy films!")[2]
    np.testing.assert_allclose(found[0], [states[:2].mean(axis=0), states[2:].mean(axis=0)], atol=ROUNDING)
    for row, expected in zip(by_word.predict_stream(iter(WORDS)), found, strict=True):
        np.testing.assert_allclose(row, expected, atol=ROUNDING)


@pytest.mark.usefixtures("traces_nothing")
def test_long_texts_are_read_through_windows(network, preprocessor):
    tokens = Features(network, preprocessor, layers="all", combine="stack").predict(TEXTS[1:2], verbose=0)[0]
    assert tokens.shape == (12, 3, 15)
    # `max_length=9` has room for 7 tokens, and windows share 2: tokens 0 to 6, and 5 to 11. Each takes a half of those.
    words = TEXTS[1].split()
    first, second = (states_of(network, preprocessor, " ".join(part)) for part in (words[:7], words[5:]))
    expected = np.concatenate([first[:, :6], second[:, 1:]], axis=1)
    np.testing.assert_allclose(tokens, expected.transpose(1, 0, 2), atol=ROUNDING)


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_texts(network, preprocessor, pooling):
    texts = [text for text in TEXTS if len(text) < 20]
    found = Features(network, preprocessor, layers=(0, 1), combine="sum", per="text", pooling=pooling)
    ids = preprocessor(texts)
    hidden = network.get_layer("embedding")(ids["token_ids"], ids["segment_ids"])
    total = np.asarray(hidden + network.get_layer("encoder_block_0")(hidden, ids["padding_mask"]))
    rows = [row[mask > 0] for row, mask in zip(total, np.asarray(ids["padding_mask"]), strict=True)]
    expected = [row.mean(axis=0) if pooling == "mean" else row[0] for row in rows]
    np.testing.assert_allclose(found.predict(texts, verbose=0), expected, atol=ROUNDING)
    assert found.predict([], verbose=0).shape == (0, 15)


def test_a_scalar_mix_and_shared_weights(new_backbone, preprocessor):
    network, mix = new_backbone(num_layers=2, seed=5), ScalarMix()
    features = Features(network, preprocessor, layers="all", combine=mix)
    states = states_of(network, preprocessor, "a good film")
    np.testing.assert_allclose(features.predict(["a good film"], verbose=0)[0], states.mean(axis=0), atol=ROUNDING)
    mix.layer_weights.assign([0.0, 0.0, 30.0])
    np.testing.assert_allclose(features.predict(["a good film"], verbose=0)[0], states[2], atol=ROUNDING)
    network.get_layer("encoder_block_1").set_weights(
        [0.5 * weight for weight in network.get_layer("encoder_block_1").get_weights()]
    )
    changed = states_of(network, preprocessor, "a good film")[2]
    assert np.abs(changed - states[2]).max() > 0.01
    np.testing.assert_allclose(features.predict(["a good film"], verbose=0)[0], changed, atol=ROUNDING)


def test_blocks_are_small_where_vectors_are_large(preprocessor):
    sizes = [FeatureInputs("Owner", preprocessor, per="token", size=size).block_rows for size in (384, 60_000, 10**9)]
    assert sizes == [4096, 2**27 // 60_000 // 9, 32]


@pytest.mark.usefixtures("traces_nothing")
def test_no_rows_and_streams(by_word):
    assert by_word.predict([], verbose=0) == []
    together = by_word.predict(TEXTS, verbose=0)
    for row, expected in zip(by_word.predict_stream(text for text in TEXTS), together, strict=True):
        np.testing.assert_allclose(row, expected, atol=ROUNDING)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"layers": [0, -1]}, marks=pytest.mark.slow, id="token"),
        pytest.param({"per": "word", "layers": "all", "combine": "stack"}, marks=pytest.mark.slow, id="word"),
        pytest.param({"per": "text"}, id="text"),
    ],
)
def test_export(network, preprocessor, options, tmp_path, eagerly):
    texts = [*TEXTS[:1], "bad " * 40, *TEXTS[2:]] if options.get("per") != "text" else ["a film", "", "good"]
    features = Features(network, preprocessor, **options)
    serve = tf.saved_model.load(features.export(tmp_path / "model")).signatures["serving_default"]
    found = {name: value.numpy() for name, value in serve(text=tf.constant(texts)).items()}
    with eagerly():
        expected = features.predict(texts, verbose=0)
    if features.per == "text":
        assert found.keys() == {"features", "bytes_cut"}
        np.testing.assert_allclose(found["features"], expected, atol=ROUNDING)
        return
    assert found.keys() == {"features", "start", "end", "bytes_cut"}
    units = features.words(texts) if features.per == "word" else features.tokens(texts)
    assert found["features"].shape == (len(texts), 40, *expected[0].shape[1:])
    for index, (vectors, row) in enumerate(zip(expected, units, strict=True)):
        np.testing.assert_allclose(found["features"][index, : len(row)], vectors, atol=ROUNDING)
        assert not found["features"][index, len(row) :].any()
        for name in ("start", "end"):
            expected_offsets = [getattr(unit, name) for unit in row]
            assert found[name][index].tolist() == [*expected_offsets, *[-1] * (40 - len(row))]


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.slow
@pytest.mark.parametrize("padding", ["bucket", "max_length"])
def test_padding_changes_nothing(network, tokenizer, by_word, padding):
    padded = Features(network, BertPreprocessor(tokenizer, 9, padding=padding), per="word")
    for rows in (TEXTS, WORDS):
        for vectors, expected in zip(padded.predict(rows, verbose=0), by_word.predict(rows, verbose=0), strict=True):
            np.testing.assert_allclose(vectors, expected, atol=ROUNDING)


@pytest.mark.slow
def test_the_signature_of_a_task(network, preprocessor, tokenizer, tmp_path, eagerly):
    classifier = BertClassifier(network, num_classes=3, preprocessor=preprocessor)
    answerer = BertQuestionAnswerer(network, preprocessor=SpanPreprocessor(tokenizer, 13, stride=2))
    for task in (classifier, answerer):
        path = task.export(tmp_path / type(task).__name__, signatures=["features"])
        serve = tf.saved_model.load(path).signatures["features"]
        found = serve(text=tf.constant(TEXTS))["features"].numpy()
        with eagerly():
            expected = Features(task).predict(TEXTS, verbose=0)
        for row, vectors in zip(found, expected, strict=True):
            np.testing.assert_allclose(row[: len(vectors)], vectors, atol=ROUNDING)


def test_errors(network, preprocessor, tokenizer, tmp_path):
    for wrong, error, message in [
        ({"model": "bert"}, TypeError, "`Features`: `model` must be a BertBackbone. Received: model='bert'. Or give a"),
        ({"preprocessor": None}, TypeError, "`Features`: `preprocessor` must be a BertPreprocessor. Received: preproc"),
        ({"preprocessor": BertPreprocessor(tokenizer, 14)}, ValueError, "be at most the backbone's `max_sequence_leng"),
        ({"combine": "max"}, ValueError, "be one of ['concat', 'sum', 'mean', 'stack']. Received: combine='max'. Or g"),
        ({"per": "sentence"}, ValueError, "`Features`: `per` must be one of ['token', 'word', 'text']"),
        ({"per": "text", "pooling": "sum"}, ValueError, "must be one of ['cls', 'mean'"),
    ]:
        with pytest.raises(error, match=re.escape(message)):
            Features(**{"model": network, "preprocessor": preprocessor, **wrong})
    features = Features(network, preprocessor)
    with pytest.raises(TypeError, match=r"`Features`: .*in row 1"):
        features.predict(["a", None])
    with pytest.raises(ValueError, match="be single texts"):
        features.predict((["a"], ["b"]))
    with pytest.raises(TypeError, match="texts must be strings"):
        Features(network, preprocessor, per="text").predict(WORDS)
    with pytest.raises(ValueError, match="be a task that has `onnx_functions`, of a BertBackbone"):
        features.export(tmp_path / "x.onnx", format="onnx")
    with pytest.raises(AttributeError, match="An export has the dtype of the backbone"):
        features.export(tmp_path / "model", dtype="bfloat16")
    with pytest.raises(TypeError, match="`BertClassifier`: `preprocessor` must be a BertPreprocessor"):
        BertClassifier(network, num_classes=2).export(tmp_path / "ids", signatures=["features"])


@pytest.mark.peers
def test_against_transformers(minilm):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    texts = ["Marie Curie didn't rest in Newark-upon-Trent.", "It rained cats & dogs, unbelievably."]
    features = Features(load_backbone(minilm), load_preprocessor(minilm), layers=[-1, -2, -3, -4], per="word")
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    model = transformers.BertModel.from_pretrained(minilm).eval()
    for text, vectors, words in zip(texts, features.predict(texts, verbose=0), features.words(texts), strict=True):
        batch = tokenizer([text], return_tensors="pt")
        with torch.inference_mode():
            states = model(**batch, output_hidden_states=True).hidden_states
        states = torch.cat(states[:-5:-1], dim=-1)[0].numpy()
        word_ids = batch.word_ids()
        expected = [
            np.mean([state for state, word in zip(states, word_ids, strict=True) if word == index], axis=0)
            for index in range(len(words))
        ]
        np.testing.assert_allclose(vectors, expected, atol=OTHER_LIBRARY)
        spans = [batch.word_to_chars(index) for index in range(len(words))]
        assert [word.text for word in words] == [text[span.start : span.end] for span in spans]
