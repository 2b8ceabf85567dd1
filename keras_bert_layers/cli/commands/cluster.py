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

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.hints import check_scikit_learn
from keras_bert_layers.cli import encoded_rows
from keras_bert_layers.cli.terminal import counted

if TYPE_CHECKING:
    from keras_bert_layers.tasks import Clusters
    from keras_bert_layers.visualization.picture import Picture

OWNER = "cluster"
_SEED, _SHOWN, _MOST_DRAWN = 0, 60, 600


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
    from keras_bert_layers.tasks import cluster_texts

    clusters = cluster_texts(texts, vectors, num_clusters=arguments.clusters, seed=_SEED)
    topics = [", ".join(words) for words in clusters.words]
    sys.stdout.writelines(f"{line}\n" for line in _lines(clusters, topics, texts))
    if arguments.to is not None:
        columns = zip(numbers, clusters.labels.tolist(), texts, strict=True)
        found = [[number, cluster, topics[cluster], text] for number, cluster, text in columns]
        encoded_rows.write_csv(arguments.to, [["row", "cluster", "words", "text"], *found], owner=OWNER)
    if arguments.picture is not None:
        _picture(clusters, topics, texts, vectors).save(arguments.picture)
    return 0


def _lines(clusters: Clusters, topics: list[str], texts: list[str]) -> Iterator[str]:
    """How many clusters there are and why, and a line for each."""
    reason = "as asked"
    if scores := clusters.silhouettes:
        reason = f"with the best silhouette of {', '.join(map(str, scores))}: {max(scores.values()):.3f}"
    yield f"{counted(len(topics), 'cluster')} of {len(texts):,} rows, {reason}"
    sizes = np.bincount(clusters.labels)
    for cluster, (size, words, row) in enumerate(zip(sizes, topics, clusters.central, strict=True)):
        yield f"{cluster:3} {size:9,}  {words}: {' '.join(texts[row].split())[:_SHOWN]}"


def _picture(clusters: Clusters, topics: list[str], texts: list[str], vectors: np.ndarray) -> Picture:
    """Some of the texts as points, and the center of each cluster as one with the words of the cluster."""
    from keras_bert_layers.tasks.recipes.unit_vectors import unit_vectors
    from keras_bert_layers.visualization import HiddenStateMap

    drawn = np.sort(np.random.default_rng(_SEED).permutation(len(texts))[:_MOST_DRAWN])
    names = [f"{cluster}: {words}" for cluster, words in enumerate(topics)]
    points = [*(name.replace(":", "").partition(",")[0] for name in names), *(texts[index] for index in drawn)]
    groups = [*names, *(names[clusters.labels[index]] for index in drawn)]
    note = f"{len(drawn):,} of {len(texts):,} texts, and the center of each cluster with its words."
    places, title = np.concatenate([clusters.centers, unit_vectors(vectors[drawn])]), f"{len(names)} clusters"
    return HiddenStateMap(points, places, groups=groups, num_labels=len(names), title=title, note=note)
