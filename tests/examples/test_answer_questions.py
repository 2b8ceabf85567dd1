"""`examples/answer_questions.py`: its smoke run."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "answer_questions.py"


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_smoke():
    finished = run("--smoke")
    assert finished.returncode == 0, finished.stderr
    assert "5 questions to train on, in " in finished.stdout
    assert "threshold of no answer, found on 1 questions: " in finished.stdout
    assert "f1 on 4 questions: " in finished.stdout
    assert "saved_model" in finished.stdout


def test_needs_weights_and_data():
    finished = run("--train", "train.json")
    assert finished.returncode == 2
    assert "give --weights, --train and --dev, or --smoke" in finished.stderr
