"""`read_beir`: folders of BEIR and of NanoBEIR, and each error by its file and line."""

import gzip
import re

import pytest

from keras_bert_layers.data import read_beir

CORPUS = (
    '{"_id": "d1", "title": "Cats", "text": "They sleep.", "metadata": {}}\n'
    '{"_id": "d2", "title": "", "text": "It\u2028rains."}\r\n\n'
    '{"_id": "d3", "text": ""}\n'
)
QUERIES = '{"_id": "q2", "text": "Rain?"}\n{"_id": "unjudged", "text": "No"}\n{"_id": "q1", "text": "Who sleeps?"}\n'
JUDGEMENTS = "query-id\tcorpus-id\tscore\nq1\td1\t2\r\nq1\td2\t0\nq2\td77\t-1\n"
EXPECTED = (
    {"q1": "Who sleeps?", "q2": "Rain?"},
    {"d1": "Cats They sleep.", "d2": "It\u2028rains.", "d3": ""},
    {"q1": {"d1": 2, "d2": 0}, "q2": {"d77": -1}},
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "qrels").mkdir()
    for name, content in {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES, "qrels/test.tsv": JUDGEMENTS}.items():
        (tmp_path / name).write_bytes(content.encode())
    return tmp_path


def test_folder_of_beir(folder):
    assert read_beir(folder) == EXPECTED
    (folder / "qrels" / "dev.tsv").write_text("q2\td1\t1\n")  # without a header
    assert read_beir(str(folder), split="dev")[2] == {"q2": {"d1": 1}}
    (folder / "corpus.jsonl").write_bytes(gzip.compress(CORPUS.encode()))
    assert read_beir(folder) == EXPECTED


def test_folder_of_nano_beir(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="needs pyarrow, from the extra `parquet`")
    from pyarrow import parquet

    rows = {
        "corpus": [{"_id": "d1", "text": "Cats"}, {"_id": "d2", "text": "Dogs"}],
        "queries": [{"_id": "q1", "text": "Who?"}],
        "qrels": [{"query-id": "q1", "corpus-id": "d2"}],
    }

    def write():
        for name, own in rows.items():
            (tmp_path / name).mkdir(exist_ok=True)
            for number, row in enumerate(own):
                parquet.write_table(arrow.Table.from_pylist([row]), tmp_path / name / f"train-{number}.parquet")

    write()
    assert read_beir(tmp_path) == ({"q1": "Who?"}, {"d1": "Cats", "d2": "Dogs"}, {"q1": {"d2": 1}})
    rows["corpus"][1] = {"_id": "d2", "text": None}
    write()
    path = tmp_path / "corpus" / "train-1.parquet"
    with pytest.raises(ValueError, match=re.escape(f"{path}, row 1: a row must be an object with strings")):
        read_beir(tmp_path)


@pytest.mark.parametrize(
    ("name", "line", "problem"),
    [
        ("corpus.jsonl", '{"_id": "d4"', "not JSON: Expecting ',' delimiter"),
        ("corpus.jsonl", "[" * 100_000, "not JSON: "),
        ("corpus.jsonl", "[]", 'a row must be an object with strings under "_id" and "text".'),
        ("corpus.jsonl", '{"_id": 4, "text": "a"}', 'a row must be an object with strings under "_id" and "text".'),
        ("corpus.jsonl", '{"_id": "d4", "title": "a"}', 'a row must be an object with strings under "_id" and "text".'),
        ("corpus.jsonl", '{"_id": "d1", "text": "a"}', "an earlier row has the same id, 'd1'. Give it another."),
        ("corpus.jsonl", b'{"_id": "d4", "text": "\xff"}', "byte 0xff is not UTF-8. Save the file as UTF-8."),
        ("queries.jsonl", '{"_id": "q4", "text": "\\ud800"}', "\\ud800 is half of a character."),
        ("qrels/test.tsv", "q1 d1 1", "a row must be a query id, a document id and a whole number, separated by tabs."),
        ("qrels/test.tsv", "q1\t0\td1\t1", "a row must be a query id, a document id and a whole number"),
        ("qrels/test.tsv", "q1\td1\t0.5", "a row must be a query id, a document id and a whole number"),
        ("qrels/test.tsv", "q9\td1\t1", "there is no query 'q9' among the queries."),
    ],
)
def test_bad_rows(folder, name, line, problem):
    path = folder / name
    number = path.read_bytes().count(b"\n") + 1
    path.write_bytes(path.read_bytes() + (line if isinstance(line, bytes) else line.encode()) + b"\n")
    with pytest.raises(ValueError, match=re.escape(f"{path}, line {number}: {problem}")):
        read_beir(folder)


def test_missing_files(folder):
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n")
    with pytest.raises(ValueError, match=f"{re.escape(str(folder))}: no judgement to read."):
        read_beir(folder)
    (folder / "queries.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match="queries.jsonl"):
        read_beir(folder)
