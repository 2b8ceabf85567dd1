"""`Tokens`: flat tokens against lists of lists."""

import random

import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.tokens.tokens import (
    Tokens,
    TracedEncoding,
    concatenate,
    ragged_tokens,
    repaired,
    replaced,
    tokens_of,
)


def flat(rows):
    """Tokens of rows of ids; a token of id i starts at byte i and ends at byte i + 1."""
    ids = tf.ragged.constant(rows, tf.int32, row_splits_dtype=tf.int64, ragged_rank=1)
    starts = tf.cast(ids.flat_values, tf.int64)
    return Tokens(ids.flat_values, ids.row_splits, starts, starts + 1)


def rows_of(tokens):
    assert tokens.starts.numpy().tolist() == tokens.ids.numpy().tolist()
    assert (tokens.ends - tokens.starts).numpy().tolist() == [1] * len(tokens.ids)
    return tf.RaggedTensor.from_row_splits(tokens.ids, tokens.row_splits).to_list()


@pytest.fixture
def rows():
    draw = random.Random(5)
    return [[draw.randrange(90) for _ in range(draw.choice((0, 0, 1, 2, 5)))] for _ in range(23)]


def test_texts_of(rows):
    for some in (rows, [[]], [[], [1], []], [[1, 2], [], [], [3]]):
        assert flat(some).texts_of().numpy().tolist() == [row for row, ids in enumerate(some) for _ in ids]


def test_gather_and_concatenate(rows):
    assert rows_of(flat(rows).gather(tf.constant([4, 4, 0, 22]))) == [rows[4], rows[4], rows[0], rows[22]]
    assert rows_of(concatenate([flat(rows[:3]), flat(rows[3:4]), flat(rows[4:])])) == rows


def test_replaced_and_repaired(rows):
    wrong = [index % 3 == 1 for index in range(len(rows))]
    others = [[100 + index] * 2 for index, is_wrong in enumerate(wrong) if is_wrong]
    expected = [
        [100 + index] * 2 if is_wrong else row for index, (row, is_wrong) in enumerate(zip(rows, wrong, strict=True))
    ]
    assert rows_of(replaced(flat(rows), tf.constant(wrong), flat(others))) == expected
    texts, seen = tf.strings.as_string(tf.range(len(rows))), []

    def encode(some):
        seen.append(some.numpy().tolist())
        return flat(others)

    assert rows_of(repaired(flat(rows), texts, tf.constant(wrong), encode)) == expected
    assert seen == [[b"1", b"4", b"7", b"10", b"13", b"16", b"19", b"22"]]
    assert rows_of(repaired(flat(rows), texts, tf.zeros(len(rows), tf.bool), encode)) == rows
    assert len(seen) == 1


def encode_lengths(texts, *, with_offsets=False):
    """One token for each byte, whose id is the length of the text."""
    lengths = tf.strings.length(texts)
    places = tf.ragged.range(tf.cast(lengths, tf.int64))
    return Tokens(tf.repeat(lengths, lengths), places.row_splits, places.values, places.values + 1)


def test_ragged_tokens_have_the_axes_of_the_texts():
    ids, starts, ends = ragged_tokens(encode_lengths, [["a", "bc"], ["", "d"]], "Owner", with_offsets=True)
    assert ids.to_list() == [[[1], [2, 2]], [[], [1]]]
    assert starts.to_list() == [[[0], [0, 1]], [[], [0]]]
    assert ends.to_list() == [[[1], [1, 2]], [[], [1]]]
    assert {part.dtype for part in (ids, starts, ends)} == {tf.int32}
    ragged = tf.ragged.constant([["a"], [], ["b", "cd"]])
    assert ragged_tokens(encode_lengths, ragged, "Owner")[0].to_list() == [[[1]], [], [[1], [2, 2]]]
    assert ragged_tokens(encode_lengths, "xyz", "Owner")[0].numpy().tolist() == [3, 3, 3]
    with pytest.raises(TypeError, match="`Owner`: `text` must be strings"):
        ragged_tokens(encode_lengths, 3, "Owner")


def test_tokens_of_ids():
    names = tf.constant(["pad", "a", "b"])
    assert tokens_of([[1, 2, 0], [2]], names, pad_id=0).to_list() == [[b"a", b"b"], [b"b"]]
    assert tokens_of(tf.constant([[1, 0], [0, 0]]), names, pad_id=0).to_list() == [[b"a"], []]


@pytest.mark.usefixtures("in_graph")
def test_an_encoding_is_traced_once():
    traces = []

    def encode(texts, with_offsets):
        traces.append(with_offsets)
        return encode_lengths(texts)

    traced = TracedEncoding(encode)
    assert traced(tf.constant(["ab", "c"]), with_offsets=False).row_splits.shape == (3,)
    for number in range(3):
        tf.function(lambda texts: traced(texts, with_offsets=True).ids)(tf.constant(["a"] * (number + 1)))
    assert traces == [False, True]
