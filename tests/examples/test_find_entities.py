"""`examples/find_entities.py`: its smoke run."""

import pytest


@pytest.mark.slow
def test_smoke(run_example_here):
    finished = run_example_here("find_entities", "--smoke")
    assert finished.returncode == 0, finished.stderr
    assert "18 sentences to train on, 2 held out" in finished.stdout
    assert "entity F1 on 2 held-out sentences: " in finished.stdout
    assert "'Marie Curie saw New York, and it rained in Paris.'" in finished.stdout


def test_needs_weights_and_data(run_example):
    finished = run_example("find_entities", "--train", "train.conll")
    assert finished.returncode == 2
    assert "give --weights and --train, or --smoke" in finished.stderr
