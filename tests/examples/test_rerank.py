"""`examples/rerank.py`: its smoke run."""

import pytest


@pytest.mark.slow
def test_smoke(run_example_here):
    finished = run_example_here("rerank", "--smoke")
    assert finished.returncode == 0, finished.stderr
    assert "1 held-out queries: nDCG@10 " in finished.stdout
    assert finished.stdout.count("  0.") == 3


def test_needs_weights_and_data(run_example):
    finished = run_example("rerank", "--data", "judged.csv")
    assert finished.returncode == 2
    assert "give --weights and --data, or --smoke" in finished.stderr
