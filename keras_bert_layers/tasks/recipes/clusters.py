"""`cluster_texts`: texts sorted into clusters (topics), each named by its words; and `Clusters`, its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.hints import check_scikit_learn
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.tasks.recipes.unit_vectors import unit_vectors

OWNER = "cluster_texts"
#: The numbers of clusters that are compared where none is given.
NUMBERS = (2, 3, 5, 8, 13, 21, 34, 55)
_NUM_WORDS, _MOST_MEASURED = 4, 2000


@dataclass(frozen=True)
class Clusters:
    """Clusters of texts, the largest first; `cluster_texts` computes them.

    Args:
        labels: int `(rows,)`, the cluster of each text.
        centers: float32 `(clusters, vector_dim)`, the mean of the unit vectors of each cluster.
        words: the words that name each cluster, at most four; none where its texts have stop words only.
        central: int `(clusters,)`, the row of the text that is nearest to the center of each cluster.
        silhouettes: number of clusters -> mean silhouette, for each number that was compared; empty if it was given.
    """

    labels: np.ndarray
    centers: np.ndarray
    words: list[list[str]]
    central: np.ndarray
    silhouettes: dict[int, float]


def cluster_texts(texts: Sequence[str], vectors: Tensor, *, num_clusters: int | None = None, seed: int = 0) -> Clusters:
    """Sorts texts into clusters (topics) by k-means on their unit vectors, and finds the words that name each.

    The words are those with the largest class-based TF-IDF: frequent in the cluster and rare elsewhere, without English
    stop words. `encoder.predict(texts)` of a sentence encoder makes the vectors. The command `cluster` does the same
    with the rows of a file.

    Args:
        texts: the texts.
        vectors: floats `(rows, vector_dim)`, one for each text, of any length.
        num_clusters: how many clusters, at least 2. None takes 2, 3, 5, 8, 13, 21, 34 or 55: the number with the best
            silhouette on at most 2,000 texts, among those of at least a tenth of the square root of the texts.
        seed: of k-means, and of the texts that are measured.

    Returns:
        The clusters. There are fewer than `num_clusters` where fewer vectors are different.

    Raises:
        ModuleNotFoundError: scikit-learn is not installed.
        ValueError: another number of vectors than of texts; fewer different texts than clusters, or than 3; no text
            has a word that is not a stop word.

    Examples:
        >>> texts = ["cats purr", "a cat sleeps", "cats sleep", "stocks fell", "stocks rose"]
        >>> vectors = np.array([[1, 0], [9, 1], [8, 1], [0, 1], [1, 9]], "float32")
        >>> clusters = cluster_texts(texts, vectors, num_clusters=2)
        >>> clusters.labels.tolist(), clusters.words[1]
        ([0, 0, 0, 1, 1], ['stocks', 'fell', 'rose'])

    References:
        Grootendorst 2022, BERTopic, arXiv:2203.05794, section 3.3; Rousseeuw 1987, Silhouettes.
    """
    check_scikit_learn("tasks", OWNER)
    found = ops.convert_to_numpy(vectors)
    if found.ndim != 2 or len(found) != len(texts):
        shape = checks.Shown(f"the shape {found.shape} for {len(texts)} texts")
        raise ValueError(checks.message(OWNER, "vectors", "have the shape (rows, vector_dim), a row per text", shape))
    least = 3 if num_clusters is None else checks.integer(OWNER, "num_clusters", num_clusters, smallest=2)
    if (num_different := len(set(texts))) < least:
        received = checks.Shown(f"{num_different} different texts")
        raise ValueError(checks.message(OWNER, "texts", f"hold at least {least} different texts", received))
    units, silhouettes = unit_vectors(found.astype(np.float32, copy=False)), {}
    if num_clusters is None:
        silhouettes = _silhouettes(units, seed)
        num_clusters = max(silhouettes, key=lambda number: silhouettes[number])
    labels, centers = _clusters(units, num_clusters, seed)
    members = [np.flatnonzero(labels == cluster) for cluster in range(len(centers))]
    central = [rows[(units[rows] @ center).argmax()] for rows, center in zip(members, centers, strict=True)]
    return Clusters(labels, centers, topic_words(texts, labels), np.array(central), silhouettes)


def _silhouettes(vectors: np.ndarray, seed: int) -> dict[int, float]:
    """The mean silhouette of a sample, for each number of clusters that is compared."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    least = min(len(vectors) ** 0.5 / 10, NUMBERS[-2])  # the silhouette prefers few, whose words say little
    sample = np.random.default_rng(seed).permutation(vectors)[:_MOST_MEASURED]
    return {
        number: float(silhouette_score(sample, KMeans(number, random_state=seed).fit_predict(sample)))
        for number in NUMBERS
        if least <= number < len(sample)
    }


def _clusters(vectors: np.ndarray, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The cluster of each vector, and the centers, by k-means, the largest cluster first."""
    from sklearn.cluster import KMeans

    found = KMeans(number, random_state=seed).fit(vectors)
    kept, labels, sizes = np.unique(found.labels_, return_inverse=True, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    return np.argsort(order)[labels], found.cluster_centers_[kept[order]]


def topic_words(texts: Sequence[str], labels: np.ndarray) -> list[list[str]]:
    """The words of each cluster with the largest class-based TF-IDF, the largest first.

    Args:
        texts: the texts.
        labels: int `(rows,)`, the cluster of each, from 0 on.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    reader = CountVectorizer(stop_words="english")
    counts = reader.fit_transform(texts)
    words, frequencies = reader.get_feature_names_out(), np.asarray(counts.sum(axis=0)).ravel()
    weights = np.log1p(frequencies.sum() / (labels.max() + 1) / frequencies)
    topics = []
    for cluster in range(labels.max() + 1):
        scores = np.asarray(counts[labels == cluster].sum(axis=0)).ravel() * weights
        best = np.argsort(-scores, kind="stable")[:_NUM_WORDS]
        topics.append([str(words[index]) for index in best if scores[index] > 0])
    return topics
