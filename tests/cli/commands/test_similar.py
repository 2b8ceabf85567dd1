"""`similar`: its CSV beside `similarity` of the task, sources of rows, and errors."""

import csv
import errno
import io
import os
import tempfile

import pytest

import keras_bert_layers as kbl
from keras_bert_layers.cli.commands import similar

TOLERANCE = 1e-5  # float32 in two orders of operations

pytestmark = pytest.mark.usefixtures("traces_nothing")


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_lines_of_a_file(run, encoder, tmp_path, capsys):
    lines = ["good film", "", 'a bad, "bad" night', " good film ", "unhappy"]
    (tmp_path / "rows.txt").write_text("\n".join(lines), encoding="utf-8")
    assert run("similar", tmp_path / "rows.txt", "--model", encoder, "--threshold", "-1", "--batch-size", 2) == 0
    found = rows_of(capsys.readouterr().out)
    assert len(found) == 6
    assert {name: found[0][name] for name in ("row", "other_row", "cosine", "text", "other_text")} == {
        "row": "1",
        "other_row": "4",
        "cosine": "1.0000",
        "text": "good film",
        "other_text": "good film",
    }
    task = kbl.load_task(encoder, "sentence_encoder")
    for row in found:
        cosine = task.similarity(row["text"], row["other_text"]).item()
        assert float(row["cosine"]) == pytest.approx(cosine, abs=TOLERANCE + 5e-5)  # of four decimals
        assert row["text"] == lines[int(row["row"]) - 1].strip()


@pytest.mark.parametrize(("most", "is_cut"), [(2, True), (3, False)])
def test_the_most_similar_pairs_are_kept(run, encoder, tmp_path, capsys, monkeypatch, most, is_cut):
    monkeypatch.setattr(similar, "MOST_PAIRS", most)
    (tmp_path / "rows.txt").write_text("good film\nbad night\ngood film\n", encoding="utf-8")
    assert run("similar", tmp_path / "rows.txt", "--model", encoder, "--threshold", "-1") == 0
    shown = capsys.readouterr()
    pairs = [(row["row"], row["other_row"]) for row in rows_of(shown.out)]
    assert (pairs[0], len(pairs)) == (("1", "3"), most)
    assert ("warning: more than 2 pairs; the most similar are kept. Raise --threshold" in shown.err) == is_cut


def test_a_folder_that_cannot_be_written_to_comes_before_the_work(run, error_line, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    (tmp_path / "rows.txt").write_text("good\nbad")
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert run("similar", tmp_path / "rows.txt", "--model", "no model", "--to", tmp_path / "pairs.csv") == 2
    assert "`similar`: `--to` must be a path that can be written to" in error_line()


def test_a_table_to_a_file(run, encoder, tmp_path, capsys):
    table = tmp_path / "rows.csv"
    table.write_text("id,review\n7,a good film\n8,\n9,a good film\n", encoding="utf-8")
    words = ["similar", table, "--text", "review", "--model", encoder, "--to", tmp_path / "new" / "pairs.csv"]
    assert run(*words) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'new' / 'pairs.csv'}: 1 pair of 2 rows\n"
    written = (tmp_path / "new" / "pairs.csv").read_text(encoding="utf-8")
    assert written == "row,other_row,cosine,text,other_text\n1,3,1.0000,a good film,a good film\n"


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        ("a\nb", ["--threshold", "1.5"], r"`similar`: `--threshold` must be in \[-1, 1\]. Received: --threshold=1.5"),
        ("a\nb", ["--batch-size", "0"], "`--batch-size` must be"),
        ("\n \n", [], "rows.txt must have at least 1 different text. Found: 0."),
        ("a\nb", ["--to", "rows.txt"], "`--to` must be a file that ends in .csv, and not FILE"),
        ("a\nb", ["--to", "."], "`--to` must be a file that ends in .csv, and not FILE"),
    ],
)
def test_errors(run, encoder, error_line, tmp_path, monkeypatch, content, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.txt").write_text(content, encoding="utf-8")
    assert run("similar", "rows.txt", "--model", encoder, *words) == 2
    assert message.replace("\\", "") in error_line()
    assert [path.name for path in tmp_path.iterdir()] == ["rows.txt"]


def test_wrong_sources(run, encoder, keras_file, error_line, tmp_path, capsys):
    table = tmp_path / "rows.csv"
    table.write_text("id,review\n7,a good film\n8,a bad film\n", encoding="utf-8")
    assert run("similar", table, "--model", encoder) == 2
    assert "must have a column 'text'. The columns are: id, review." in error_line()
    assert run("similar", tmp_path / "absent.csv", "--model", encoder) == 2
    assert "no such file" in error_line()
    assert run("similar", table, "--text", "review", "--model", encoder, "--to", table) == 2
    assert "and not FILE" in error_line()
    assert run("similar", table, "--text", "review", "--model", keras_file) == 2
    assert "`similar`: `--model` must be a sentence encoder. Received: --model=classifier." in error_line()
