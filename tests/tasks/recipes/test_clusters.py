"""`cluster_texts`: its clusters, and the words that name them beside a count in Python."""

import math
import re
import sys
from collections import Counter

import numpy as np
import pytest

from keras_bert_layers.tasks.recipes import clusters as module
from keras_bert_layers.tasks.recipes.clusters import cluster_texts, topic_words

pytest.importorskip("sklearn")


@pytest.fixture(autouse=True)
def one_thread():
    """k-means of few rows is faster so, above all where other programs run."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


def blobs(sizes, dim=6):
    """Vectors near an axis each, of as many groups as sizes, and the group of each."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    vectors = 0.02 * np.random.default_rng(3).normal(size=(len(groups), dim)) + np.eye(dim)[groups]
    order = np.random.default_rng(4).permutation(len(groups))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)[order], groups[order]


def texts_of(vectors):
    return [f"text{row}" for row in range(len(vectors))]


def test_clusters_are_the_groups_the_largest_first():
    vectors, groups = blobs([5, 11, 8])
    found = cluster_texts(texts_of(vectors), 3 * vectors, num_clusters=3)
    assert found.labels.tolist() == np.array([2, 0, 1])[groups].tolist()
    for label, center in enumerate(found.centers):
        assert center == pytest.approx(vectors[found.labels == label].mean(axis=0), abs=1e-6)
        assert found.central[label] == np.where(found.labels == label, vectors @ center, -1).argmax()
    assert found.silhouettes == {}


def test_number_of_clusters_by_the_silhouette(monkeypatch):
    vectors, _ = blobs([9, 8, 7, 9, 8])
    found = cluster_texts(texts_of(vectors), vectors)
    assert found.labels.max() == 4
    assert list(found.silhouettes) == [2, 3, 5, 8, 13, 21, 34]
    assert max(found.silhouettes.values()) == found.silhouettes[5] > 0.9
    monkeypatch.setattr(module, "_MOST_MEASURED", 6)
    assert list(cluster_texts(texts_of(vectors), vectors).silhouettes) == [2, 3, 5]
    many = np.tile(vectors, (25, 1))
    assert list(cluster_texts(texts_of(many), many).silhouettes) == [5], "of 1,025 rows"


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_fewer_distinct_vectors_than_clusters():
    vectors = np.eye(2, dtype=np.float32)[[0, 1, 0]]
    found = cluster_texts(texts_of(vectors), vectors, num_clusters=3)
    assert (found.labels.tolist(), len(found.centers)) == ([0, 1, 0], 2)


def test_words_by_class_based_tf_idf():
    texts = ["the cat sat with a cat", "Cat and dog", "a dog, a dog and a bird", "stocks fell", "stocks rose; stocks"]
    labels = np.array([0, 0, 0, 1, 1])
    stop = {"the", "with", "a", "and"}
    classes = [Counter(), Counter()]
    for text, label in zip(texts, labels, strict=True):
        classes[label].update(word for word in re.findall(r"\w\w+", text.lower()) if word not in stop)
    total = classes[0] + classes[1]
    average = sum(total.values()) / 2
    for label, counts in enumerate(classes):
        weights = {word: count * math.log(1 + average / total[word]) for word, count in counts.items()}
        assert topic_words(texts, labels)[label] == sorted(weights, key=lambda word: (-weights[word], word))[:4]


@pytest.mark.parametrize(
    ("texts", "vectors", "words", "message"),
    [
        (["a", "b"], np.eye(3), {}, r"`vectors` must .*, a row per text. .*=the shape \(3, 3\) for 2 texts"),
        (["a", "b"], np.ones(2), {}, r"`vectors` must have the shape \(rows, vector_dim\)"),
        (["a", "b"], np.eye(2), {}, "`texts` must hold at least 3 different texts. Received: texts=2 different texts"),
        (["a", "a"], np.eye(2), {"num_clusters": 2}, "`texts` must hold at least 2 different texts"),
        (["a", "b"], np.eye(2), {"num_clusters": 1}, "`num_clusters` must be at least 2"),
    ],
)
def test_errors(texts, vectors, words, message):
    with pytest.raises(ValueError, match=f"`cluster_texts`: {message}"):
        cluster_texts(texts, vectors, **words)


def test_scikit_learn_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ModuleNotFoundError, match="`tasks`: `cluster_texts` needs scikit-learn"):
        cluster_texts(["a", "b", "c"], np.eye(3))
