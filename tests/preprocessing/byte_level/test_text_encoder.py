import random

import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import tables
from keras_bert_layers.preprocessing.byte_level.text_encoder import WHITESPACE, WordSplitter

ALPHABET = "ab1 \n\t\u00a0'!srtvemld½é"


def test_random_texts_are_split_as_by_the_library():
    pre_tokenizers = pytest.importorskip("tokenizers").pre_tokenizers
    library, draw = pre_tokenizers.ByteLevel(add_prefix_space=False), random.Random(3)
    texts = ["".join(draw.choices(ALPHABET, k=draw.randrange(12))) for _ in range(3000)]
    words = WordSplitter().split(tf.constant(texts))
    found = tf.RaggedTensor.from_row_splits(words.texts, words.row_splits).to_list()
    for text, row in zip(texts, found, strict=True):
        places = [place for _, place in library.pre_tokenize_str(text)]
        assert [word.decode() for word in row] == [text[begin:end] for begin, end in places], text


def test_places():
    words = WordSplitter().split(tf.constant(["é a", "", b"\xffb"]))
    assert words.texts.numpy().tolist() == ["é".encode(), b" a", b"b"]
    assert words.first_bytes.numpy().tolist() == [0, 2, 4]
    assert words.characters.numpy().tolist() == [0, 0, 1, 2, 3]
    assert words.starts.numpy().tolist() == [0, 2, 3, 1]
    assert words.ends.numpy().tolist() == [2, 3, 4, 2]


def test_classes():
    """Whitespace is that of Unicode; the table ends with another character, which stands for all after it."""
    classes = tables.character_classes()
    assert [chr(code) for code, kind in enumerate(classes) if kind == WHITESPACE] == sorted(
        "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
    )
    assert classes[-1] == 0
