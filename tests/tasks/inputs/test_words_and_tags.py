import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.tasks.inputs import tags as words_and_tags

NAMES = ["O", "B-p", "I-p"]
WORDS = [["new", "york"], [], ["in"]]
TAGS = [["B-p", "I-p"], [], ["O"]]


def as_pandas(values):
    return pytest.importorskip("pandas").Series(values)


def as_objects(values):
    column = np.empty(len(values), object)
    column[:] = [np.array(value) for value in values]
    return column


KINDS = [list, as_objects, as_pandas, lambda rows: [tuple(row) for row in rows]]


@pytest.mark.parametrize("kind", KINDS, ids=["lists", "arrays", "pandas", "tuples"])
def test_kinds_of_words_and_tags(kind):
    assert words_and_tags.holds_words(kind(WORDS))
    words = words_and_tags.as_words("Owner", kind(WORDS))
    assert words.to_list() == [[b"new", b"york"], [], [b"in"]]
    for tags in (TAGS, [[1, 2], [], [0]]):
        assert words_and_tags.as_tags("Owner", kind(tags), words, NAMES).to_list() == [[1, 2], [], [0]]
    assert words_and_tags.as_tags("Owner", [[b"B-p", np.int64(2)], [], ["O"]], words, NAMES).to_list() == [
        [1, 2],
        [],
        [0],
    ]
    assert words_and_tags.as_tags("Owner", [[1, -100], [], ["O"]], words, NAMES).to_list() == [[1, -100], [], [0]]


def test_ragged_tensors_stay_as_they_are():
    words, tags = tf.ragged.constant(WORDS), tf.ragged.constant(TAGS)
    assert words_and_tags.holds_words(words)
    assert words_and_tags.as_words("Owner", words) is words
    assert words_and_tags.as_tags("Owner", tags, words, NAMES) is tags


@pytest.mark.parametrize("x", [["a", "b"], np.array(["a"]), tf.constant(["a"]), [], "ab", [b"a"], as_pandas(["a"])])
def test_texts_are_not_words(x):
    assert not words_and_tags.holds_words(x)


def test_datasets_of_words():
    words = tf.data.Dataset.from_tensor_slices(tf.ragged.constant(WORDS)).batch(2)
    assert words_and_tags.holds_words(words)
    assert words_and_tags.holds_words(words.map(lambda row: (row, row)))
    assert not words_and_tags.holds_words(tf.data.Dataset.from_tensors(["a"]))


def test_spans_are_put_in_order():
    spans = words_and_tags.as_spans("Owner", [[(4, 8, "p"), [0, np.int64(3), "p"]], []], ["new york", "in"], ["p"])
    assert [part.to_list() for part in spans] == [[[0, 4], []], [[3, 8], []], [[b"p", b"p"], []]]
    assert words_and_tags.as_spans("Owner", spans, ["new york", "in"], ["p"]) is spans


def test_spans_count_characters_of_bytes_too():
    starts, ends, _ = words_and_tags.as_spans("Owner", [[(1, 5, "p")]], ["éYork".encode()], ["p"])
    assert (starts.to_list(), ends.to_list()) == ([[1]], [[5]])


@pytest.mark.parametrize(
    ("spans", "error", "text"),
    [
        ([[], 5], TypeError, r"spans must be a list of \(start, end, label\) for each text. Received: 5 in row 1"),
        ([[], [(0, 2)]], TypeError, r"every span must be .* two integers and a string. Received: \(0, 2\) in row 1"),
        ([[], [(0.0, 2, "p")]], TypeError, r"every span must be .* Received: \(0.0, 2, 'p'\) in row 1"),
        ([[], [(0, 2, "r")]], ValueError, r"every label must be one of \['p'\]. Received: \(0, 2, 'r'\) in row 1"),
        (
            [[], [(0, 3, "p")]],
            ValueError,
            r"every span must lie in its text of 2 characters and not be empty. .* row 1",
        ),
        ([[(3, 3, "p")], []], ValueError, "every span must lie in its text of 8 characters and not be empty. .* row 0"),
        ([[(3, 4, "p")], []], ValueError, "every span must hold more than whitespace. .* row 0"),
        ([[(3, 8, "p"), (0, 4, "p")], []], ValueError, r"spans must not overlap. Received: \[\(0, 4, 'p'\), \(3, 8"),
        ([[]], ValueError, "`y` must have one row for each row of x. Received: 1 and 2"),
        ("ab", TypeError, "`y` must be a list with one row for each row of x"),
    ],
)
def test_wrong_spans(spans, error, text):
    with pytest.raises(error, match=f"`Owner`: {text}"):
        words_and_tags.as_spans("Owner", spans, ["new york", "in"], ["p"])


@pytest.mark.parametrize(
    ("tags", "error", "text"),
    [
        ([["O", "O"], [], "O"], TypeError, "tags must be a list for each row of words. Received: 'O' in row 2"),
        (
            [["O", "O"], ["O"], ["O"]],
            ValueError,
            "there must be one tag for each word. Received: 0 words and 1 tags in row 1",
        ),
        ([["O", "B-q"], [], ["O"]], ValueError, r"every tag must be one of .* Received: 'B-q' at word 1 of row 0"),
        ([["O", 3], [], ["O"]], ValueError, "every tag must be one of .* Received: 3 at word 1 of row 0"),
        ([["O", None], [], ["O"]], ValueError, "every tag must be one of .* Received: None at word 1 of row 0"),
        ([["O", True], [], ["O"]], ValueError, "every tag must be one of .* Received: True at word 1 of row 0"),
        ([["O", "O"], []], ValueError, "`y` must have one row for each row of x. Received: 2 and 3"),
    ],
)
def test_wrong_tags(tags, error, text):
    with pytest.raises(error, match=f"`Owner`: {text}"):
        words_and_tags.as_tags("Owner", tags, words_and_tags.as_words("Owner", WORDS), NAMES)


@pytest.mark.parametrize("row", ["york", ["york", None], ["york", 5], None])
def test_wrong_words(row):
    with pytest.raises(TypeError, match="`Owner`: words must be a list of strings. Received: .* in row 1"):
        words_and_tags.as_words("Owner", [["new"], row])
