"""`examples/embed_sentences.py`: its smoke run."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "embed_sentences.py"


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_smoke():
    finished = run("--smoke")
    assert finished.returncode == 0, finished.stderr
    for line in ("before, 2 held-out rows: ", "after, 2 held-out rows: "):
        assert line in finished.stdout
    assert "spearman_correlation" in finished.stdout
    assert finished.stdout.count(" and ") == 3


def test_columns():
    finished = run("--weights", "bert", "--data", "rows.csv", "--columns", "text")
    assert finished.returncode == 2
    assert "--columns takes two names, or three for triplets" in finished.stderr
