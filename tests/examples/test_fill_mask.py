"""`examples/fill_mask.py`: its smoke run, and how it reads a user's file."""

import argparse

import pytest


@pytest.fixture(scope="module")
def fill_mask(import_example):
    return import_example("fill_mask")


@pytest.mark.slow
def test_smoke(run_example_here):
    finished = run_example_here("fill_mask", "--smoke")
    assert finished.returncode == 0, finished.stderr
    assert "2 held-out texts: perplexity " in finished.stdout
    assert finished.stdout.count("'the cat [MASK] on the roof': ") == 1
    assert finished.stdout.count("'a [MASK] sat on a warm [MASK]': ") == 2


@pytest.mark.parametrize(
    ("documents", "texts"),
    [
        (False, ["One two.", "Three.", "Four five six.", "Seven."]),
        (True, ["One two. Three.", "Four five six.", "Seven."]),
    ],
)
def test_reads_lines_and_passages(fill_mask, tmp_path, documents, texts):
    path = tmp_path / "texts.txt"
    path.write_text("One two.\nThree.\n\nFour five six.\nSeven.\n", encoding="utf-8")
    arguments = argparse.Namespace(data=path, documents=documents, max_length=5)
    assert fill_mask.read_texts(arguments) == texts


def test_hides_the_longest_word(fill_mask):
    assert fill_mask.hidden_words(["A cat sleeps.", "Hm"]) == ["A cat [MASK]", "[MASK]"]


def test_needs_weights_and_data(run_example):
    finished = run_example("fill_mask")
    assert finished.returncode == 2
    assert "give --weights and --data, or --smoke" in finished.stderr
