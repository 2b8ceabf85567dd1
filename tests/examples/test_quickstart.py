"""`examples/quickstart.py` on a small file: it trains, exports, and runs the exported model in a new process."""

import csv
import re
import sys

import pytest


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


@pytest.fixture
def options(reviews):
    return ["--data", str(reviews), "--text-column", "review", "--label-column", "verdict"]


@pytest.mark.slow
def test_own_file(run_example, options, minilm, tmp_path, monkeypatch):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)  # as users have it
    finished = run_example("quickstart", *options, "--output", str(tmp_path / "out"))
    assert finished.returncode == 0, finished.stderr
    assert not re.search("[IWE]0000|WARNING", finished.stderr), "TensorFlow's first lines are hidden"
    assert "22 texts to train on, 2 held out, classes ['bad', 'good']" in finished.stdout
    assert "its probabilities equal Keras's" in finished.stdout
    assert (tmp_path / "out" / "classifier.keras").is_file()
    assert (tmp_path / "out" / "saved_model" / "saved_model.pb").is_file()


def test_bad_row_is_named(run_example, options, reviews):
    with reviews.open("a", encoding="utf-8") as file:
        file.write("99,a row without a verdict\n")
    finished = run_example("quickstart", *options)
    assert finished.returncode != 0
    assert f"quickstart: {reviews}: row 25 below the header has no 'verdict'" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_missing_weights_are_named(import_example, options, tmp_path, monkeypatch):
    # In this process, which has TensorFlow already.
    monkeypatch.setattr(sys, "argv", ["quickstart.py", *options, "--weights", str(tmp_path / "none")])
    with pytest.raises(ValueError, match=f"{tmp_path / 'none'}"):
        import_example("quickstart").main()
