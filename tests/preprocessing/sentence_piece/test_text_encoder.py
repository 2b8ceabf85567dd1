"""Special tokens, markers and offsets of `SentencePieceTextEncoder`, with words of one token each."""

import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.sentence_piece.normalizer import CharacterNormalizer
from keras_bert_layers.preprocessing.sentence_piece.text_encoder import SentencePieceTextEncoder
from keras_bert_layers.preprocessing.tokens.tokens import Tokens


class Words:
    """One token per word, whose id is the number of its bytes, marker included."""

    def encode_words(self, words):
        sizes = tf.strings.length(words)
        ends = tf.cast(sizes, tf.int64)
        return Tokens(sizes, tf.range(tf.size(words, tf.int64) + 1), tf.zeros_like(ends), ends)


@pytest.fixture(scope="module")
def encoder():
    return SentencePieceTextEncoder(CharacterNormalizer({"A": "aaa"}), Words(), {"<m>": 901, "<s>": 900}, ["<m>"])


def encoded(encoder, texts):
    """The text and the id of each token."""
    tokens = encoder.encode(tf.constant(texts), with_offsets=True)
    plain = encoder.encode(tf.constant(texts), with_offsets=False)
    assert plain.ids.numpy().tolist() == tokens.ids.numpy().tolist()
    places = zip(tokens.texts_of().numpy(), tokens.starts, tokens.ends, strict=True)
    parts = [texts[row].encode()[start:end].decode() for row, start, end in places]
    found = list(zip(parts, tokens.ids.numpy().tolist(), strict=True))
    return [found[a:b] for a, b in zip(tokens.row_splits[:-1], tokens.row_splits[1:], strict=True)]


@pytest.mark.usefixtures("traces_nothing")
def test_words(encoder):
    assert encoded(encoder, ["ab  c", "", "▁d", "xA"]) == [[("ab", 5), ("c", 4)], [], [("▁d", 4)], [("xA", 7)]]


@pytest.mark.usefixtures("traces_nothing")
def test_special_tokens(encoder):
    texts = ["a <s>b <m> c", "<m><s>", "x < m>"]
    assert encoded(encoder, texts) == [
        [("a", 4), ("<s>", 900), ("b", 4), (" <m>", 901), ("c", 4)],
        [("<m>", 901), ("<s>", 900)],
        [("x", 4), ("<", 4), ("m>", 5)],
    ]


@pytest.mark.usefixtures("traces_nothing")
def test_without_special_tokens():
    encoder = SentencePieceTextEncoder(CharacterNormalizer({}), Words(), {})
    assert encoded(encoder, ["<s> a"]) == [[("<s>", 6), ("a", 4)]]
