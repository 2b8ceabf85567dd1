"""`examples/pretrain.py`: its smoke run."""

import pytest


@pytest.mark.slow
def test_smoke(run_example_here):
    finished = run_example_here("pretrain", "--smoke")
    assert finished.returncode == 0, finished.stderr
    assert "12 documents, " in finished.stdout
    assert "held out: masked_lm_perplexity " in finished.stdout
    assert "wrote pretrainer.keras, huggingface, google, kerashub and fill_mask" in finished.stdout


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "give --data or --smoke"),
        (["--smoke", "--data", "c.txt"], "give --data or --smoke"),
        (["--data", "c.txt", "--weights", "b", "--vocabulary", "v"], "give --weights or --vocabulary"),
    ],
)
def test_needs_data_and_at_most_one_vocabulary(run_example, words, error):
    finished = run_example("pretrain", *words)
    assert finished.returncode == 2
    assert error in finished.stderr
