import pytest
import tensorflow as tf

from keras_bert_layers.export._text_bound import bounded_texts, check_max_bytes

BOUND = 17


def bounded(texts):
    function = tf.function(lambda texts: bounded_texts(texts, BOUND), autograph=False)
    return function(tf.constant(texts)).numpy().tolist()


@pytest.mark.parametrize("size", [0, 1, BOUND - 1, BOUND, BOUND + 1, 1000])
def test_ascii(size):
    text = (b"0123456789" * 100)[:size]
    assert bounded([text, b"short"]) == [text[:BOUND], b"short"]


@pytest.mark.parametrize("character", ["é", "…", "😀"])
@pytest.mark.parametrize("offset", range(5))
def test_a_character_is_whole_or_not_there(character, offset):
    text = "a" * (BOUND - offset) + character * 9
    expected = text.encode()[:BOUND].decode(errors="ignore").encode()
    assert bounded([text]) == [expected]
    assert len(expected) > BOUND - 4


def test_broken_utf_8_is_cut_too():
    assert bounded([b"\x80" * 99, b"\xff" * 99]) == [b"\x80" * BOUND, b"\xff" * BOUND]


def test_any_shape():
    assert bounded([["a" * 99, ""], ["b", "c" * 18]]) == [[b"a" * BOUND, b""], [b"b", b"c" * BOUND]]
    assert bounded_texts(tf.zeros([0], tf.string), BOUND).shape == (0,)


def test_wrong_bounds():
    assert check_max_bytes("Owner", None) is None
    assert check_max_bytes("Owner", 16) == 16
    with pytest.raises(ValueError, match="`Owner`: `max_bytes` must be at least 16. Received: max_bytes=15"):
        check_max_bytes("Owner", 15)
    with pytest.raises(TypeError, match="`Owner`: `max_bytes` must be an integer"):
        check_max_bytes("Owner", "1 MB")
