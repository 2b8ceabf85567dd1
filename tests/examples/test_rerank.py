"""`examples/rerank.py`: its smoke run."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "rerank.py"


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_smoke():
    finished = run("--smoke")
    assert finished.returncode == 0, finished.stderr
    assert "1 held-out queries: nDCG@10 " in finished.stdout
    assert finished.stdout.count("  0.") == 3


def test_needs_weights_and_data():
    finished = run("--data", "judged.csv")
    assert finished.returncode == 2
    assert "give --weights and --data, or --smoke" in finished.stderr
