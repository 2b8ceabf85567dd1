import functools

import numpy as np
import pytest

from keras_bert_layers import BertPreprocessor, BertTokenizer
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import BytePairTokenizer, WordAligner
from keras_bert_layers.preprocessing.byte_level.merges import byte_characters

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"new york ##ark ' s don t @ user in e ##e ##f . 😀".split()]
UNKNOWN = 1


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(VOCABULARY)


@functools.cache
def aligner_of(tokenizer, max_length=12, stride=None, padding="longest"):
    return WordAligner(BertPreprocessor(tokenizer, max_length=max_length, padding=padding), stride=stride)


def at_places(words):
    """The tokens at the words' places, row by row."""
    ids = words.inputs["token_ids"].numpy().ravel()
    return [[VOCABULARY[ids[place]] for place in row if place >= 0] for row in words.places.numpy()]


@pytest.mark.usefixtures("traces_nothing")
def test_words_of_texts(tokenizer):
    texts = ["Newark's in new york.", "", " \t", "@User don't", "É😀new", "zzz\ufe0f new"]
    words = aligner_of(tokenizer).align(texts)
    assert at_places(words) == [
        ["new", "'", "s", "in", "new", "york", "."],
        [],
        [],
        ["@", "user", "don", "'", "t"],
        ["[UNK]"],
        ["[UNK]", "new"],
    ]
    spans = [
        [texts[row].encode()[start:end].decode() for start, end in zip(starts, ends, strict=True) if start >= 0]
        for row, (starts, ends) in enumerate(zip(words.starts.numpy(), words.ends.numpy(), strict=True))
    ]
    assert spans == [
        ["Newark", "'", "s", "in", "new", "york", "."],
        [],
        [],
        ["@", "User", "don", "'", "t"],
        ["É😀new"],
        ["zzz\ufe0f", "new"],
    ]
    np.testing.assert_array_equal(words.word_ids, np.where(words.places == -1, -1, np.arange(7)))
    np.testing.assert_array_equal(words.places == -1, words.starts == -1)
    np.testing.assert_array_equal(words.places == -1, words.ends == -1)


@pytest.mark.usefixtures("traces_nothing")
def test_a_token_of_several_words_is_a_piece_of_each():
    characters = [*byte_characters().values()]
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", *characters, 'Ġ"', '."', "Ġa", "æĿ", "æĿ±", "Ġb"]
    merges = ['Ġ "', '. "', "Ġ a", "æ Ŀ", "æĿ ±", "Ġ b"]
    tokenizer = BytePairTokenizer(vocabulary, merges, mask_token=None, special_tokens=["<s>", "</s>", "<pad>", "<unk>"])
    aligner = WordAligner(BertPreprocessor(tokenizer))
    texts = ['b a."', "b 東a", "a\n\n b ", "  "]
    words, pieces = aligner.align(texts), aligner.align_pieces(texts)
    tokens = [tokenizer.id_to_token(token) for token in words.inputs["token_ids"].numpy().ravel()]
    at = [[tokens[place] for place in row if place >= 0] for row in words.places.numpy()]
    assert at == [["b", "Ġa", '."', '."'], ["b", "Ġ", "a"], ["a", "Ġb"], []], "a space begins the word after it"
    assert words.starts.numpy().tolist() == [[0, 2, 3, 4], [0, 2, 5, -1], [0, 4, -1, -1], [-1] * 4]
    assert words.ends.numpy().tolist() == [[1, 3, 4, 5], [1, 5, 6, -1], [1, 5, -1, -1], [-1] * 4]
    assert pieces.word_ids.numpy().tolist() == [[0, 1, 2, 3], [0, 1, 1, 2], [0, 1, -1, -1], [-1] * 4]
    assert pieces.starts.numpy().tolist() == [[0, 2, 3, 4], [0, 2, 2, 5], [0, 4, -1, -1], [-1] * 4]
    given = aligner.align(tf.ragged.constant([["b", 'a."'], ["b", "東a"], ["", "\n"]]))
    assert given.word_ids.numpy().tolist() == [[0, 1, 1, 1], [0, 1, 1, -1], [0, 1, -1, -1]]
    np.testing.assert_array_equal(given.inputs["token_ids"][:2], words.inputs["token_ids"][:2, :6])
    tokens = aligner.align_tokens(texts)
    assert (tokens.places.numpy() >= 0).sum(axis=1).tolist() == [3, 4, 5, 2], "those of whitespace too"


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize("padding", ["longest", "bucket"])
def test_the_first_window_of_a_text_is_what_the_preprocessor_makes_of_it(tokenizer, padding):
    texts = ["new " * 9, "", "york in", "don't " * 4]
    aligner = aligner_of(tokenizer, 7, stride=2, padding=padding)
    wanted = aligner.preprocessor(texts)
    for words in (aligner.align(texts), aligner.align_pieces(texts), aligner.align(tf.strings.split(texts))):
        assert len(words.inputs["token_ids"]) > len(texts)
        for name, ids in wanted.items():
            np.testing.assert_array_equal(tf.gather(words.inputs[name], words.first_windows), ids)


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize("max_length", [12, 5])
def test_pieces_of_texts(tokenizer, max_length):
    texts = ["Newark's in new york.", "", "efef Newark eef zzz", "éé"]
    pieces = aligner_of(tokenizer, max_length).align_pieces(texts)
    assert at_places(pieces) == [
        ["new", "##ark", "'", "s", "in", "new", "york", "."],
        [],
        ["e", "##f", "##e", "##f", "new", "##ark", "e", "##e", "##f", "[UNK]"],
        ["e", "##e"],
    ]
    assert [row[row >= 0].tolist() for row in pieces.word_ids.numpy()] == [
        [0, 0, 1, 2, 3, 4, 5, 6],
        [],
        [0, 0, 0, 0, 1, 1, 2, 2, 2, 3],
        [0, 0],
    ]
    assert pieces.starts.numpy()[2].tolist() == [0, 1, 2, 3, 5, 8, 12, 13, 14, 16]
    assert pieces.ends.numpy()[3].tolist() == [2, 4, *[-1] * 8]


@pytest.mark.usefixtures("traces_nothing")
def test_given_words(tokenizer):
    words = aligner_of(tokenizer).align(tf.ragged.constant([["Newark's", "in"], [], ["don't", "@user", "."]]))
    assert at_places(words) == [["new", "'", "s", "in"], [], ["don", "'", "t", "@", "user", "."]]
    assert words.word_ids.numpy().tolist() == [[0, 0, 0, 1, -1, -1], [-1] * 6, [0, 0, 0, 1, 1, 2]]
    assert words.starts is None
    assert words.ends is None


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize("max_length", [12, 5])
def test_pieces_of_given_words(tokenizer, max_length):
    words = tf.ragged.constant([["Newark's", "in"], [], ["", "efef", "zzz"]])
    pieces = aligner_of(tokenizer, max_length).align_pieces(words)
    assert at_places(pieces) == [["new", "##ark", "'", "s", "in"], [], ["[UNK]", "e", "##f", "##e", "##f", "[UNK]"]]
    assert pieces.word_ids.numpy().tolist()[0] == [0, 0, 0, 0, 1, -1]
    assert pieces.word_ids.numpy().tolist()[2] == [0, 1, 1, 1, 1, 2]
    assert pieces.starts is None


@pytest.mark.usefixtures("traces_nothing")
def test_a_given_word_without_tokens_is_unknown(tokenizer):
    words = aligner_of(tokenizer).align(tf.ragged.constant([["", "new", "\ufe0f"], ["\x00"]]))
    assert at_places(words) == [["[UNK]", "new", "[UNK]"], ["[UNK]"]]
    assert words.word_ids.numpy().tolist() == [[0, 1, 2], [0, -1, -1]]


@pytest.mark.usefixtures("traces_nothing")
def test_texts_and_their_words_are_the_same_input(tokenizer):
    texts = ["Newark's in new york .", "@user don't . . .", "e ef eee", ""]
    aligner = aligner_of(tokenizer, max_length=6)
    whole, split = aligner.align(texts), aligner.align(tf.ragged.constant([text.split() for text in texts]))
    for key in whole.inputs:
        np.testing.assert_array_equal(whole.inputs[key], split.inputs[key])
    np.testing.assert_array_equal(whole.places, split.places)


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize(("max_length", "stride"), [(3, 0), (6, 0), (6, 1), (7, 2), (9, 6), (9, None), (30, 4)])
def test_every_word_stands_where_it_has_most_context(tokenizer, max_length, stride):
    generator = np.random.default_rng(3)
    texts = [" ".join(generator.choice(["e", "ef", "eee", "new", "."], size=size)) for size in (0, 1, 4, 5, 9, 23, 40)]
    aligner = aligner_of(tokenizer, max_length, stride)
    words = aligner.align(texts)
    room, shared = max_length - 2, max_length // 4 if stride is None else stride
    if stride is None:
        assert aligner.stride == shared
    windows = iter(enumerate(words.inputs["token_ids"].numpy()))
    width = words.inputs["token_ids"].shape[1]
    for text, places in zip(texts, words.places.numpy(), strict=True):
        ids = tokenizer.tokenize(text).numpy()
        begins = [0, *range(room - shared, len(ids) - shared, room - shared)]
        rows = {}
        for begin in begins:
            number, row = next(windows)
            rows[number] = (begin, min(begin + room, len(ids)))
            part = [2, *ids[begin : begin + room], 3]
            np.testing.assert_array_equal(row, part + [0] * (width - len(part)))
        firsts = [token for token, token_id in enumerate(ids) if not VOCABULARY[token_id].startswith("##")]
        found = places[places >= 0]
        assert len(found) == len(firsts)
        for first, place in zip(firsts, found, strict=True):
            begin, end = rows[place // width]
            assert begin + place % width - 1 == first
            assert begin <= first < end
            # The ends of the text are not edges; an even number of shared tokens is cut in the middle.
            context = {
                number: min(first - b if b else np.inf, e - 1 - first if e < len(ids) else np.inf)
                for number, (b, e) in rows.items()
                if b <= first < e
            }
            assert context[place // width] >= max(context.values()) - shared % 2
    assert next(windows, None) is None


@pytest.mark.usefixtures("traces_nothing")
def test_many_texts_with_windows_keep_their_words(tokenizer):
    """Words counted over all windows of the batch, and the rows after a long one."""
    words = aligner_of(tokenizer, max_length=5, stride=1).align(["new york", "in in in in in in", "user . user"])
    assert at_places(words) == [["new", "york"], ["in"] * 6, ["user", ".", "user"]]
    assert words.inputs["token_ids"].shape == (5, 5)


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize("padding", ["bucket", "max_length"])
def test_few_sizes_for_compilers(tokenizer, padding):
    aligner = aligner_of(tokenizer, max_length=40, padding=padding)
    width = 16 if padding == "bucket" else 40
    for texts in (["new", "york"], ["new york", ""], ["in " * 9, "@user"]):
        words = aligner.align(texts)
        assert words.inputs["token_ids"].shape == (2, width)
        assert words.places.shape == words.starts.shape == (2, width - 2)
    long = aligner.align(["in " * 50, "new"])
    assert long.inputs["token_ids"].shape == (4, 40)
    assert long.places.shape == (2, 76)
    assert at_places(long) == [["in"] * 50, ["new"]]


@pytest.mark.usefixtures("traces_nothing")
def test_no_texts(tokenizer):
    for none in (
        tf.zeros([0], tf.string),
        tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.string), tf.zeros([0], tf.int64)),
    ):
        words = aligner_of(tokenizer).align(none)
        assert words.inputs["token_ids"].shape == (0, 2)
        assert words.places.shape == (0, 1)


@pytest.mark.usefixtures("traces_nothing")
def test_special_tokens_in_the_text_are_words():
    tokenizer = BertTokenizer(VOCABULARY, reference="huggingface")
    words = aligner_of(tokenizer).align(["[SEP]new[CLS]", "[SEP][SEP]"])
    assert at_places(words) == [["[SEP]", "new", "[CLS]"], ["[SEP]", "[SEP]"]]
    assert words.ends.numpy().tolist() == [[5, 8, 13], [5, 10, -1]]


def test_in_graph(tokenizer):
    aligner = aligner_of(tokenizer, max_length=6)
    texts = ["Newark's in new york", "", "don't don't"]
    dataset = tf.data.Dataset.from_tensors(texts).map(lambda batch: aligner.align(batch)._asdict())
    found, expected = next(iter(dataset)), aligner.align(texts)._asdict()
    tf.nest.map_structure(np.testing.assert_array_equal, found, expected)


def test_errors(tokenizer):
    with pytest.raises(
        TypeError, match="`WordAligner`: `preprocessor` must be a BertPreprocessor. Received: .*Make one"
    ):
        WordAligner(tokenizer)
    preprocessor = BertPreprocessor(tokenizer, max_length=9)
    with pytest.raises(
        ValueError, match=r"`stride` must be less than 7, the number of tokens of a text that fit into max_length=9"
    ):
        WordAligner(preprocessor, stride=7)
    with pytest.raises(ValueError, match="`WordAligner`: `stride` must be at least 0"):
        WordAligner(preprocessor, stride=-1)
    with pytest.raises(TypeError, match="`WordAligner`: `stride` must be an integer"):
        WordAligner(preprocessor, stride=1.5)
