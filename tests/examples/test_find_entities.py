"""`examples/find_entities.py`: its smoke run."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "find_entities.py"


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_smoke():
    finished = run("--smoke")
    assert finished.returncode == 0, finished.stderr
    assert "18 sentences to train on, 2 held out" in finished.stdout
    assert "entity F1 on 2 held-out sentences: " in finished.stdout
    assert "'Marie Curie saw New York, and it rained in Paris.'" in finished.stdout


def test_needs_weights_and_data():
    finished = run("--train", "train.conll")
    assert finished.returncode == 2
    assert "give --weights and --train, or --smoke" in finished.stderr
