"""`examples/choose.py`: its smoke run."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "choose.py"


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_smoke():
    finished = run("--smoke")
    assert finished.returncode == 0, finished.stderr
    assert "accuracy on 4 held-out rows: " in finished.stdout
    assert finished.stdout.count(" ... ") == 3


def test_needs_weights_and_data():
    finished = run("--codah", "codah.tsv")
    assert finished.returncode == 2
    assert "give --weights and --codah or --swag, or --smoke" in finished.stderr
