"""`examples/pretrain.py`: its smoke run."""

import pytest


@pytest.mark.slow
def test_smoke(run_example):
    finished = run_example("pretrain", "--smoke")
    assert finished.returncode == 0, finished.stderr
    assert "11 documents, " in finished.stdout
    assert "1 held-out documents: masked_lm_perplexity " in finished.stdout
    assert "backbone.keras" in finished.stdout


@pytest.mark.parametrize(
    "words", [[], ["--data", "corpus.txt"], ["--data", "c.txt", "--weights", "b", "--vocabulary", "v"]]
)
def test_needs_data_and_one_source_of_weights(run_example, words):
    finished = run_example("pretrain", *words)
    assert finished.returncode == 2
    assert "give --data and either --weights or --vocabulary, or --smoke" in finished.stderr
