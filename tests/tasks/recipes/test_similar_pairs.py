"""`similar_pairs` beside cosines in NumPy, pair by pair."""

import numpy as np
import pytest

from keras_bert_layers.tasks.recipes import similar_pairs as module
from keras_bert_layers.tasks.recipes.similar_pairs import similar_pairs

TOLERANCE = 1e-5  # float32 in two orders of operations


def random_vectors():
    return np.random.default_rng(3).normal(size=(23, 5)).astype(np.float32)


def expected_pairs(vectors, threshold):
    """The pairs of vectors, pair by pair in float64."""
    found = []
    for one in range(len(vectors)):
        for other in range(one + 1, len(vectors)):
            lengths = np.linalg.norm(vectors[[one, other]].astype(np.float64), axis=1)
            cosine = vectors[one].astype(np.float64) @ vectors[other] / lengths.prod()
            if cosine >= threshold:
                found.append((cosine, one, other))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("block", [1, 40, 2**24])
def test_pairs_in_blocks(monkeypatch, block):
    vectors, compared = random_vectors(), []
    monkeypatch.setattr(module, "_BLOCK", block)
    pairs = similar_pairs(vectors, 0.5, progress=compared.append)
    wanted = expected_pairs(vectors, 0.5)
    assert len(wanted) > 20
    assert [pair[:2] for pair in pairs] == [(one, other) for _, one, other in wanted]
    assert [cosine for *_, cosine in pairs] == pytest.approx([cosine for cosine, *_ in wanted], abs=TOLERANCE)
    assert sum(compared) == 23


def test_most_pairs_are_the_most_similar(monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 60)
    pairs = similar_pairs(random_vectors(), -1, max_pairs=7)
    assert [pair[:2] for pair in pairs] == [(one, other) for _, one, other in expected_pairs(random_vectors(), -1)][:7]


def test_equal_vectors_reach_one():
    vectors = np.full((2, 384), 1 / np.sqrt(384), np.float32)
    assert [pair[:2] for pair in similar_pairs(vectors, 1)] == [(0, 1)]
    assert similar_pairs(vectors[:1], 1) == similar_pairs(vectors[:0], 1) == []


@pytest.mark.parametrize(
    ("vectors", "words", "message"),
    [
        ([1.0, 2.0], {}, r"`vectors` must have the shape \(rows, vector_dim\). Received: vectors=the shape \(2,\)"),
        ([[1.0]], {"threshold": 1.5}, r"`threshold` must be in \[-1, 1\]. Received: threshold=1.5"),
        ([[1.0]], {"max_pairs": 0}, "`max_pairs` must be"),
    ],
)
def test_errors(vectors, words, message):
    with pytest.raises(ValueError, match=f"`similar_pairs`: {message}"):
        similar_pairs(np.array(vectors), **words)
