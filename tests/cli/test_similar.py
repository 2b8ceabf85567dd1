"""`similar`: pairs beside cosines in NumPy, sources of rows, and errors."""

import csv
import io

import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers.cli import similar

TOLERANCE = 1e-5  # float32 in two orders of operations

pytestmark = pytest.mark.usefixtures("traces_nothing")


def expected_pairs(vectors, threshold):
    """The pairs of unit vectors, pair by pair in float64."""
    found = []
    for one in range(len(vectors)):
        for other in range(one + 1, len(vectors)):
            cosine = vectors[one].astype(np.float64) @ vectors[other]
            if cosine >= threshold:
                found.append((cosine, one, other))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("block", [1, 40, 2**24])
def test_pairs_in_blocks(monkeypatch, block):
    vectors = np.random.default_rng(3).normal(size=(23, 5)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    monkeypatch.setattr(similar, "_BLOCK", block)
    pairs = similar.similar_pairs(vectors, 0.5)
    wanted = expected_pairs(vectors, 0.5)
    assert len(wanted) > 20
    assert [pair[:2] for pair in pairs] == [(one, other) for _, one, other in wanted]
    assert [cosine for *_, cosine in pairs] == pytest.approx([cosine for cosine, *_ in wanted], abs=TOLERANCE)


def test_most_pairs_are_the_most_similar(monkeypatch, capsys):
    vectors = np.random.default_rng(3).normal(size=(23, 5)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    monkeypatch.setattr(similar, "_BLOCK", 60)
    monkeypatch.setattr(similar, "MOST_PAIRS", 7)
    pairs = similar.similar_pairs(vectors, -1)
    assert [pair[:2] for pair in pairs] == [(one, other) for _, one, other in expected_pairs(vectors, -1)][:7]
    assert "warning: more than 7 pairs" in capsys.readouterr().err


def test_equal_texts_reach_one():
    vectors = np.full((2, 384), 1 / np.sqrt(384), np.float32)
    assert [pair[:2] for pair in similar.similar_pairs(vectors, 1)] == [(0, 1)]
    assert similar.similar_pairs(vectors[:1], 1) == []


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
