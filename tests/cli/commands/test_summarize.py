"""`summarize`: what it prints, ends of sentences, and errors."""

import sys

import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers.tasks import summarize

pytestmark = pytest.mark.usefixtures("traces_nothing")
TEXT = "A good film. A bad\nnight! Dr. Good\nfell.\n\n\n  A good film.\nUnhappy?\n"
SENTENCES = ["A good film.", "A bad night!", "Dr. Good fell.", "A good film.", "Unhappy?"]


def test_paragraphs_are_split_and_lines_joined(run, encoder, tmp_path, capsys):
    pytest.importorskip("sentencex")
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    assert run("summarize", tmp_path / "text.txt", "--model", encoder, "--sentences", 9) == 0
    assert capsys.readouterr().out.splitlines() == SENTENCES
    assert run("summarize", tmp_path / "text.txt", "--model", encoder, "--sentences", 2, "--diversity", 0.5) == 0
    vectors = kbl.load_task(encoder, "sentence_encoder").predict(SENTENCES, verbose=0)
    expected = [SENTENCES[row] for row in summarize(vectors, 2, diversity=0.5)]
    assert capsys.readouterr().out.splitlines() == expected


def test_lines_are_sentences(run, encoder, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencex", None)
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    assert run("summarize", tmp_path / "text.txt", "--model", encoder, "--lines", "--sentences", 9) == 0
    assert capsys.readouterr().out.splitlines() == [line.strip() for line in TEXT.splitlines() if line.strip()]
    assert run("summarize", tmp_path / "text.txt", "--model", encoder) == 2
    assert "pip install keras-bert-layers[sentences]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sentences", "0"], "`summarize`: `--sentences` must be"),
        (["--diversity", "2"], "`summarize`: `--diversity` must be in [0, 1]"),
        (["--batch-size", "0"], "`summarize`: `--batch-size` must be"),
        ([], "blank.txt must hold a text"),
    ],
)
def test_errors(run, encoder, error_line, tmp_path, words, message):
    name = "blank.txt" if not words else "text.txt"
    (tmp_path / name).write_text(" \n" if not words else "One.\n")
    assert run("summarize", tmp_path / name, "--lines", "--model", encoder, *words) == 2
    assert message in error_line()


def test_a_repeated_sentence_is_chosen_once():
    vectors = np.array([[3, 0, 0], [2, 0, 0], [1, 0.01, 0], [0.6, 0.8, 0], [0, 0, 1]])
    assert summarize(vectors, 2, diversity=0.5) == [2, 4]
    assert summarize(vectors, 2, diversity=0) == [0, 2]
    assert summarize(100 * vectors, 9) == [0, 1, 2, 3, 4]
    assert summarize(np.zeros((3, 4)), 2) == [0, 1]
    with pytest.raises(ValueError, match="`vectors` must be finite"):
        summarize(np.array([[np.nan, 1.0]]))
