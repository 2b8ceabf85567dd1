"""`examples/search.py`: its smoke run."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "search.py"


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_smoke():
    finished = run("--smoke")
    assert finished.returncode == 0, finished.stderr
    assert "trained on 9 pairs: loss " in finished.stdout
    assert "documents.npy: 4 vectors of 16 numbers" in finished.stdout
    answers = finished.stdout.split("how long does a cat sleep\n")[1]
    assert answers.count("  0.") == 4


def test_needs_a_corpus():
    finished = run("--weights", "bert", "--queries", "queries.txt")
    assert finished.returncode == 2
    assert "give --weights, --corpus and --queries, or --smoke" in finished.stderr
