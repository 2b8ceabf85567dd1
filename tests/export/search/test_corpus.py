import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.export.search.corpus import (
    BITS,
    DOCUMENTS,
    HIGH,
    LOW,
    ROW_STARTS,
    SCALES,
    TEXTS,
    corpus_arrays,
    cut_text,
    encoded_texts,
    packed_signs,
    read_corpus,
)

VECTORS = np.random.default_rng(0).normal(size=(5, 70)).astype(np.float32)


@pytest.mark.parametrize("form", [list, tuple, np.array, tf.constant, iter], ids=range(5))
def test_equal_texts_are_one(form):
    corpus = read_corpus("export_search", form(["b", "a", "b", "", "a"]))
    assert corpus.texts == ["b", "a", ""]
    assert corpus.rows.tolist() == [0, 1, 0, 2, 1]
    assert corpus.ids.tolist() == [0, 1, 2, 3, 4]
    arrays = corpus_arrays(corpus, VECTORS[:3], "float32")
    assert arrays[TEXTS].tolist() == [b"b", b"a", b""]
    assert arrays[ROW_STARTS].tolist() == [0, 2, 4, 5]
    assert arrays[DOCUMENTS].tolist() == [0, 2, 1, 4, 3, 5]


def test_dictionary_has_the_ids():
    corpus = read_corpus("export_search", {"x": "a", "y": "b"})
    assert (corpus.ids.tolist(), corpus.texts, corpus.ids_are) == (["x", "y"], ["a", "b"], "string")


@pytest.mark.parametrize(
    ("documents", "ids", "kind", "said"),
    [
        ("a text", None, TypeError, "`documents` must be a list of texts"),
        (["a", None], None, TypeError, "every document must be a string. Received: None in row 1"),
        (["a", "\ud800"], None, ValueError, "every document must be valid Unicode"),
        (["a", "b"], ["x"], ValueError, "`ids` must have an id for each document"),
        (["a", "b"], ["x", "x"], ValueError, r"`ids` must be different for each document. Received: ids=\['x'\]"),
        (["a", "b"], ["x", 1], TypeError, "`ids` must be strings, or whole numbers"),
        (["a", "b"], [True, False], TypeError, "`ids` must be strings, or whole numbers"),
        (["a", "b"], [1, 2**63], TypeError, "`ids` must be strings, or whole numbers of 64 bits"),
        ({"x": "a"}, ["y"], ValueError, "`ids` must be None where documents are a dictionary"),
    ],
    ids=range(9),
)
def test_what_is_no_corpus_is_refused(documents, ids, kind, said):
    with pytest.raises(kind, match=said):
        read_corpus("export_search", documents, ids)


def test_two_bytes_are_within_half_a_step():
    vectors = np.vstack([VECTORS, np.zeros((1, 70), np.float32)])
    arrays = corpus_arrays(read_corpus("export_search", list("abcdef")), vectors, "int8")
    found = (arrays[HIGH] * 256.0 + arrays[LOW]) * arrays[SCALES][:, None]
    steps = np.abs(vectors).max(axis=1) / 32639
    assert (np.abs(found - vectors) <= (0.5001 * steps)[:, None]).all()
    # The higher byte alone is the nearest number of 8 bits.
    assert (np.abs(arrays[HIGH] * arrays[SCALES][:, None] * 256 - vectors) <= (128.6 * steps)[:, None]).all()


def test_signs_are_bits_from_the_lowest_on():
    arrays = corpus_arrays(read_corpus("export_search", list("abcde")), VECTORS, "binary")
    assert arrays[BITS].shape == (5, 2)
    for words, vector in zip(packed_signs(VECTORS).tolist(), VECTORS, strict=True):
        assert [words[place // 64] >> place % 64 & 1 for place in range(70)] == (vector > 0).tolist()


def test_vectors_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="every vector must be finite. Received: row 1"):
        corpus_arrays(read_corpus("export_search", ["a", "b"]), np.array([[1, 2], [np.nan, 0]], "float32"), "int8")


def test_texts_are_encoded_in_their_order_with_the_longest_first():
    texts, asked = ["a" * size for size in (3, 20_000, 0, 9_000, 9_001)], []

    def encode(part):
        asked.append(list(map(len, part)))
        return np.array([[len(text)] for text in part], np.float32)

    assert encoded_texts(encode, texts)[:, 0].tolist() == list(map(len, texts))
    assert asked == [[20_000], [9_001], [9_000], [3, 0]]


def test_cut_is_after_a_whole_character():
    assert cut_text("aé", 2) == "a"
    assert cut_text("aé", 3) == cut_text("aé", None) == "aé"
