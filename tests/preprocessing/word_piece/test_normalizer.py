import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import tables
from keras_bert_layers.preprocessing.tokens.tokens import Tokens
from keras_bert_layers.preprocessing.word_piece.normalizer import ExactNormalizer, Normalizer


@pytest.mark.parametrize(
    ("switches", "text", "expected"),
    [
        (("google", True, True), "Ünïcode\tX\0", "unicode x"),
        (("google", True, False), "Ünïcode", "ünïcode"),
        (("google", False, True), "Ünïcode", "Unicode"),
        (("google", True, True), "ΑΣ ΑΣΑ Σ", "ας ασα σ"),
        (("huggingface", True, True), "ΑΣ Σ", "ασ σ"),
        (("huggingface", False, False), "a\ufffd\xa0É", "a É"),
    ],
)
def test_normalize(switches, text, expected):
    normalizer = Normalizer(tables.load(*switches))
    assert normalizer.lower_sigmas(normalizer.normalize(tf.constant([text]))).numpy()[0].decode() == expected
    with_sources, sources = normalizer.normalize_with_sources(tf.constant([text]))
    assert normalizer.lower_sigmas(with_sources).numpy()[0].decode() == expected
    assert len(sources[0]) == len(expected.encode()) + 1
    assert sources[0, -1] == len(text.encode())


def test_has_sigma():
    normalizer = Normalizer(tables.load("google", True, True))
    assert normalizer.marks_sigmas
    texts = tf.constant(["aΣb", b"\xff\xce\xa3", "σ", ""])
    assert normalizer.has_sigma(texts).numpy().tolist() == [True, True, False, False]
    assert not Normalizer(tables.load("huggingface", True, True)).marks_sigmas


@pytest.mark.parametrize("split_chinese", [True, False])
def test_exact_normalizer(split_chinese):
    """Spaces are put around Chinese characters if these are split, and nowhere else."""
    table = tables.load("huggingface", True, True)
    exact = ExactNormalizer(table, Normalizer(table).normalize, split_chinese=split_chinese)
    normalized, origins = exact.normalize(tf.constant(["É, x中", "", "한"]))
    first = "e, x 中 " if split_chinese else "e, x中"
    assert [text.decode() for text in normalized.numpy()] == [first, "", "\u1112\u1161\u11ab"]
    size = len(first.encode())
    assert origins.row_starts.numpy().tolist() == [0, size, size]
    chinese = 5 if split_chinese else 3
    assert origins.starts.numpy().tolist() == [0, 2, 3, 4, *[5] * chinese, *[0] * 9]
    assert origins.ends.numpy().tolist() == [2, 3, 4, 5, *[8] * chinese, *[3] * 9]
    row_splits, starts, ends = (tf.constant(values, tf.int64) for values in ([0, 1, 1, 2], [0, 3], [2, 9]))
    tokens = Tokens(tf.constant([7, 8]), row_splits, starts, ends)
    found = origins.in_original(tokens)
    assert (found.starts.numpy().tolist(), found.ends.numpy().tolist()) == ([0, 0], [3, 3])
