import pytest
import tensorflow as tf

from keras_bert_layers.export import Signature
from keras_bert_layers.export.signature import bounded_texts, check_max_bytes, with_bound

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
def test_a_character_is_kept_or_cut_as_one(character, offset):
    text = "a" * (BOUND - offset) + character * 9
    expected = text.encode()[:BOUND].decode(errors="ignore").encode()
    assert bounded([text]) == [expected]
    assert len(expected) > BOUND - 4


def test_broken_utf_8_is_cut_too():
    assert bounded([b"\x80" * 99, b"\xff" * 99]) == [b"\x80" * BOUND, b"\xff" * BOUND]


def test_any_shape():
    assert bounded([["a" * 99, ""], ["b", "c" * 18]]) == [[b"a" * BOUND, b""], [b"b", b"c" * BOUND]]
    assert bounded_texts(tf.zeros([0], tf.string), BOUND).shape == (0,)


COLUMN = ((None,), "string")
PAIRS = {"text": COLUMN, "choices": ((None, None), "string"), "number": ((None,), "int32")}


def test_an_answer_reports_how_many_bytes_of_its_row_were_cut():
    signature = Signature("pairs", lambda text, choices, number: {"text": text, "choices": choices}, PAIRS)
    serve = tf.function(with_bound(signature, BOUND).function, autograph=False)
    texts, choices = ["a" * (BOUND + 2), "a" * BOUND, ""], [["b" * 20, "b" * 18], ["", "é" * 9], ["b", "b" * 99]]
    found = serve(tf.constant(texts), tf.constant(choices), tf.constant([1, 2, 3]))
    assert found["bytes_cut"].dtype == tf.int32
    assert found["bytes_cut"].numpy().tolist() == [2 + 3 + 1, 2, 99 - BOUND]
    assert found["text"].numpy().tolist() == [b"a" * BOUND, b"a" * BOUND, b""]
    assert found["choices"].numpy()[1].tolist() == [b"", "é".encode() * 8]


def test_no_rows_have_nothing_cut():
    signature = with_bound(Signature("one", lambda text: {"text": text}, {"text": COLUMN}), BOUND)
    assert signature.function(tf.zeros([0], tf.string))["bytes_cut"].shape == (0,)


def test_ids_for_another_signature_are_cut_and_have_no_further_output():
    signature = Signature("tokenize", lambda text: {"token_ids": tf.strings.length(text)}, {"text": COLUMN})
    found = with_bound(signature, BOUND).function(tf.constant(["a" * 99]))
    assert {name: value.numpy().tolist() for name, value in found.items()} == {"token_ids": [BOUND]}


def test_without_a_bound_or_texts_a_signature_stays_as_it_is():
    texts = Signature("one", lambda text: {"text": text}, {"text": COLUMN})
    ids = Signature("ids", lambda ids: {"logits": ids}, {"ids": ((None, None), "int32")})
    assert with_bound(texts, None) is texts
    assert with_bound(ids, BOUND) is ids


def test_wrong_bounds():
    assert check_max_bytes("Owner", None) is None
    assert check_max_bytes("Owner", 16) == 16
    with pytest.raises(ValueError, match="`Owner`: `max_bytes` must be at least 16. Received: max_bytes=15"):
        check_max_bytes("Owner", 15)
    with pytest.raises(TypeError, match="`Owner`: `max_bytes` must be an integer"):
        check_max_bytes("Owner", "1 MB")
