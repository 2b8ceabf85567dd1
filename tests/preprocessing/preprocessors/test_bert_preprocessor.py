import itertools

import keras
import numpy as np
import pytest

from keras_bert_layers import BertPreprocessor, BertTokenizer
from keras_bert_layers._internal.lazy import tf

START, SEPARATOR, PAD = 2, 3, 0


def rows(outputs, key="token_ids"):
    return outputs[key].numpy().tolist()


def test_single_text(preprocessor, vocabulary):
    outputs = preprocessor(["good film", "night"])
    good, film, night = (vocabulary.index(word) for word in ("good", "film", "night"))
    assert list(outputs) == ["token_ids", "segment_ids", "padding_mask"]
    assert rows(outputs) == [[START, good, film, SEPARATOR], [START, night, SEPARATOR, PAD]]
    assert rows(outputs, "segment_ids") == [[0, 0, 0, 0], [0, 0, 0, 0]]
    assert rows(outputs, "padding_mask") == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert all(tensor.dtype == tf.int32 for tensor in outputs.values())


def test_pair(preprocessor, vocabulary):
    outputs = preprocessor((["good", "a"], ["film night", ""]))
    good, film, night, a = (vocabulary.index(word) for word in ("good", "film", "night", "a"))
    assert rows(outputs) == [
        [START, good, SEPARATOR, film, night, SEPARATOR],
        [START, a, SEPARATOR, SEPARATOR, PAD, PAD],
    ]
    assert rows(outputs, "segment_ids") == [[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 0, 0]]
    assert rows(outputs, "padding_mask") == [[1] * 6, [1, 1, 1, 1, 0, 0]]


@pytest.mark.usefixtures("traces_nothing")
def test_truncation_on_the_left():
    tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefgh"], reference="huggingface")
    left = BertPreprocessor(tokenizer, max_length=6, truncation_side="left")
    assert rows(left(["a b c d e f", "a b"])) == [[2, 6, 7, 8, 9, 3], [2, 4, 5, 3, 0, 0]]
    assert rows(left((["a b c d"], ["e f g h"]))) == [[2, 7, 3, 10, 11, 3]]
    first = BertPreprocessor(tokenizer, max_length=6, truncation="only_first", truncation_side="left")
    assert rows(first((["a b c d"], ["e f"]))) == [[2, 7, 3, 8, 9, 3]]
    with pytest.raises(ValueError, match=r"`truncation_side` must be one of \['right', 'left'\]"):
        BertPreprocessor(tokenizer, truncation_side="up")


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize("text", [[], [""], ["", "  \t "], [b"\xff\xfe"], ["\0"], ["a" * 10_000]])
def test_odd_texts_have_an_answer(preprocessor, text):
    outputs = preprocessor(text)
    assert outputs["token_ids"].shape[0] == len(text)
    assert np.all(outputs["padding_mask"].numpy()[:, :2] == 1)


def test_scalar_has_no_batch(preprocessor):
    outputs = preprocessor("good film")
    assert outputs["token_ids"].shape == (4,)
    np.testing.assert_array_equal(outputs["token_ids"], preprocessor(["good film"])["token_ids"][0])


@pytest.mark.parametrize("text", [["good", "bad"], np.array(["good", "bad"]), np.array(["good", "bad"], object)])
def test_inputs_of_every_kind_are_equal(preprocessor, text):
    assert rows(preprocessor(text)) == rows(preprocessor(tf.constant(["good", "bad"])))


@pytest.mark.usefixtures("traces_nothing")
class TestPadding:
    def test_max_length(self, tokenizer):
        outputs = BertPreprocessor(tokenizer, 11, padding="max_length")(["good", "bad film"])
        assert outputs["token_ids"].shape == (2, 11)

    @pytest.mark.parametrize(
        ("num_words", "max_length", "width"), [(1, 128, 16), (14, 128, 16), (15, 128, 32), (60, 64, 64), (99, 70, 70)]
    )
    def test_bucket(self, tokenizer, num_words, max_length, width):
        outputs = BertPreprocessor(tokenizer, max_length, padding="bucket")(["good " * num_words, "bad"])
        assert outputs["token_ids"].shape == (2, width)

    def test_longest_is_not_longer_than_max_length(self, tokenizer):
        assert BertPreprocessor(tokenizer, 7)(["good " * 50])["token_ids"].shape == (1, 7)


def popped_pair(first, second, budget):
    """Google's `_truncate_seq_pair`: drop from the end of the longer one, of the second at a tie, one at a time."""
    first, second = list(first), list(second)
    while len(first) + len(second) > budget:
        (first if len(first) > len(second) else second).pop()
    return first, second


@pytest.mark.usefixtures("traces_nothing")
class TestTruncation:
    LENGTHS = tuple(itertools.product(range(9), range(9)))
    PAIRS = tuple(zip(*(("good " * first, "bad " * second) for first, second in LENGTHS), strict=True))

    def kept(self, tokenizer, pairs, **options):
        """The number of tokens that are left of each text of each pair."""
        outputs = BertPreprocessor(tokenizer, **options)(tuple(map(list, pairs)))
        totals = outputs["padding_mask"].numpy().sum(axis=1)
        seconds = outputs["segment_ids"].numpy().sum(axis=1) - 1
        return [(total - 3 - second, second) for total, second in zip(totals.tolist(), seconds.tolist(), strict=True)]

    def pack(self, tokenizer, first_length, second_length, **options):
        return self.kept(tokenizer, (["good " * first_length], ["bad " * second_length]), **options)[0]

    @pytest.mark.parametrize("max_length", [3, 4, 7, 8])
    def test_longest_first_is_googles_rule(self, tokenizer, max_length):
        kept = self.kept(tokenizer, self.PAIRS, max_length=max_length)
        for found, (first, second) in zip(kept, self.LENGTHS, strict=True):
            assert found == tuple(map(len, popped_pair(range(first), range(second), max_length - 3))), (first, second)

    @pytest.mark.parametrize("max_length", [3, 4, 7, 8])
    def test_longest_first_is_the_tokenizers_librarys_rule(self, vocabulary, max_length):
        tokenizers = pytest.importorskip("tokenizers")
        ids = {word: index for index, word in enumerate(vocabulary)}
        theirs = tokenizers.Tokenizer(tokenizers.models.WordPiece(ids, unk_token="[UNK]"))
        theirs.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        theirs.post_processor = tokenizers.processors.BertProcessing(("[SEP]", SEPARATOR), ("[CLS]", START))
        theirs.enable_truncation(max_length, strategy="longest_first")
        tokenizer = BertTokenizer(vocabulary, reference="huggingface")
        ours = BertPreprocessor(tokenizer, max_length)(tuple(map(list, self.PAIRS)))
        found = zip(*(rows(ours, key) for key in ("token_ids", "segment_ids", "padding_mask")), strict=True)
        for pair, (ids, segments, mask) in zip(zip(*self.PAIRS, strict=True), found, strict=True):
            expected = theirs.encode(*pair)
            assert ids[: sum(mask)] == expected.ids, pair
            assert segments[: sum(mask)] == expected.type_ids

    def test_only_first(self, tokenizer):
        assert self.pack(tokenizer, 9, 2, max_length=8, truncation="only_first") == (3, 2)
        assert self.pack(tokenizer, 9, 5, max_length=8, truncation="only_first") == (0, 5)

    def test_only_second(self, tokenizer):
        assert self.pack(tokenizer, 2, 9, max_length=8, truncation="only_second") == (2, 3)

    @pytest.mark.parametrize(("truncation", "lengths"), [("only_first", (2, 6)), ("only_second", (6, 2))])
    def test_what_must_not_be_cut_does_not_fit(self, tokenizer, truncation, lengths):
        with pytest.raises(tf.errors.InvalidArgumentError, match="must fit into max_length on its own"):
            self.pack(tokenizer, *lengths, max_length=8, truncation=truncation)

    def test_single_text(self, tokenizer):
        for truncation in ("longest_first", "only_first"):
            outputs = BertPreprocessor(tokenizer, 5, truncation=truncation)(["good " * 9])
            assert rows(outputs)[0][0] == START
            assert rows(outputs)[0][-1] == SEPARATOR
            assert outputs["token_ids"].shape == (1, 5)


class TestPlaces:
    TEXTS = ("good film", "unhappy night , bad !")

    def test_dataset_map(self, preprocessor):
        mapped = next(iter(tf.data.Dataset.from_tensor_slices(list(self.TEXTS)).batch(2).map(preprocessor)))
        assert rows(mapped) == rows(preprocessor(list(self.TEXTS)))

    def test_dataset_map_before_batching(self, preprocessor):
        mapped = next(iter(tf.data.Dataset.from_tensor_slices(list(self.TEXTS)).map(preprocessor)))
        assert rows(mapped) == rows(preprocessor(self.TEXTS[0]))

    @pytest.mark.usefixtures("in_graph")
    def test_functional_model(self, preprocessor, backbone, tmp_path):
        text = keras.Input(shape=(), dtype="string", name="text")
        model = keras.Model(text, backbone(preprocessor(text))["pooled_output"])
        expected = backbone(preprocessor(list(self.TEXTS)))["pooled_output"]
        np.testing.assert_allclose(model(tf.constant(self.TEXTS)), expected, atol=1e-6)
        model.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        np.testing.assert_array_equal(again(tf.constant(self.TEXTS)), model(tf.constant(self.TEXTS)))

    @pytest.mark.usefixtures("in_graph")
    def test_functional_model_of_pairs(self, preprocessor, backbone, tmp_path):
        texts = tuple(keras.Input(shape=(), dtype="string", name=name) for name in ("text", "text_pair"))
        model = keras.Model(list(texts), backbone(preprocessor(texts))["pooled_output"])
        pair = [tf.constant(["good", "a"]), tf.constant(["bad film", "night"])]
        expected = backbone(preprocessor(tuple(pair)))["pooled_output"]
        np.testing.assert_allclose(model(pair), expected, atol=1e-6)
        model.save(tmp_path / "model.keras")
        np.testing.assert_array_equal(keras.models.load_model(tmp_path / "model.keras")(pair), model(pair))

    @pytest.mark.parametrize(("padding", "width"), [("longest", None), ("bucket", None), ("max_length", 9)])
    def test_symbolic_shapes(self, tokenizer, padding, width):
        outputs = BertPreprocessor(tokenizer, 9, padding=padding)(keras.Input(shape=(), dtype="string"))
        assert {(tensor.shape, tensor.dtype) for tensor in outputs.values()} == {((None, width), "int32")}

    def test_config_round_trip(self, tokenizer):
        layer = BertPreprocessor(tokenizer, 9, padding="bucket", truncation="only_first", name="text_to_ids")
        again = BertPreprocessor.from_config(layer.get_config())
        assert again.get_config() == layer.get_config()
        assert rows(again(["good film"])) == rows(layer(["good film"]))


class TestErrors:
    def test_tokenizer(self):
        with pytest.raises(
            TypeError, match="`BertPreprocessor`: `tokenizer` must be a BertTokenizer. Received: tokenizer='vocab"
        ):
            BertPreprocessor("vocab.txt")

    @pytest.mark.parametrize("max_length", [0, 2, -5])
    def test_max_length(self, tokenizer, max_length):
        with pytest.raises(ValueError, match=f"`max_length` must .* Received: max_length={max_length}"):
            BertPreprocessor(tokenizer, max_length)

    @pytest.mark.parametrize("option", ["padding", "truncation"])
    def test_options(self, tokenizer, option):
        with pytest.raises(ValueError, match=f"`{option}` must be one of .* Received: {option}='right'"):
            BertPreprocessor(tokenizer, **{option: "right"})

    def test_three_texts(self, preprocessor):
        with pytest.raises(ValueError, match="a pair must have two texts. Received: 3"):
            preprocessor((["a"], ["b"], ["c"]))

    def test_pair_of_bare_strings(self, preprocessor):
        with pytest.raises(ValueError, match="a pair must be a tuple of two lists"):
            preprocessor(("a", "b"))

    def test_numbers(self, preprocessor):
        with pytest.raises(TypeError, match="text must be strings. Received: dtype=int32"):
            preprocessor([1, 2])

    def test_missing_value(self, preprocessor):
        with pytest.raises(TypeError, match="text must be strings.*Replace missing values"):
            preprocessor(["good", None])
        with pytest.raises(TypeError, match="text must be strings.*halves of characters"):
            preprocessor(["good\ud83d"])

    def test_rank(self, preprocessor):
        with pytest.raises(ValueError, match=r"rank 0 or 1. Received: shape=\(1, 2\)"):
            preprocessor(tf.constant([["a", "b"]]))

    def test_single_text_under_only_second(self, tokenizer):
        with pytest.raises(ValueError, match='truncation="only_second" needs a pair'):
            BertPreprocessor(tokenizer, truncation="only_second")(["good"])


def check_places(preprocessor, texts, outputs, prompt=""):
    """The tokens are those of a call, and each stands where the offsets say."""
    prompted = [prompt + text for text in (texts[0] if isinstance(texts, tuple) else texts)]
    expected = preprocessor((prompted, *texts[1:]) if isinstance(texts, tuple) else prompted)
    for name, values in expected.items():
        np.testing.assert_array_equal(outputs[name], values)
    columns = texts if isinstance(texts, tuple) else (texts,)
    names = preprocessor.tokenizer.all_tokens()
    for row, ids in enumerate(outputs["token_ids"].numpy()):
        text = 0
        for position, token_id in enumerate(ids):
            start, end = (int(outputs[side][row, position]) for side in ("starts", "ends"))
            if token_id == SEPARATOR:
                text += 1
            if start >= 0:
                assert columns[text][row].encode()[start:end].decode().lower() == names[token_id].removeprefix("##")
            else:
                assert end == -1


def test_offsets_of_a_text_a_pair_and_a_text_that_is_cut(preprocessor):
    texts = ["Unhappy films", "good é film", "", "a good film a good film a good film"]
    outputs = preprocessor.with_offsets(texts)
    check_places(preprocessor, texts[:1] + texts[2:], preprocessor.with_offsets(texts[:1] + texts[2:]))
    assert rows(outputs, "starts")[0][:5] == [-1, 0, 2, 8, 12]
    assert rows(outputs, "starts")[1][:5] == [-1, 0, 5, 8, -1]  # "é" has two bytes
    assert rows(outputs, "ends")[1][:5] == [-1, 4, 7, 12, -1]
    pair = (texts[:1] + texts[2:], ["film", "a night", "good bad good bad good bad"])
    check_places(preprocessor, pair, preprocessor.with_offsets(pair))
    assert preprocessor.with_offsets([])["starts"].shape[0] == 0


def test_offsets_on_the_left_and_after_a_prompt(tokenizer):
    left = BertPreprocessor(tokenizer, max_length=6, truncation_side="left", padding="max_length")
    texts = ["a good bad film night", "film"]
    check_places(left, texts, left.with_offsets(texts))
    assert rows(left.with_offsets(texts), "starts")[0] == [-1, 2, 7, 11, 16, -1]
    prompted = BertPreprocessor(tokenizer, max_length=9)
    outputs = prompted.with_offsets((texts, ["good", "a"]), prompt="bad , ")
    check_places(prompted, (texts, ["good", "a"]), outputs, prompt="bad , ")
    assert rows(outputs, "starts")[1][:7] == [-1, -1, -1, 0, -1, 0, -1]


def test_offsets_with_two_separators(tmp_path):
    tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b"], num_pair_separators=2)
    outputs = BertPreprocessor(tokenizer, max_length=9).with_offsets((["a a"], ["b"]))
    assert rows(outputs) == [[2, 4, 4, 3, 3, 5, 3]]
    assert rows(outputs, "starts") == [[-1, 0, 2, -1, -1, 0, -1]]
