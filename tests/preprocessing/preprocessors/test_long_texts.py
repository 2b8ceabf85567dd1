import itertools
import re

import keras
import numpy as np
import pytest

from keras_bert_layers import BertPreprocessor, BertTokenizer
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import HeadTail, Windows
from keras_bert_layers.preprocessing.preprocessors.long_texts import as_long_texts, by_text

LETTERS = [*"abcdefghijklmnopqrstuvwxyz"]
CLS, SEP = 2, 3
SHORT = ["a b c", "", "b"]


@pytest.fixture(scope="module")
def letters():
    return BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS])


@pytest.fixture(scope="module")
def make(letters):
    return lambda max_length, **options: BertPreprocessor(letters, max_length, **options)


def text(*sizes):
    """Texts of so many different letters, 26 at most, repeated."""
    return [" ".join((LETTERS * (size // 26 + 1))[:size]) for size in sizes]


def ids(letters):
    return [4 + LETTERS.index(letter) for letter in letters.replace(" ", "")]


def rows(inputs):
    """The ids of each row without padding."""
    return [
        row[: mask.sum()].tolist()
        for row, mask in zip(np.asarray(inputs["token_ids"]), np.asarray(inputs["padding_mask"]), strict=True)
    ]


def hand_made_windows(first, read, *, room, stride):
    """The windows of one text, or of the second of a pair, written as a loop."""
    found, begin = [], 0
    while True:
        found.append([CLS, *([*first, SEP] if first is not None else []), *read[begin : begin + room], SEP])
        if begin + room >= len(read):
            return found
        begin += room - stride


@pytest.mark.parametrize("head", [None, 1, 3, 100])
def test_head_and_tail_of_single_texts(make, head):
    """Of 7 tokens 7 * 128 // 510 = 1 is the default's head."""
    kept = min(7, head or 1)
    expected = [[CLS, *range(4, 4 + kept), *range(4 + 20 - (7 - kept), 4 + 20), SEP]]
    assert rows(HeadTail(head=head)(make(9), text(20))) == expected


def test_the_default_is_128_tokens_of_510(make):
    (row,) = rows(HeadTail()(make(512), text(1000)))
    read = ids(" ".join((LETTERS * 39)[:1000]))
    assert row == [CLS, *read[:128], *read[-382:], SEP]


def test_head_and_tail_of_the_second_text_of_a_pair(make):
    inputs = HeadTail(head=2)(make(11), (["x y", "x y"], text(20, 6)))
    assert rows(inputs) == [
        [CLS, *ids("xy"), SEP, *ids("ab"), *ids("qrst"), SEP],
        [CLS, *ids("xy"), SEP, *ids("abcdef"), SEP],
    ]
    assert np.asarray(inputs["segment_ids"])[0].tolist() == [0] * 4 + [1] * 7


def test_both_texts_of_a_pair_are_cut_where_the_preprocessor_cuts_both(make):
    assert rows(HeadTail(head=1)(make(9), (text(20), text(26)))) == [[CLS, *ids("ast"), SEP, *ids("ayz"), SEP]]


@pytest.mark.parametrize("rule", [HeadTail(), HeadTail(head=2), Windows(), Windows(stride=0)], ids=str)
@pytest.mark.parametrize("padding", ["longest", "bucket", "max_length"])
def test_texts_that_fit_are_read_as_without_the_rule(make, rule, padding):
    for texts in (SHORT, (["a b", "", "c d e f"], ["c", "a b", ""]), ([], []), []):
        expected = make(9, padding=padding)(texts)
        found = rule(make(9, padding=padding), texts)
        for name, values in expected.items():
            np.testing.assert_array_equal(np.asarray(found[name]), np.asarray(values))
    assert "window_rows" not in HeadTail()(make(9), SHORT)


@pytest.mark.parametrize("stride", [0, 1, 3])
def test_windows_are_those_of_a_loop(make, stride):
    sizes = [3, 20, 7, 8, 0, 26]
    found = Windows(stride=stride)(make(9), text(*sizes))
    expected = [hand_made_windows(None, ids(one), room=7, stride=stride) for one in text(*sizes)]
    assert rows(found) == [*itertools.chain(*expected)]
    assert found["window_rows"].numpy().tolist() == [row for row, part in enumerate(expected) for _ in part]


def test_windows_of_pairs_repeat_the_first_text(make):
    firsts, seconds = ["x y", "", "x", "u v w x y z"], text(20, 9, 3, 2)
    found = Windows(stride=2)(make(12), (firsts, seconds))
    expected = [
        hand_made_windows(ids(first), ids(second), room=9 - len(ids(first)), stride=2)
        for first, second in zip(firsts, seconds, strict=True)
    ]
    assert rows(found) == [*itertools.chain(*expected)]
    segments = np.asarray(found["segment_ids"])[0]
    assert segments.tolist() == [0] * 4 + [1] * 8


def test_a_long_first_text_is_cut_until_there_is_room_for_twice_the_stride(make):
    found = Windows(stride=2)(make(12), (text(20), ["u v w x y z"]))
    assert rows(found) == hand_made_windows(ids("abcde"), ids("uvwxyz"), room=4, stride=2)
    left = Windows(stride=2)(make(12, truncation_side="left"), (text(20), ["u v w x y z"]))
    assert rows(left)[0][1:6] == ids("pqrst")


def test_a_query_that_must_not_be_cut_and_leaves_no_room_is_an_error(make):
    preprocessor, read = make(12, truncation="only_second"), text(20)
    assert rows(Windows(stride=2)(preprocessor, (["a b c d e"], read)))[0][:7] == [CLS, *ids("abcde"), SEP]
    with pytest.raises(tf.errors.InvalidArgumentError, match="the first text must fit"):
        Windows(stride=2)(preprocessor, (["a b c d e f"], read))


def test_two_separators_between_the_texts_of_a_pair_count(make):
    tokenizer = BertTokenizer.from_config({**make(9).tokenizer.get_config(), "num_pair_separators": 2})
    preprocessor = BertPreprocessor(tokenizer, 12)
    found = Windows(stride=1)(preprocessor, (["x"], text(20)))
    assert {len(row) for row in rows(found)[:-1]} == {12}
    assert rows(found)[0][:4] == [CLS, *ids("x"), SEP, SEP]


def test_windows_get_an_axis_and_the_most_are_spread_evenly(make):
    windows = Windows(stride=0)(make(4), text(26, 0, 3))  # 13, 1 and 2 windows of two letters
    every = by_text(windows)
    assert every["token_ids"].shape == (3, 13, 4)
    assert np.asarray(every["padding_mask"]).any(axis=-1).sum(axis=1).tolist() == [13, 1, 2]
    for most, places in ((4, [0, 4, 8, 12]), (1, [0]), (2, [0, 12]), (20, range(13))):
        few = by_text(windows, most)
        np.testing.assert_array_equal(few["token_ids"][0], every["token_ids"].numpy()[0, list(places)])
        assert set(few) == {"token_ids", "segment_ids", "padding_mask"}
    assert by_text({"token_ids": 1}) == {"token_ids": 1}


@pytest.mark.parametrize("rule", [HeadTail(head=3), Windows(stride=4, pooling="max", max_windows=None)], ids=str)
def test_a_rule_is_saved_and_loaded(rule):
    assert keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(rule)) == rule


def test_the_rule_of_a_task(make):
    def rule(value, **options):
        return as_long_texts("Task", value, make(9), pooling="max", **options)

    assert rule(None) is None
    assert rule("head_tail") == HeadTail()
    assert rule("windows") == Windows(pooling="max")
    assert rule(Windows(pooling="mean", stride=1)) == Windows(pooling="mean", stride=1)
    assert rule(Windows(stride=3)).stride == 3  # single texts have room for it
    with pytest.raises(ValueError, match=re.escape("`Windows`: `stride` must be at most 3, half of the tokens")):
        rule(Windows(stride=4))
    with pytest.raises(ValueError, match=re.escape("Lower it, or raise `max_length`, which is 9.")):
        rule(Windows(stride=4), pairs=True)
    with pytest.raises(ValueError, match="`stride` must be at most 0"):
        Windows()(make(3), (["a"], ["b"]))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda make: HeadTail(head=0), ValueError, "`HeadTail`: `head` must be at least 1. Received: head=0."),
        (lambda make: Windows(stride=-1), ValueError, "`Windows`: `stride` must be at least 0."),
        (lambda make: Windows(max_windows=0), ValueError, "`Windows`: `max_windows` must be at least 1."),
        (lambda make: Windows(pooling="sum"), ValueError, "`Windows`: `pooling` must be one of [None, 'mean',"),
        (
            lambda make: as_long_texts("Task", "tail", make(9), pooling="mean"),
            ValueError,
            "`Task`: `long_texts` must be one of ['head_tail', 'windows']. Received: long_texts='tail'.",
        ),
        (
            lambda make: as_long_texts("Task", 512, make(9), pooling="mean"),
            TypeError,
            "`Task`: `long_texts` must be a HeadTail, a Windows, a name or None. Received: long_texts=512.",
        ),
        (
            lambda make: as_long_texts("Task", "windows", None, pooling="mean"),
            ValueError,
            "`Task`: `long_texts` must be None without a preprocessor.",
        ),
        (
            lambda make: as_long_texts("Task", "head_tail", make(9, truncation_side="left"), pooling="mean"),
            ValueError,
            "`HeadTail`: `preprocessor.truncation_side` must be 'right'.",
        ),
    ],
)
def test_errors(make, call, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        call(make)
