"""`examples/answer_questions.py`: its smoke run."""

import pytest


@pytest.mark.slow
def test_smoke(run_example_here):
    finished = run_example_here("answer_questions", "--smoke")
    assert finished.returncode == 0, finished.stderr
    assert "5 questions to train on, in " in finished.stdout
    assert "threshold of no answer, found on 1 questions: " in finished.stdout
    assert "f1 on 4 questions: " in finished.stdout
    assert "saved_model" in finished.stdout


def test_needs_weights_and_data(run_example):
    finished = run_example("answer_questions", "--train", "train.json")
    assert finished.returncode == 2
    assert "give --weights, --train and --dev, or --smoke" in finished.stderr
