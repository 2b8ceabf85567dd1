"""Sort the texts of a file into clusters, and name each by its words.

Prints a table: each cluster with its size, the words that name it, and its most central text. --to writes a CSV file
with the cluster of each row, and --picture draws them. k-means sorts the unit vectors of the texts. The words are those
with the largest class-based TF-IDF: frequent in the cluster and rare elsewhere, without English stop words.

Without --clusters the number is 2, 3, 5, 8, 13, 21, 34 or 55: the one with the best silhouette on at most 2,000 rows,
among those of at least a tenth of the square root of the rows. So 50,000 rows have 34 or 55 clusters.

FILE is a table (.csv, .tsv, .jsonl) with a column of texts, or has one text per line. A row is its number in the table
without the header, or its line, from 1; blank rows are left out. MODEL is a checkpoint that embeds sentences, any BERT
checkpoint, or a .keras file of a sentence encoder. It needs scikit-learn.

Examples:
  keras-bert-layers cluster reviews.csv --text review --model all-MiniLM-L6-v2 --clusters 12 --to clusters.csv
  keras-bert-layers cluster sentences.txt --model all-MiniLM-L6-v2 --picture clusters.html

References: Grootendorst 2022, BERTopic, arXiv:2203.05794, section 3.3; Rousseeuw 1987, Silhouettes.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.hints import check_scikit_learn
from keras_bert_layers.cli import encoded_rows
from keras_bert_layers.cli.terminal import counted

OWNER = "cluster"
NUMBERS = (2, 3, 5, 8, 13, 21, 34, 55)
_SEED, _NUM_WORDS, _SHOWN, _MOST_MEASURED, _MOST_DRAWN = 0, 4, 60, 2000, 600


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    encoded_rows.add_arguments(parser)
    parser.add_argument("--clusters", type=int, metavar="N", help="how many clusters (default: by the silhouette)")
    parser.add_argument("--picture", type=Path, metavar="OUT.html", help="the picture to write")


def run(arguments: argparse.Namespace) -> int:
    """Writes the clusters, and returns 0."""
    check_scikit_learn("keras-bert-layers", OWNER)
    least = 3 if arguments.clusters is None else checks.integer(OWNER, "--clusters", arguments.clusters, smallest=2)
    encoded_rows.check_output(arguments.picture, "--picture", ".html", arguments, owner=OWNER)
    numbers, texts, vectors = encoded_rows.encode(arguments, least=least, owner=OWNER)
    labels, centers, facts = clusters_of(vectors, arguments.clusters)
    topics = topic_words(texts, labels)
    sys.stdout.write(f"{facts}\n")
    for cluster, center in enumerate(centers):
        members = np.flatnonzero(labels == cluster)
        central = texts[members[(vectors[members] @ center).argmax()]]
        sys.stdout.write(f"{cluster:3} {len(members):9,}  {topics[cluster]}: {' '.join(central.split())[:_SHOWN]}\n")
    if arguments.to is not None:
        columns = zip(numbers, labels.tolist(), texts, strict=True)
        found = [[number, cluster, topics[cluster], text] for number, cluster, text in columns]
        encoded_rows.write_csv(arguments.to, [["row", "cluster", "words", "text"], *found], owner=OWNER)
    if arguments.picture is not None:
        _picture(texts, vectors, labels, centers, topics).save(arguments.picture)
    return 0


def clusters_of(vectors: np.ndarray, number: int | None) -> tuple[np.ndarray, np.ndarray, str]:
    """Clusters of vectors by k-means, the largest first.

    Args:
        vectors: float32 `(rows, vector_dim)`.
        number: how many clusters; None for the one of `NUMBERS` with the best silhouette.

    Returns:
        The cluster of each row, int `(rows,)`; the centers, float32 `(clusters, vector_dim)`; and a line that states
        how many clusters there are and why.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    reason = "as asked"
    if number is None:
        least = min(len(vectors) ** 0.5 / 10, NUMBERS[-2])  # the silhouette prefers few, whose words say little
        sample = np.random.default_rng(_SEED).permutation(vectors)[:_MOST_MEASURED]
        scores = {
            number: silhouette_score(sample, KMeans(number, random_state=_SEED).fit_predict(sample))
            for number in NUMBERS
            if least <= number < len(sample)
        }
        number = max(scores, key=lambda number: scores[number])
        reason = f"with the best silhouette of {', '.join(map(str, scores))}: {scores[number]:.3f}"
    found = KMeans(number, random_state=_SEED).fit(vectors)
    kept, labels, sizes = np.unique(found.labels_, return_inverse=True, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    facts = f"{counted(len(kept), 'cluster')} of {len(vectors):,} rows, {reason}"
    return np.argsort(order)[labels], found.cluster_centers_[kept[order]], facts


def topic_words(texts: Sequence[str], labels: np.ndarray) -> list[str]:
    """The words of each cluster with the largest class-based TF-IDF, with commas between them."""
    from sklearn.feature_extraction.text import CountVectorizer

    reader = CountVectorizer(stop_words="english")
    counts = reader.fit_transform(texts)
    words, frequencies = reader.get_feature_names_out(), np.asarray(counts.sum(axis=0)).ravel()
    weights = np.log1p(frequencies.sum() / (labels.max() + 1) / frequencies)
    topics = []
    for cluster in range(labels.max() + 1):
        scores = np.asarray(counts[labels == cluster].sum(axis=0)).ravel() * weights
        best = np.argsort(-scores, kind="stable")[:_NUM_WORDS]
        topics.append(", ".join(words[index] for index in best if scores[index] > 0))
    return topics


def _picture(texts: list[str], vectors: np.ndarray, labels: np.ndarray, centers: np.ndarray, topics: list[str]) -> Any:
    """Some of the texts as points, and the center of each cluster as one with the words of the cluster."""
    from keras_bert_layers.visualization import HiddenStateMap

    drawn = np.sort(np.random.default_rng(_SEED).permutation(len(texts))[:_MOST_DRAWN])
    names = [f"{cluster}: {words}" for cluster, words in enumerate(topics)]
    points = [*(name.replace(":", "").partition(",")[0] for name in names), *(texts[index] for index in drawn)]
    groups = [*names, *(names[labels[index]] for index in drawn)]
    note = f"{len(drawn):,} of {len(texts):,} texts, and the center of each cluster with its words."
    places, title = np.concatenate([centers, vectors[drawn]]), f"{len(names)} clusters"
    return HiddenStateMap(points, places, groups=groups, num_labels=len(names), title=title, note=note)
