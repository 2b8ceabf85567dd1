import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.tasks.prediction import _row_blocks as row_blocks


def cut(rows, *, max_rows=3, max_characters=999):
    return list(row_blocks.blocks("Owner", rows, max_rows=max_rows, max_characters=max_characters))


def test_blocks_are_full_but_the_last_and_count_on():
    assert cut("abcdefgh") == [(0, ["a", "b", "c"]), (3, ["d", "e", "f"]), (6, ["g", "h"])]
    assert cut("abc") == [(0, ["a", "b", "c"])]
    assert cut([]) == []


def test_blocks_are_bounded_in_characters():
    rows = ["a" * 6, "b" * 4, "c", "d" * 30, "e" * 8]
    assert [start for start, _ in cut(rows, max_characters=10)] == [0, 2, 3, 4]
    pairs = [("a" * 5, b"b"), ("c", ["dd", "e"]), ("f" * 7, "g")]
    assert [start for start, _ in cut(pairs, max_characters=10)] == [0, 2]


def test_a_full_block_does_not_wait_for_the_next_row():
    rows = iter("abcdef")
    assert next(row_blocks.blocks("Owner", rows, max_rows=3, max_characters=999)) == (0, ["a", "b", "c"])
    assert next(rows) == "d"


@pytest.mark.parametrize("wrong", [None, float("nan"), {"text": "a"}, 3])
def test_rows_that_are_not_texts(wrong):
    with pytest.raises(TypeError, match=r"`Owner`: texts must be strings. Received: .* in row 7. Missing values"):
        cut([*"abcdefg", wrong])


def test_rows_of_another_size():
    with pytest.raises(ValueError, match="as many texts as the first. Received: 3 in row 4, and 2 in row 0"):
        cut([("a", "b")] * 4 + [("a", "b", "c")])
    with pytest.raises(ValueError, match="as many texts as the first. Received: one text in row 1, and 2 in row 0"):
        cut([("a", "b"), "c"])


def test_what_gives_its_rows_one_by_one():
    generator = (text for text in "ab")
    for x in (generator, iter(["a"]), map(str, range(3)), itertools.repeat("a"), {"a": "b"}.values()):
        assert row_blocks.is_stream(x)
    for x in (["a"], ("a", "b"), "a", {"text": ["a"]}, {"a"}, np.array(["a"]), tf.constant(["a"]), 3, None):
        assert not row_blocks.is_stream(x)
    assert not row_blocks.is_stream(tf.data.Dataset.from_tensors(["a"]))


def test_columns_to_rows_and_back():
    rows = list(row_blocks.rows_of_columns((np.array(["a", "b"], object), tf.constant(["c", "d"]))))
    assert rows == [("a", b"c"), ("b", b"d")]
    assert row_blocks.as_columns(rows) == (["a", "b"], [b"c", b"d"])
    words = tf.ragged.constant([["in", "New"], ["York"]])
    assert row_blocks.as_columns(list(row_blocks.rows_of_columns(words))) == [[b"in", b"New"], [b"York"]]
