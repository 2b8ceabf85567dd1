"""`cluster`: its clusters, the words that name them beside a count in Python, its files, and errors."""

import csv
import math
import re
import sys
from collections import Counter

import numpy as np
import pytest

from keras_bert_layers.cli import cluster

pytest.importorskip("sklearn")
pytestmark = pytest.mark.usefixtures("traces_nothing")


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


def test_clusters_are_the_groups_the_largest_first():
    vectors, groups = blobs([5, 11, 8])
    labels, centers, facts = cluster.clusters_of(vectors, 3)
    assert labels.tolist() == np.array([2, 0, 1])[groups].tolist()
    for label, center in enumerate(centers):
        assert center == pytest.approx(vectors[labels == label].mean(axis=0), abs=1e-6)
    assert facts == "3 clusters of 24 rows, as asked"


def test_number_of_clusters_by_the_silhouette(monkeypatch):
    vectors, _ = blobs([9, 8, 7, 9, 8])
    labels, _, facts = cluster.clusters_of(vectors, None)
    assert labels.max() == 4
    assert re.fullmatch(r"5 clusters of 41 rows, with the best silhouette of 2, 3, 5, 8, 13, 21, 34: 0\.9\d\d", facts)
    monkeypatch.setattr(cluster, "_MOST_MEASURED", 6)
    assert "silhouette of 2, 3, 5: " in cluster.clusters_of(vectors, None)[2]
    assert "silhouette of 5: " in cluster.clusters_of(np.tile(vectors, (25, 1)), None)[2], "of 1,025 rows"


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_fewer_distinct_rows_than_clusters():
    labels, centers, facts = cluster.clusters_of(np.eye(2, dtype=np.float32)[[0, 1, 0]], 3)
    assert (labels.tolist(), len(centers), facts) == ([0, 1, 0], 2, "2 clusters of 3 rows, as asked")


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
        best = sorted(weights, key=lambda word: (-weights[word], word))[:4]
        assert cluster.topic_words(texts, labels)[label] == ", ".join(best)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.csv"
    rows = [*(["a good film"] * 5), "", *(["bad night"] * 4)]
    path.write_text("".join(f"{row}\n" for row in ["id,review", *(f"{i},{row}" for i, row in enumerate(rows))]))
    return path


def test_files(run, encoder, table, tmp_path, capsys):
    words = ["cluster", table, "--text", "review", "--model", encoder, "--clusters", 2]
    assert run(*words, "--to", tmp_path / "out.csv", "--picture", tmp_path / "out.html") == 0
    assert capsys.readouterr().out == (
        "2 clusters of 9 rows, as asked\n  0         5  film, good: a good film\n  1         4  bad, night: bad night\n"
    )
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["row", "cluster", "words", "text"]
    assert rows[5:7] == [["5", "0", "film, good", "a good film"], ["7", "1", "bad, night", "bad night"]]
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert page.count("0 film</text>") == page.count("0: film, good</text>") == 1, "its label, and the legend"
    assert "9 of 9 texts, and the center of each cluster" in page
    assert run(*words) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--clusters", "10"], "rows.csv must have at least 10 different texts. Found: 2."),
        ([], "rows.csv must have at least 3 different texts. Found: 2."),
        (["--clusters", "1"], "`cluster`: `--clusters` must be"),
        (["--picture", "out.png"], "`cluster`: `--picture` must be a file that ends in .html"),
        (["--text", "title"], "must have a column 'title'"),
    ],
)
def test_errors(run, encoder, table, error_line, words, message):
    assert run("cluster", table, "--text", "review", "--model", encoder, *words) == 2
    assert message in error_line()


def test_scikit_learn_is_missing(run, table, error_line, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert run("cluster", table, "--model", "any") == 2
    assert "`cluster` needs scikit-learn, which is not installed here. Install it with `pip install" in error_line()
