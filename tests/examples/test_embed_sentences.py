"""`examples/embed_sentences.py`: its smoke run."""

import pytest


@pytest.mark.slow
def test_smoke(run_example_here):
    finished = run_example_here("embed_sentences", "--smoke")
    assert finished.returncode == 0, finished.stderr
    for line in ("before, 2 held-out rows: ", "after, 2 held-out rows: "):
        assert line in finished.stdout
    assert "spearman_correlation" in finished.stdout
    assert finished.stdout.count(" and ") == 3


def test_columns(run_example):
    finished = run_example("embed_sentences", "--weights", "bert", "--data", "rows.csv", "--columns", "text")
    assert finished.returncode == 2
    assert "--columns takes two names, or three for triplets" in finished.stderr
