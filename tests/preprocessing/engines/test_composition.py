"""`Composer` against the library `tokenizers`: composed texts, and the characters that theirs are from."""

import random

import numpy as np
import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import tables
from keras_bert_layers.preprocessing.engines.composition import Composer

tokenizers = pytest.importorskip("tokenizers", reason="keras-hub brings the tokenizers library")


@pytest.fixture(scope="module")
def composed():
    composer = Composer()
    spec = [tf.TensorSpec([None], tf.string)]
    return tf.function(lambda texts: (composer.changes(texts), composer.compose(texts)), input_signature=spec)


@pytest.fixture(scope="module")
def library():
    """Each composed character is a token, whose offsets say what it is from."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"x": 0}, unk_token="x"))
    tokenizer.normalizer = tokenizers.normalizers.NFC()
    each = tokenizers.Regex("[\\s\\S]")
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split(each, "isolated")
    return tokenizer


def check(composed, library, texts):
    changes, found = composed(tf.constant(texts))
    found = type(found)(*(part.numpy() for part in found))
    last = 0
    for row, (text, own) in enumerate(zip(texts, found.texts, strict=True)):
        expected = library.normalizer.normalize_str(text)
        assert own.decode() == expected, ascii(text)
        assert changes[row] or expected == text, ascii(text)
        places = np.cumsum([0, *(len(character.encode()) for character in text)])
        offsets = [(places[start], places[end]) for start, end in library.encode(text).offsets]
        first, last = last, last + len(own.decode())
        assert [*zip(found.starts[first:last], found.ends[first:last], strict=True)] == offsets, ascii(text)


def test_random_sequences(composed, library):
    """Letters, marks of all classes in any order, Korean letters and syllables, and characters that are taken apart."""
    data, draw = tables.composition(), random.Random(1)
    marks = [*map(chr, data.classes)]
    korean = [
        chr(code)
        for first, last in ((0x1100, 0x1113), (0x1161, 0x1176), (0x11A7, 0x11C3))
        for code in range(first, last)
    ]
    pieces = [*marks, *korean, *map(chr, data.decomposed), *(character for pair in data.composed for character in pair)]
    kinds = [pieces, marks, "aeo \u0301\u0302\u0323\u0345\u1100\u1161\u11a8\uac00\uac01"]
    check(
        composed,
        library,
        ["".join(draw.choice(draw.choice(kinds)) for _ in range(draw.randrange(13))) for _ in range(4000)],
    )


@pytest.mark.slow
def test_every_character_that_changes(composed, library):
    data = tables.composition()
    codes = {*data.decomposed, *data.classes, *range(0xAC00, 0xD7A4), *range(0x1100, 0x1200)}
    for context in ("{}", "a{}\u0301", "e\u0323{}b", "{}\u0302\u0301"):
        check(composed, library, [context.format(chr(code)) for code in sorted(codes)])


def test_long_runs_of_marks(composed, library):
    """What is composed takes few turns, however many marks there are."""
    check(
        composed, library, ["a" + "\u0301" * 3000, "\u0301\u0323" * 2000, "\u1161" * 3000, "\u1100\u1161\u11a8" * 1000]
    )


def test_tables_are_those_of_the_library():
    """Checked in full when they are made, by `normalization_tables/references.py`."""
    composed = tokenizers.normalizers.NFC().normalize_str
    for first, second, whole in tables.composition().composed[::9]:
        assert composed(first + second) == whole
