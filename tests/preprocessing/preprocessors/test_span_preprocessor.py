import gzip
import json

import keras
import numpy as np
import pytest

from keras_bert_layers import BertPreprocessor, BertTokenizer
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import SpanPreprocessor

PAD, UNKNOWN, START, SEPARATOR = 0, 1, 2, 3
QUESTIONS = ["good night ?", "", "a ? a ?", "film"]
CONTEXTS = ["a good film , a bad night , a good good film .", "unhappy  films!", "", " ".join(["Ünhappy"] * 9)]


@pytest.fixture(scope="module")
def tokenizer(vocabulary):
    return BertTokenizer(vocabulary)


def reference(tokenizer, question, context, max_length, stride):
    """The windows of one row, one token at a time: ids, segments, and offsets of the context's tokens."""
    question_ids = tokenizer.tokenize(question).numpy().tolist()
    ids, starts, ends = (part.numpy().tolist() for part in tokenizer.tokenize_with_offsets(context))
    tokens = list(zip(ids, starts, ends, strict=True))
    room = max_length - len(question_ids) - 3
    begin, windows = 0, []
    while True:
        part = tokens[begin : begin + room]
        row_ids = [START, *question_ids, SEPARATOR, *(token[0] for token in part), SEPARATOR]
        head = len(question_ids) + 2
        offsets = [(-1, -1)] * head + [token[1:] for token in part] + [(-1, -1)]
        windows.append((row_ids, [0] * head + [1] * (len(part) + 1), offsets))
        if begin + room >= len(tokens):
            return windows
        begin += room - stride


def check(outputs, expected):
    """Compares with windows `(row, ids, segments, offsets)`, padding aside."""
    assert outputs["rows"].numpy().tolist() == [row for row, *_ in expected]
    for window, (_, ids, segments, offsets) in enumerate(expected):
        size = len(ids)
        padding = outputs["token_ids"].shape[1] - size
        assert outputs["token_ids"].numpy()[window].tolist() == ids + [PAD] * padding
        assert outputs["segment_ids"].numpy()[window].tolist() == segments + [0] * padding
        assert outputs["padding_mask"].numpy()[window].tolist() == [1] * size + [0] * padding
        found = zip(outputs["starts"].numpy()[window].tolist(), outputs["ends"].numpy()[window].tolist(), strict=True)
        assert list(found) == offsets + [(-1, -1)] * padding


@pytest.mark.parametrize(("max_length", "stride"), [(9, 0), (9, 1), (11, 2), (13, 5), (40, 6)])
def test_windows_are_those_of_the_loop(tokenizer, max_length, stride):
    preprocessor = SpanPreprocessor(tokenizer, max_length, stride=stride)
    expected = [
        (row, *window)
        for row, (question, context) in enumerate(zip(QUESTIONS, CONTEXTS, strict=True))
        for window in reference(tokenizer, question, context, max_length, stride)
    ]
    outputs = preprocessor((QUESTIONS, CONTEXTS))
    check(outputs, expected)
    assert outputs["token_ids"].shape[1] == max(len(ids) for _, ids, *_ in expected) <= max_length
    assert all(tensor.dtype == tf.int32 for tensor in outputs.values())
    counts = np.bincount([row for row, *_ in expected])
    np.testing.assert_array_equal(preprocessor.num_windows((QUESTIONS, CONTEXTS)), counts)


@pytest.mark.parametrize("length", range(12))
def test_every_token_is_read_and_no_window_more(tokenizer, length):
    outputs = SpanPreprocessor(tokenizer, 8, stride=1)((["a"], ["good " * length]))
    starts = outputs["starts"].numpy()
    assert set(starts[starts >= 0].tolist()) == set(range(0, 5 * length, 5))
    assert len(starts) == max(1, -(-(length - 4) // 3) + 1 if length > 4 else 1)


def test_offsets_cut_the_original_bytes(tokenizer):
    context = "\u2003Ünhappy\u200b  films，good e\u0301"
    outputs = SpanPreprocessor(tokenizer, 9, stride=2)((["a"], [context]))
    starts, ends = outputs["starts"].numpy(), outputs["ends"].numpy()
    pieces = {
        context.encode()[start:end].decode() for start, end in zip(starts.flat, ends.flat, strict=True) if end > 0
    }
    assert {"Ün", "happy", "good", "e"} <= pieces


@pytest.mark.parametrize(
    "context",
    ["", " \t\n", "\u200b\u200d", b"\xff\xfe", "\0", "👍🏽", "مرحبا", "[SEP] [SEP]", "a" * 20_000, "a " * 10_000],
)
def test_odd_contexts(tokenizer, context):
    outputs = SpanPreprocessor(tokenizer, 13, stride=3)((["good ?"], [context]))
    assert set(outputs["rows"].numpy()) == {0}
    assert np.all(outputs["padding_mask"].numpy().sum(axis=1) >= 5)
    assert (outputs["token_ids"].numpy()[:, 0] == START).all()


def test_no_rows(tokenizer):
    outputs = SpanPreprocessor(tokenizer, 13, stride=3)(([], []))
    assert outputs["token_ids"].shape == (0, 2)
    assert outputs["rows"].shape == (0,)


def test_single_strings(tokenizer):
    preprocessor = SpanPreprocessor(tokenizer, 13, stride=3)
    for name, tensor in preprocessor(("good ?", "a film")).items():
        np.testing.assert_array_equal(tensor, preprocessor((["good ?"], ["a film"]))[name])


@pytest.mark.parametrize(("padding", "width"), [("longest", 5), ("max_length", 40), ("bucket", 16)])
def test_padding(tokenizer, padding, width):
    preprocessor = SpanPreprocessor(tokenizer, 40, stride=3, padding=padding)
    assert preprocessor((["a"], ["film"]))["ends"].shape == (1, width)


class TestPlaces:
    def test_dataset_map(self, tokenizer):
        preprocessor = SpanPreprocessor(tokenizer, 11, stride=2)
        dataset = tf.data.Dataset.from_tensor_slices(((QUESTIONS, CONTEXTS),)).batch(4)
        mapped = next(iter(dataset.map(preprocessor)))
        for name, tensor in preprocessor((QUESTIONS, CONTEXTS)).items():
            np.testing.assert_array_equal(mapped[name], tensor)

    @pytest.mark.usefixtures("in_graph")
    def test_functional_model(self, tokenizer, backbone):
        texts = [keras.Input(shape=(), dtype="string", name=name) for name in ("question", "context")]
        windows = SpanPreprocessor(tokenizer, 11, stride=2)(texts)
        assert {tensor.shape for name, tensor in windows.items() if name != "rows"} == {(None, None)}
        model = keras.Model(texts, windows["rows"])
        assert model([tf.constant(QUESTIONS), tf.constant(CONTEXTS)]).shape[0] > 4

    def test_config_round_trip(self, tokenizer):
        layer = SpanPreprocessor(tokenizer, 11, stride=2, padding="bucket", name="windows")
        again = SpanPreprocessor.from_config(layer.get_config())
        assert again.get_config() == layer.get_config()
        assert {"tokenizer", "max_length", "stride", "padding", "name"} <= set(layer.get_config())

    @pytest.mark.parametrize(("max_length", "stride"), [(9, 3), (384, 128), (512, 128)])
    def test_from_a_preprocessor_of_single_texts(self, tokenizer, max_length, stride):
        made = SpanPreprocessor.from_preprocessor(BertPreprocessor(tokenizer, max_length, padding="bucket"))
        assert (made.max_length, made.stride, made.padding) == (max_length, stride, "bucket")
        assert made.tokenizer is tokenizer


class TestErrors:
    def test_question_too_long(self, tokenizer):
        preprocessor = SpanPreprocessor(tokenizer, 11, stride=2)
        assert preprocessor.max_question_length == 5
        assert preprocessor((["a " * 5], ["good " * 9]))["token_ids"].shape == (7, 11)
        with pytest.raises(
            tf.errors.InvalidArgumentError,
            match=r"(?s)a question must have at most 5 tokens, as max_length=11 and stride=2 .*\n1\n6\n.*a a a a a a",
        ):
            preprocessor((["a", "a " * 6], ["good", "good"]))

    def test_question_too_long_left_out(self, tokenizer):
        preprocessor = SpanPreprocessor(tokenizer, 11, stride=2)
        questions, contexts = ["a", "a " * 6, "good ?", "a " * 40], ["good " * 9, "good", "", "good " * 99]
        windows, fits = preprocessor.windows_that_fit((questions, contexts))
        assert fits.numpy().tolist() == [True, False, True, False]
        expected = preprocessor((questions[::2], contexts[::2]))
        assert windows.pop("rows").numpy().tolist() == [2 * row for row in expected.pop("rows").numpy()]
        for name, values in expected.items():
            np.testing.assert_array_equal(windows[name], values)

    def test_questions_all_too_long(self, tokenizer):
        windows, fits = SpanPreprocessor(tokenizer, 11, stride=2).windows_that_fit((["a " * 6], ["good"]))
        assert not fits.numpy().any()
        assert {len(values) for values in windows.values()} == {0}

    def test_question_too_long_in_graph(self, tokenizer):
        preprocessor = SpanPreprocessor(tokenizer, 11, stride=2)
        dataset = tf.data.Dataset.from_tensor_slices(((["a " * 6], ["good"]),)).batch(1)
        with pytest.raises(tf.errors.InvalidArgumentError, match="a question must have at most 5 tokens"):
            next(iter(dataset.map(preprocessor)))

    def test_tokenizer(self):
        with pytest.raises(TypeError, match="`SpanPreprocessor`: `tokenizer` must be a BertTokenizer. Received:"):
            SpanPreprocessor("vocab.txt")

    def test_sizes(self, tokenizer):
        with pytest.raises(ValueError, match="`max_length` must be at least 1"):
            SpanPreprocessor(tokenizer, 0)
        with pytest.raises(ValueError, match="`stride` must be at least 0"):
            SpanPreprocessor(tokenizer, stride=-1)
        with pytest.raises(
            ValueError, match="`stride` must be at most 123 for max_length=128, .* Received: stride=128"
        ):
            SpanPreprocessor(tokenizer, 128)
        SpanPreprocessor(tokenizer, 128, stride=123)

    def test_padding(self, tokenizer):
        with pytest.raises(ValueError, match="`padding` must be one of .* Received: padding='right'"):
            SpanPreprocessor(tokenizer, padding="right")

    @pytest.mark.parametrize(
        ("texts", "received"), [(["a", "b"], "a list of 2"), ("a", "a str"), ((["a"], ["b"], ["c"]), "a tuple of 3")]
    )
    def test_what_is_not_a_pair(self, tokenizer, texts, received):
        with pytest.raises(ValueError, match=rf"a tuple of two, \(questions, contexts\). Received: {received}"):
            SpanPreprocessor(tokenizer)(texts)

    def test_different_lengths(self, tokenizer):
        with pytest.raises(ValueError, match="as many contexts as questions"):
            SpanPreprocessor(tokenizer)((["a"], ["b", "c"]))

    def test_numbers(self, tokenizer):
        with pytest.raises(TypeError, match="`SpanPreprocessor`: text must be strings. Received: dtype=int32"):
            SpanPreprocessor(tokenizer)(([1], [2]))


@pytest.mark.peers
@pytest.mark.parametrize(("max_length", "stride"), [(384, 128), (96, 17), (64, 0)])
def test_equals_the_windows_of_transformers(shared_data, minilm, max_length, stride):
    transformers = pytest.importorskip("transformers")
    from keras_bert_layers import load_tokenizer

    questions, contexts = [], []
    for name in ("v1.1-dev", "xquad-en"):
        (path,) = (shared_data / "squad").glob(f"{name}*.gz")
        for article in json.loads(gzip.decompress(path.read_bytes()))["data"]:
            for paragraph in article["paragraphs"][::7]:
                questions.append(paragraph["qas"][0]["question"])
                contexts.append(paragraph["context"])
    theirs = transformers.AutoTokenizer.from_pretrained(minilm)(
        questions,
        contexts,
        truncation="only_second",
        max_length=max_length,
        stride=stride,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    expected = []
    for window, row in enumerate(theirs["overflow_to_sample_mapping"]):
        offsets = [
            tuple(len(contexts[row][:end].encode()) for end in pair) if part == 1 else (-1, -1)
            for part, pair in zip(theirs.sequence_ids(window), theirs["offset_mapping"][window], strict=True)
        ]
        expected.append((row, theirs["input_ids"][window], theirs["token_type_ids"][window], offsets))
    assert not all(context.isascii() for context in contexts)
    check(SpanPreprocessor(load_tokenizer(minilm), max_length, stride=stride)((questions, contexts)), expected)
