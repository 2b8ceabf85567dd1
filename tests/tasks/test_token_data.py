import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.tasks import _token_data as token_data
from keras_bert_layers.tasks._row_order import RowOrder

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
    assert token_data.holds_words(kind(WORDS))
    words = token_data.as_words("Owner", kind(WORDS))
    assert words.to_list() == [[b"new", b"york"], [], [b"in"]]
    for tags in (TAGS, [[1, 2], [], [0]]):
        assert token_data.as_tags("Owner", kind(tags), words, NAMES).to_list() == [[1, 2], [], [0]]
    assert token_data.as_tags("Owner", [[b"B-p", np.int64(2)], [], ["O"]], words, NAMES).to_list() == [[1, 2], [], [0]]
    assert token_data.as_tags("Owner", [[1, -100], [], ["O"]], words, NAMES).to_list() == [[1, -100], [], [0]]


def test_ragged_tensors_stay_as_they_are():
    words, tags = tf.ragged.constant(WORDS), tf.ragged.constant(TAGS)
    assert token_data.holds_words(words)
    assert token_data.as_words("Owner", words) is words
    assert token_data.as_tags("Owner", tags, words, NAMES) is tags


@pytest.mark.parametrize("x", [["a", "b"], np.array(["a"]), tf.constant(["a"]), [], "ab", [b"a"], as_pandas(["a"])])
def test_texts_are_no_words(x):
    assert not token_data.holds_words(x)


def test_datasets_of_words():
    words = tf.data.Dataset.from_tensor_slices(tf.ragged.constant(WORDS)).batch(2)
    assert token_data.holds_words(words)
    assert token_data.holds_words(words.map(lambda row: (row, row)))
    assert not token_data.holds_words(tf.data.Dataset.from_tensors(["a"]))


def test_spans_are_put_in_order():
    spans = token_data.as_spans("Owner", [[(4, 8, "p"), [0, np.int64(3), "p"]], []], ["new york", "in"], NAMES)
    assert [part.to_list() for part in spans] == [[[0, 4], []], [[3, 8], []], [[b"p", b"p"], []]]
    assert token_data.as_spans("Owner", spans, ["new york", "in"], NAMES) is spans


def test_spans_count_characters_of_bytes_too():
    starts, ends, _ = token_data.as_spans("Owner", [[(1, 5, "p")]], ["éYork".encode()], NAMES)
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
        ([[(3, 4, "p")], []], ValueError, "every span must hold more than blanks. .* row 0"),
        ([[(3, 8, "p"), (0, 4, "p")], []], ValueError, r"spans must not overlap. Received: \[\(0, 4, 'p'\), \(3, 8"),
        ([[]], ValueError, "`y` must have one row for each row of x. Received: 1 and 2"),
        ("ab", TypeError, "`y` must be a list with one row for each row of x"),
    ],
)
def test_wrong_spans(spans, error, text):
    with pytest.raises(error, match=f"`Owner`: {text}"):
        token_data.as_spans("Owner", spans, ["new york", "in"], NAMES)


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
        token_data.as_tags("Owner", tags, token_data.as_words("Owner", WORDS), NAMES)


@pytest.mark.parametrize("row", ["york", ["york", None], ["york", 5], None])
def test_wrong_words(row):
    with pytest.raises(TypeError, match="`Owner`: words must be a list of strings. Received: .* in row 1"):
        token_data.as_words("Owner", [["new"], row])


def test_weights():
    words = token_data.as_words("Owner", WORDS)
    assert token_data.as_weights("Owner", [1, 0.5, 2], words).tolist() == [1, 0.5, 2]
    with pytest.raises(ValueError, match="`sample_weight` must hold one number for each of the 3 rows"):
        token_data.as_weights("Owner", [1, 2], words)


def test_batches_hold_the_same_rows_of_every_column():
    words = token_data.as_words("Owner", [[str(n)] * n for n in range(7)])
    tags = token_data.as_tags("Owner", [[n % 3] * n for n in range(7)], words, NAMES)
    columns = [words, (tags, np.arange(7)), None, np.arange(7)]
    found = list(token_data.batches(columns, batch_size=3, order=RowOrder.AS_GIVEN, lengths=tf.size))
    assert [batch[0].to_list() for batch in found] == [words[begin : begin + 3].to_list() for begin in (0, 3, 6)]
    assert len(found[0]) == 2
    tf.random.set_seed(1)
    orders = [
        np.concatenate([batch[1][1] for batch in found])
        for _ in range(2)
        for found in [token_data.batches(columns, batch_size=3, order=RowOrder.SHUFFLED, lengths=tf.size)]
    ]
    for order in orders:
        assert sorted(order) == list(range(7))
    assert orders[0].tolist() != list(range(7))


def test_kept():
    logits = np.arange(24.0).reshape(2, 4, 3)
    keep = np.array([[True, False, True, False], [False, False, False, True]])
    kept = token_data.kept(logits, keep)
    np.testing.assert_array_equal(kept, [[logits[0, 0], logits[0, 2]], [logits[1, 3], [0, 0, 0]]])
