"""`examples/search.py`: its smoke run."""

import pytest


@pytest.mark.slow
def test_smoke(run_example_here):
    finished = run_example_here("search", "--smoke")
    assert finished.returncode == 0, finished.stderr
    assert "trained on 9 pairs: loss " in finished.stdout
    assert "documents.npy: 4 vectors of 16 values" in finished.stdout
    answers = finished.stdout.split("how long does a cat sleep\n")[1]
    assert answers.count("  0.") == 4


def test_needs_a_corpus(run_example):
    finished = run_example("search", "--weights", "bert", "--queries", "queries.txt")
    assert finished.returncode == 2
    assert "give --weights, --corpus and --queries, or --smoke" in finished.stderr
