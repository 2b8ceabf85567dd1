import random

import numpy as np
import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.byte_level.merges import ByteMerges, byte_characters

LETTERS = "abc"


def merged(merges, words):
    """The words' tokens, by `ByteMerges`."""
    tokens = list(byte_characters().values())
    tokens += sorted({first + second for first, second in merges} - {*tokens})
    ids = {token: index for index, token in enumerate(tokens)}
    pairs = np.array([(ids[first], ids[second]) for first, second in merges])
    results = np.array([ids[first + second] for first, second in merges])
    byte_ids = np.array([ids[character] for _, character in sorted(byte_characters().items())])
    values = {character: byte for byte, character in byte_characters().items()}
    encoder = ByteMerges(byte_ids, pairs, results, {bytes(map(values.get, t)): index for t, index in ids.items()})
    found = encoder.encode_words(tf.constant(words))
    rows = tf.RaggedTensor.from_row_splits(found.ids, found.row_splits).to_list()
    places = [
        list(zip(*row, strict=True))
        for row in zip(
            *(tf.RaggedTensor.from_row_splits(part, found.row_splits).to_list() for part in (found.starts, found.ends)),
            strict=True,
        )
    ]
    return ids, rows, places


@pytest.mark.parametrize("is_shuffled", [False, True], ids=["in order", "in any order"])
def test_random_merges_as_the_library(is_shuffled):
    """Of few letters, so that pairs overlap; and with ranks below those of a token's own parts."""
    models, draw = pytest.importorskip("tokenizers").models, random.Random(5)
    for _ in range(12):
        tokens, merges = list(LETTERS), []
        while len(merges) < 12:
            pair = draw.choice(tokens), draw.choice(tokens)
            if pair not in merges and len(pair[0] + pair[1]) < 9:
                merges.append(pair)
                tokens.append(pair[0] + pair[1])
        if is_shuffled:
            draw.shuffle(merges)
        words = ["".join(draw.choices(LETTERS, k=draw.choice([1, 3, 8, 30, 300]))) for _ in range(60)]
        for some in (words, [word for word in words if len(word) < 60]):  # of many bytes, and of few
            ids, rows, places = merged(merges, some)
            library = models.BPE(vocab=ids, merges=merges)
            for word, row, place in zip(some, rows, places, strict=True):
                expected = library.tokenize(word)
                assert row == [token.id for token in expected], (merges, word)
                assert place == [token.offsets for token in expected]


def test_whole_words_are_known_without_encoding(monkeypatch):
    """An earlier `bc` keeps `abc` from being whole, and `aa` `aaaa`; merges that are out of order need encoding."""
    calls, encode = [], ByteMerges._encode
    monkeypatch.setattr(ByteMerges, "_encode", lambda self, words: calls.append(1) or encode(self, words))
    merges = [("b", "c"), ("a", "b"), ("ab", "c"), ("a", "a"), ("aa", "a"), ("aaa", "a"), ("c", "c"), ("cc", "cc")]
    words = ["bc", "ab", "aa", "aaa", "cc", "cccc"]
    ids, rows, _ = merged(merges, words)
    assert rows == [[ids[word]] for word in words]
    assert not calls
    _, rows, _ = merged(merges, ["abc", "aaaa"])
    assert rows == [[ids["a"], ids["bc"]], [ids["aa"], ids["aa"]]]
    calls.clear()
    merged([("ab", "c"), ("a", "b")], ["abc"])
    assert len(calls) == 1


def test_a_long_word_beside_short_ones():
    word = "".join(random.Random(0).choices(LETTERS, k=50_000))
    _, rows, places = merged([(a, b) for a in LETTERS for b in LETTERS], ["a", word, "b"])
    assert (len(rows[0]), len(rows[1]), len(rows[2])) == (1, len(places[1]), 1)
    assert places[1][-1][1] == 50_000


def test_no_matrix_of_many_words_or_bytes(monkeypatch):
    monkeypatch.setattr(ByteMerges, "_encode_many", lambda self, words, sizes: "a vector")
    monkeypatch.setattr(ByteMerges, "_encode_few", lambda self, words, sizes, longest: "a matrix")
    characters = byte_characters()
    encoder = ByteMerges(np.arange(256), np.zeros((0, 2), int), np.zeros(0, int), {bytes([b]): b for b in characters})
    assert encoder._encode(tf.fill([70_000], "b")) == encoder._encode(tf.constant(["a", "a" * 40_000])) == "a vector"
    assert encoder._encode(tf.constant(["a", "a" * 40])) == "a matrix"


def test_each_byte_has_a_character():
    characters = byte_characters()
    assert len(characters) == len({*characters.values()}) == 256
    assert (characters[ord(" ")], characters[ord("a")], characters[ord("\n")]) == ("Ġ", "a", "Ċ")
