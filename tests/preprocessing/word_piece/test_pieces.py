import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import tables
from keras_bert_layers.preprocessing.word_piece.pieces import NEVER, WordPieces, boundaries, matchable

VOCABULARY = ["[UNK]", "a", "##a", "b", "ab", ".", "中"]


@pytest.fixture(scope="module")
def table():
    return tables.load("huggingface", True, True)


def test_long_words(table):
    """The fast path is right except for words with too many bytes, which it recognizes."""
    pieces = WordPieces(VOCABULARY, table, max_word_length=5, split_chinese=True, unknown="[UNK]")
    texts = tf.constant(["aaaaa aba.", "aaaaaa b", "aé", "ééé é", ""])
    careful = pieces.encode_words(texts)
    expected = [[1, 2, 2, 2, 2, 4, 2, 5], [0, 3], [0], [0, 0], []]
    assert tf.RaggedTensor.from_row_splits(careful.ids, careful.row_splits).to_list() == expected
    if pieces.splits_texts:  # an engine on the host does not
        fast = pieces.encode_texts(texts)
        assert fast.ids.numpy().tolist() == careful.ids.numpy().tolist()
        assert pieces.has_long_word(fast, tf.size(texts)).numpy().tolist() == [False, True, False, True, False]


@pytest.mark.parametrize("split_chinese", [True, False])
def test_boundaries(table, split_chinese):
    patterns = boundaries(table, split_chinese=split_chinese)
    expected = {"a": [False, False], " ": [True, False], ",": [True, True], "中": [split_chinese, split_chinese]}
    for character, matches in expected.items():
        assert [bool(tf.strings.regex_full_match(character, pattern)) for pattern in patterns] == matches


def test_tokens_that_no_word_can_match_have_substitutes(table):
    letter, stand_in = next(iter(table.stand_ins.items()))
    vocabulary = ["a", "", "a b", "a", "x" * 9, f"##{chr(letter)}", chr(stand_in), "\x7f"]
    never = [f"{NEVER}{index}" for index in range(len(vocabulary))]
    assert list(matchable(vocabulary, table, 8)) == [
        *(never[0], never[1], never[2], "a", never[4], f"##{chr(stand_in)}", never[6], never[7]),
        NEVER,
    ]
