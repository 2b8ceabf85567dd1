"""`semantic_search` beside cosines of all pairs in float64, and beside sentence-transformers."""

import re

import keras
import numpy as np
import pytest

from keras_bert_layers.tasks import quantize_embeddings, semantic_search

TOLERANCE = 1e-5  # float32 in two orders of operations


def random_vectors(rows, seed=3, width=7):
    return np.random.default_rng(seed).normal(size=(rows, width)).astype(np.float32)


def expected(queries, corpus, top_k):
    """Rows and cosines, sorted query by query in float64."""
    queries, corpus = (np.asarray(vectors, np.float64) for vectors in (queries, corpus))
    lengths = np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(corpus, axis=1)
    scores = queries @ corpus.T / lengths
    rows = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
    return rows.tolist(), np.take_along_axis(scores, rows, axis=1)


def rows_of(found):
    return [[row["corpus_id"] for row in own] for own in found]


@pytest.mark.parametrize("chunks", [(1, 1), (2, 5), (3, 100), (100, 4)])
@pytest.mark.parametrize("top_k", [1, 6, 50])
def test_the_best_in_blocks(top_k, chunks):
    queries, corpus = random_vectors(5, seed=1), random_vectors(23)
    found = semantic_search(queries, corpus, top_k=top_k, query_chunk_size=chunks[0], corpus_chunk_size=chunks[1])
    rows, scores = expected(queries, corpus, top_k)
    assert rows_of(found) == rows
    assert np.array([[row["score"] for row in own] for own in found]) == pytest.approx(scores, abs=TOLERANCE)
    assert {type(value) for own in found for row in own for value in row.values()} == {int, float}


@pytest.mark.parametrize("chunk", [1, 2, 3, 10])
def test_equal_scores_go_by_the_row(chunk):
    corpus = np.array([[1, 0], [0, 1], [2, 0], [0, 1], [3, 0], [0, 2], [-1, 0]], np.float32)
    found = semantic_search(np.eye(2, dtype=np.float32), corpus, top_k=2, corpus_chunk_size=chunk)
    assert rows_of(found) == [[0, 2], [1, 3]]


@pytest.mark.parametrize("chunk", [1, 5, 40, 100])
@pytest.mark.parametrize("top_k", [1, 7, 50])
def test_equal_negative_and_infinite_scores(chunk, top_k):
    numbers = np.array([-0.0, 0.0, 1, 1 + 2**-23, -1, -1e-45, 1e-45, 3e38, np.inf, -np.inf], np.float32)
    scores = np.random.default_rng(2).choice(numbers, (6, 90))
    scores[0] = -np.inf
    queries, corpus = (np.eye(count, 90, dtype=np.float32) for count in (6, 90))
    found = semantic_search(
        queries,
        corpus,
        top_k=top_k,
        corpus_chunk_size=chunk,
        score_function=lambda asked, rows: scores[np.ix_(asked.argmax(axis=1), rows.argmax(axis=1))],
    )
    rows = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
    assert rows_of(found) == rows.tolist()
    assert [[row["score"] for row in own] for own in found] == np.take_along_axis(scores, rows, axis=1).tolist()


@pytest.mark.parametrize("size", [4, 9])
def test_scores_that_are_not_numbers(size):
    corpus = random_vectors(9)
    with pytest.raises(ValueError, match="`semantic_search`: `scores` must be numbers. Received: scores=nan"):
        semantic_search(
            corpus[:2],
            corpus,
            top_k=1,
            corpus_chunk_size=size,
            score_function=lambda queries, rows: np.where(rows[:, 0] == corpus[-1, 0], np.nan, queries @ rows.T),
        )


def test_tensors_one_query_and_a_score_of_ones_own():
    queries, corpus = random_vectors(1, seed=1), random_vectors(9)
    tensor = keras.ops.convert_to_tensor
    found = semantic_search(tensor(queries[0]), tensor(corpus), top_k=3, score_function=np.inner)
    assert rows_of(found) == np.argsort(-(queries @ corpus.T))[:, :3].tolist()


def test_a_corpus_on_disk_stays_there(tmp_path):
    corpus = random_vectors(11)
    np.save(tmp_path / "corpus.npy", corpus)
    on_disk = np.load(tmp_path / "corpus.npy", mmap_mode="r")
    assert semantic_search(corpus[:2], on_disk) == semantic_search(corpus[:2], corpus)


def test_nothing_to_find():
    corpus = random_vectors(4)
    assert semantic_search(corpus[:0], corpus) == []
    assert semantic_search(corpus[:2], corpus[:0]) == [[], []]
    assert semantic_search(np.zeros((1, 7), np.float32), corpus, top_k=1) == [[{"corpus_id": 0, "score": 0.0}]]


@pytest.mark.parametrize("precision", ["int8", "binary"])
def test_a_quantized_corpus_is_compared_by_its_values(precision):
    queries, quantized = random_vectors(3, seed=1), quantize_embeddings(random_vectors(30), precision)
    rows, scores = expected(queries, quantized[:], 5)
    found = semantic_search(queries, quantized, top_k=5, corpus_chunk_size=8)
    assert [[row["score"] for row in own] for own in found] == pytest.approx(scores, abs=TOLERANCE)
    if precision == "int8":  # whose scores are all different
        assert rows_of(found) == rows


def test_compared_again_with_better_vectors():
    queries, corpus = random_vectors(4, seed=1), random_vectors(60)
    binary = quantize_embeddings(corpus, "binary")
    rows, scores = expected(queries, corpus, 5)
    exact = semantic_search(queries, binary, top_k=5, rescore_embeddings=corpus, rescore_multiplier=12)
    assert rows_of(exact) == rows
    assert [[row["score"] for row in own] for own in exact] == pytest.approx(scores, abs=TOLERANCE)
    first = semantic_search(queries, binary, top_k=10)
    again = semantic_search(queries, binary, top_k=5, rescore_embeddings=corpus, rescore_multiplier=2)
    assert all(set(own) <= set(known) for own, known in zip(rows_of(again), rows_of(first), strict=True))
    assert rows_of(again) != rows_of(semantic_search(queries, binary, top_k=5))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"top_k": 0}, "`top_k` must be at least 1"),
        ({"query_chunk_size": 0}, "`query_chunk_size` must be at least 1"),
        ({"corpus_chunk_size": -1}, "`corpus_chunk_size` must be at least 1"),
        (
            {"corpus_embeddings": np.ones((3, 5))},
            "`corpus_embeddings` must have the shape (rows, 7). Received: corpus_emb",
        ),
        ({"corpus_embeddings": np.ones(7)}, "`corpus_embeddings` must have the shape (rows, 7)"),
        ({"corpus_embeddings": np.full((2, 7), np.nan)}, "`corpus_embeddings` must be finite"),
        (
            {"corpus_embeddings": np.broadcast_to(np.float32(1), (2**32 + 1, 7))},
            "`corpus_embeddings` must have at most 4294967296 rows. Received: corpus_embeddings=4294967297",
        ),
        ({"query_embeddings": np.full((2, 7), np.inf)}, "`query_embeddings` must be finite"),
        ({"rescore_embeddings": np.ones((2, 7))}, "`rescore_embeddings` must have a vector for each row of the corpus"),
        ({"rescore_embeddings": np.ones((4, 7)), "rescore_multiplier": 0}, "`rescore_multiplier` must be at least 1"),
    ],
)
def test_errors(words, message):
    arguments = {"query_embeddings": random_vectors(2), "corpus_embeddings": random_vectors(4), **words}
    with pytest.raises(ValueError, match=re.escape(f"`semantic_search`: {message}")):
        semantic_search(**arguments)


@pytest.mark.peers
def test_results_of_sentence_transformers():
    util = pytest.importorskip("sentence_transformers.util", reason="the extra `benchmarks` brings it")
    queries, corpus = random_vectors(11, seed=1, width=384), random_vectors(2003, width=384)
    ours = semantic_search(queries, corpus, corpus_chunk_size=300)
    theirs = util.semantic_search(queries, corpus)
    assert rows_of(ours) == rows_of(theirs)
    scores = [[[row["score"] for row in own] for own in found] for found in (ours, theirs)]
    assert scores[0] == pytest.approx(np.array(scores[1]), abs=TOLERANCE)
