"""`extract`: features of the texts of a file in Parquet, also after an interruption."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_bert_layers import load_backbone, load_preprocessor
from keras_bert_layers.cli.commands import extract
from keras_bert_layers.tasks import Features

parquet = pytest.importorskip("pyarrow.parquet")

TEXTS = ["a good film", "bad, bad night", "", "good", "unhappy"]
# The same float32 sums in batches of another make-up.
ROUNDING = 2e-6


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


def test_words_of_lines(run, encoder, lines, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(extract.ROWS, "word", 2)
    out = tmp_path / "new" / "words.parquet"
    assert run("extract", encoder, lines, "--to", out, "--per", "word", "--layers", -1, 0, "--combine", "mean") == 0
    assert capsys.readouterr().out.startswith(f"{out}: 5 rows of features with ")
    assert [path.name for path in out.parent.iterdir()] == ["words.parquet"]
    rows = parquet.read_table(out).to_pylist()
    assert [row["text"] for row in rows] == TEXTS
    features = Features(load_backbone(encoder), load_preprocessor(encoder), layers=[-1, 0], combine="mean", per="word")
    for row, vectors, words in zip(rows, features.predict(TEXTS, verbose=0), features.words(TEXTS), strict=True):
        assert list(zip(row["words"], row["start"], row["end"], strict=True)) == words
        np.testing.assert_allclose(np.reshape(row["features"], vectors.shape), vectors, atol=ROUNDING)


def test_a_column_of_a_table(run, encoder, tmp_path):
    (tmp_path / "reviews.csv").write_text('review,label\n"good, a film",1\nbad,0\n', encoding="utf-8")
    assert run("extract", encoder, tmp_path / "reviews.csv", "--text", "review", "--to", tmp_path / "out.parquet") == 0
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.column("text").to_pylist() == ["good, a film", "bad"]
    features = Features(load_backbone(encoder), load_preprocessor(encoder), per="text")
    expected = features.predict(["good, a film", "bad"], verbose=0)
    np.testing.assert_allclose(table.column("features").to_pylist(), expected, atol=ROUNDING)


KILLED = """
import os, signal, sys
from keras_bert_layers import cli
from keras_bert_layers.cli.commands import extract

make = extract._table

def make_then_die(features, texts):
    if "unhappy" in texts:
        os.kill(os.getpid(), signal.SIGKILL)
    return make(features, texts)

extract._table = make_then_die
extract.ROWS["text"] = 2
cli.main(sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_killed_and_run_again(run, error_line, encoder, lines, tmp_path, monkeypatch):
    monkeypatch.setitem(extract.ROWS, "text", 2)
    assert run("extract", encoder, lines, "--to", tmp_path / "whole.parquet") == 0
    out = tmp_path / "killed.parquet"
    command = [sys.executable, "-c", KILLED, "extract", encoder, lines, "--to", out]
    root = Path(__file__).parents[3]
    assert subprocess.run(command, cwd=root, check=False, capture_output=True).returncode == -signal.SIGKILL
    parts = sorted((tmp_path / "killed.parquet.parts").glob("[0-9]*.parquet"))
    assert [path.name for path in parts] == ["00000000.parquet", "00000001.parquet"]
    assert not out.exists()

    assert run("extract", encoder, lines, "--to", out, "--layers", -2) == 2
    assert "killed.parquet.parts` must hold parts of this model, file and options. Received" in error_line()
    computed = []
    make = extract._table
    monkeypatch.setattr(extract, "_table", lambda features, texts: computed.append(texts) or make(features, texts))
    assert run("extract", encoder, lines, "--to", out) == 0
    assert computed == [["unhappy"]], "complete parts are kept"
    assert out.read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert not parts[0].parent.exists()


def test_errors(run, error_line, encoder, lines, tmp_path, monkeypatch):
    assert run("extract", encoder, tmp_path / "none.txt", "--to", tmp_path / "out.parquet") == 2
    assert "`extract`: no such file: " in error_line()
    (tmp_path / "empty.txt").touch()
    assert run("extract", encoder, tmp_path / "empty.txt", "--to", tmp_path / "out.parquet") == 2
    assert "empty.txt must hold at least one text." in error_line()
    assert run("extract", encoder, lines, "--to", tmp_path / "other.parquet", "--layers", 9) == 2
    assert "`Features`: `layers` must be" in error_line()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run("extract", encoder, lines, "--to", tmp_path / "other.parquet") == 2
    assert (
        "`extract`: Parquet files need pyarrow. Install it with `pip install keras-bert-layers[parquet]`."
        in error_line()
    )


def test_a_folder_that_cannot_be_written_to(run, error_line, encoder, lines, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("keras_bert_layers._internal.files.disk_space.tempfile.TemporaryFile", refuse)
    monkeypatch.setattr(extract, "load_model", lambda *_, **__: pytest.fail("the model was loaded"))
    assert run("extract", encoder, lines, "--to", tmp_path / "out.parquet") == 2
    assert f"`extract`: `--to` must be a path that can be written to. Received: --to='{tmp_path}" in error_line()
