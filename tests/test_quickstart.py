"""The quickstart on a small file of one's own: it trains, exports, and asks the exported model in a new process."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "examples" / "quickstart.py"


def run(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "reviews.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "review", "verdict"])
        for number in range(24):
            word, verdict = [("lovely", "good"), ("dreadful", "bad")][number % 2]
            writer.writerow([number, f'A {word} film, number {number}, said "everyone".', verdict])
    return path


@pytest.mark.slow
def test_own_file(reviews, minilm, tmp_path):
    finished = run(
        "--data", reviews, "--text-column", "review", "--label-column", "verdict", "--output", tmp_path / "out"
    )
    assert finished.returncode == 0, finished.stderr
    assert "22 texts to train on, 2 held out, classes ['bad', 'good']" in finished.stdout
    assert "its probabilities equal Keras's" in finished.stdout
    assert (tmp_path / "out" / "classifier.keras").is_file()
    assert (tmp_path / "out" / "saved_model" / "saved_model.pb").is_file()


def test_bad_row_is_named(reviews):
    with reviews.open("a", encoding="utf-8") as file:
        file.write("99,a row without a verdict\n")
    finished = run("--data", reviews, "--text-column", "review", "--label-column", "verdict")
    assert finished.returncode != 0
    assert f"{reviews}, line 26: 2 cells where the header names 3 columns" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_missing_weights_are_named(reviews, tmp_path):
    finished = run(
        "--data", reviews, "--text-column", "review", "--label-column", "verdict", "--weights", tmp_path / "none"
    )
    assert finished.returncode != 0
    assert str(tmp_path / "none") in finished.stderr
    assert "Traceback" not in finished.stderr
