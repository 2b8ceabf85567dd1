import numpy as np
import pytest
from document_rows import CLS, SEP

from keras_bert_layers.preprocessing.rows.token_rows import cut, framed, text_room


@pytest.fixture
def rows(tokenizer):
    """Three rows: a pair, one text, and two texts."""
    ids = np.arange(10, 20, dtype=np.int32)
    starts, stops = np.array([0, 2, 5, 6, 8]), np.array([2, 5, 6, 8, 10])
    return framed(
        ids,
        starts,
        stops,
        tokenizer,
        row_bounds=np.array([0, 2, 3, 5]),
        segments=[0, 1, 0, 0, 0],
        text_numbers=[1, 1, 1, 1, 2],
        labels=np.array([1, 0, 0], np.int32),
    )


def test_framed(rows):
    first, second, third = [CLS, 10, 11, SEP, 12, 13, 14, SEP], [CLS, 15, SEP], [CLS, 16, 17, SEP, CLS, 18, 19, SEP]
    assert rows.token_ids.tolist() == first + second + third
    assert rows.segment_ids.tolist() == [0] * 4 + [1] * 4 + [0] * 11
    assert rows.text_numbers.tolist() == [1] * 15 + [2] * 4
    assert rows.bounds.tolist() == [0, 8, 11, 19]
    assert len(rows) == 3


def test_take(rows):
    taken = rows.take([2, 1, 2])
    assert taken.token_ids.tolist() == [*rows.token_ids[11:], *rows.token_ids[8:11], *rows.token_ids[11:]]
    assert taken.text_numbers.tolist() == [1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2]
    assert taken.bounds.tolist() == [0, 8, 11, 19]
    assert taken.labels.tolist() == [0, 0, 0]
    assert len(rows.take(np.zeros(0, np.int64))) == 0


def test_padded(rows):
    padded = rows.take([1, 0]).padded(9, pad_id=7)
    assert padded["token_ids"].tolist() == [[CLS, 15, SEP] + [7] * 6, [*rows.token_ids[:8], 7]]
    assert padded["segment_ids"].tolist() == [[0] * 9, [0] * 4 + [1] * 4 + [0]]
    assert padded["padding_mask"].tolist() == [[1] * 3 + [0] * 6, [1] * 8 + [0]]
    assert {array.dtype for array in padded.values()} == {np.dtype(np.int32)}


def test_cut():
    bounds, firsts = cut(np.array([0, 3, 10, 13]), 3)
    assert bounds.tolist() == [0, 3, 6, 9, 10, 13]
    assert firsts.tolist() == [0, 1, 4, 5]


def test_text_room():
    assert text_room("Rule", 3) == 1
    with pytest.raises(
        ValueError, match=r"`Rule`: `max_length` must be at least 3, for \[CLS\], one token and \[SEP\]"
    ):
        text_room("Rule", 2)
