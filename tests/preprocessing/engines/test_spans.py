"""Cutting texts into spans, encoding each, and mapping offsets back."""

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.engines.spans import NOT_FORCED, cut, encode_spans, original_offsets
from keras_bert_layers.preprocessing.tokens.tokens import Tokens


def encode_bytes(texts):
    """One token for each byte, whose id is the byte."""
    values = tf.strings.bytes_split(texts)
    ids = tf.reshape(tf.io.decode_raw(values.values, tf.uint8), [-1])
    places = tf.ragged.range(tf.cast(values.row_lengths(), tf.int64)).values
    return Tokens(tf.cast(ids, tf.int32), values.row_splits, places, places + 1)


def test_cut():
    spans = cut(tf.constant(["a, bc", "", ",", "é d"]), "[ ,]", "[,]")
    assert spans.texts.numpy().tolist() == [b"a", b",", b"bc", b",", "é".encode(), b"d"]
    assert spans.row_splits.numpy().tolist() == [0, 3, 3, 4, 6]
    assert spans.starts.numpy().tolist() == [0, 1, 3, 0, 0, 3]
    assert spans.ends.numpy().tolist() == [1, 2, 5, 1, 2, 4]
    assert (spans.forced_ids == NOT_FORCED).numpy().all()


def test_encode_spans():
    spans = cut(tf.constant(["ab cd", "", "e f"]), " ", "x")
    spans = spans._replace(forced_ids=tf.constant([NOT_FORCED, 900, NOT_FORCED, 901]))
    tokens = encode_spans(spans, encode_bytes)
    assert tokens.ids.numpy().tolist() == [ord("a"), ord("b"), 900, ord("e"), 901]
    assert tokens.row_splits.numpy().tolist() == [0, 3, 3, 5]
    assert tokens.starts.numpy().tolist() == [0, 1, 3, 0, 2]
    assert tokens.ends.numpy().tolist() == [1, 2, 5, 1, 3]


def test_original_offsets():
    """ "É" became "e", its mark was dropped, and "한" became two syllable parts of three bytes each."""
    texts = tf.constant(["xÉ\u0301한", "ab"])
    sources = tf.ragged.constant([[0, 1, *[5] * 6, 8], [0, 1, 2]], tf.int64, row_splits_dtype=tf.int64)
    starts, ends = original_offsets(
        texts,
        sources,
        tf.constant([0, 0, 0, 1], tf.int64),
        tf.constant([0, 2, 5, 1], tf.int64),
        tf.constant([2, 5, 8, 2], tf.int64),
    )
    assert starts.numpy().tolist() == [0, 5, 5, 1]
    assert ends.numpy().tolist() == [3, 8, 8, 2]
