import random

import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.preprocessors.windows import lay_windows


def expected(num_tokens, room, overlap):
    """The windows of one text: begin and length, until one ends with the text."""
    found, begin = [], 0
    while True:
        found.append((begin, min(room, num_tokens - begin)))
        if begin + room >= num_tokens:
            return found
        begin += room - overlap


@pytest.mark.parametrize("overlap", [0, 1, 3])
def test_windows_cover_each_text(overlap):
    draw = random.Random(overlap)
    sizes = [0, 1, 4, 5, *(draw.randrange(40) for _ in range(30))]
    rooms = [draw.randrange(overlap + 1, 9) for _ in sizes]
    windows = lay_windows(tf.constant(sizes), tf.constant(rooms), overlap)
    wanted = [(row, *part) for row, size in enumerate(sizes) for part in expected(size, rooms[row], overlap)]
    assert list(zip(*(part.numpy().tolist() for part in windows), strict=True)) == wanted


def test_no_texts():
    windows = lay_windows(tf.zeros(0, tf.int32), tf.zeros(0, tf.int32), 1)
    assert [part.numpy().tolist() for part in windows] == [[], [], []]
