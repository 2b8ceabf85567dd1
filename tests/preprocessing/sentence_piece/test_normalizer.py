import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.sentence_piece.normalizer import CharacterNormalizer, read_character_map

CHARACTERS = {"A": "a", "½": "1⁄2", "\u200b": "", "e\u0301": "é", "\t": " "}


@pytest.fixture(scope="module")
def normalizer():
    return CharacterNormalizer(CHARACTERS)


def test_single_characters(normalizer):
    texts = ["Ab½", "x▁y\u3000z", b"\xffA", ""]
    normalized, sources = normalizer.normalize(tf.constant(texts))
    assert [text.decode() for text in normalized.numpy()] == ["ab1⁄2", "x ▁y z", "a", ""]
    assert sources.to_list()[0] == [0, 1, *[2] * 5, 4]


def test_clusters(normalizer):
    """A cluster with a key is replaced as a whole; other characters of the cluster are dropped with it."""
    normalized, sources = normalizer.normalize_clusters(tf.constant(["xe\u0301 A", "e", "½"]))
    assert [text.decode() for text in normalized.numpy()] == ["xé a", "e", "1⁄2"]
    assert sources.to_list()[0] == [0, 1, 1, 4, 5]


def test_care_pattern_finds_what_clusters_change(normalizer):
    care = normalizer.care_pattern
    for text, needs_care in (("e\u0301", True), ("e", False), ("\u200bx", True), ("xA", False)):
        assert bool(tf.strings.regex_full_match(text, rf"\C*(?:{care})\C*")) == needs_care
        same = normalizer.normalize(tf.constant([text]))[0] == normalizer.normalize_clusters(tf.constant([text]))[0]
        assert needs_care or bool(same)
    assert CharacterNormalizer({}).care_pattern is None


def test_empty_map():
    assert read_character_map(b"") == {}


@pytest.mark.parametrize("data", [b"\x05\0\0\0", b"\xff\xff\xff\xff", b"\x04\0\0\0\0\0\0\0no end"])
def test_damaged_maps(data):
    with pytest.raises(ValueError, match="the map is damaged"):
        read_character_map(data)
