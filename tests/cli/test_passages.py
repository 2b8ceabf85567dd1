"""The rows of a search index: every format, ids, the kinds of columns, and errors. What is stored: `test_index.py`."""

import gzip
import json

import pytest

from keras_bert_layers.cli.passages import Passage, PassageRows

TABLE = "text,year,rate,zip,mixed,none\na cat,2001,0.5,007,1,\n,2002,2,8,x,\nodd\0 text,-3,1e2,12,2,\n"


def rows(path, text="text", id_column=None):
    return PassageRows(path, text=text, id_column=id_column, owner="index")


def test_tables(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    (tmp_path / "a.csv").write_text(TABLE, encoding="utf-8")
    with gzip.open(tmp_path / "a.tsv.gz", "wt", encoding="utf-8") as file:
        file.write(TABLE.replace(",", "\t"))
    others = [{"year": 2001, "rate": 0.5, "zip": "007"}, {"year": -3, "rate": 100.0, "zip": "12"}]
    records = [{"text": "a cat", **others[0]}, {"text": " ", **others[0]}, {"text": "odd\0 text", **others[1]}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    parquet.write_table(pyarrow.Table.from_pylist(records), tmp_path / "a.parquet")
    kinds = {"year": "int64", "rate": "double", "zip": "string"}
    for name in ("a.csv", "a.tsv.gz", "a.jsonl", "a.parquet"):
        found = rows(tmp_path / name)
        assert [(row.id, row.text) for row in found] == [("1", "a cat"), ("3", "odd\0 text")], name
        ids, columns = found.look()
        assert ids == {"1", "3"}
        assert {column: columns[column] for column in kinds} == kinds, name
    assert {**columns, **rows(tmp_path / "a.csv").look()[1]} == {**kinds, "mixed": "int64", "none": ""}


def test_ids(tmp_path):
    lines = '{"id": 7, "_id": "x", "body": "one"}\n{"id": 9, "_id": "y", "body": 2}\n'
    (tmp_path / "a.jsonl").write_text(lines)
    assert [row.id for row in rows(tmp_path / "a.jsonl", "body")] == ["7", "9"]
    (tmp_path / "b.jsonl").write_text('{"id": 7, "text": "a", "one": "1", "tags": ["a"], "good": true}')
    assert rows(tmp_path / "b.jsonl").look() == ({"7"}, dict.fromkeys(("one", "tags", "good"), "string"))
    with pytest.raises(ValueError, match=r"beside those of texts and ids, no column named id, .*ROWS=\['_id'\]"):
        rows(tmp_path / "a.jsonl", "body").look()
    with pytest.raises(ValueError, match=r"no column named id, .*ROWS=\['id'\]"):
        rows(tmp_path / "a.jsonl", "body", "_id").look()


def test_a_digest_tells_changed_texts_from_changed_columns():
    digests = [Passage("1", text, {"year": year}).digest for text, year in (("a", 1), ("a", 2), ("b", 1))]
    assert [len(digest) for digest in digests] == [32] * 3
    assert digests[0][:16] == digests[1][:16] != digests[2][:16]
    assert digests[0][16:] == digests[2][16:] != digests[1][16:]


def test_lines_and_folders(tmp_path):
    (tmp_path / "lines.txt").write_text("one\n\ntwo\none\n", encoding="utf-8")
    expected = [("1", "one"), ("3", "two"), ("4", "one")]
    assert [(row.id, row.text) for row in rows(tmp_path / "lines.txt", "body")] == expected
    for name in ("b/notes.md", "a.txt", "b/other.csv", ".git/c.txt", "b/.d.txt", "blank.txt", "c.TXT.gz"):
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(b"zipped") if name.endswith("gz") else b"\n" * ("blank" in name) or b"x\ny")
    found = [(row.id, row.text, row.others) for row in rows(tmp_path / "folder", "body")]
    assert found == [("a.txt", "x\ny", {}), ("b/notes.md", "x\ny", {}), ("c.TXT.gz", "zipped", {})]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"id,text\n1,a\n2,b\n1,c\n3,\n2,d\n", r"have no id twice; --id names .* ROWS=\['1', '2'\]"),
        ("a.csv", b"id,body\n1,a\n", "must have a column 'text'. Found: id, body."),
        ("a.jsonl", b'{"id": 1, "text": "a"}\n{"text": "b"}\n', "must have a column 'id'. Found: text."),
        ("a.csv", b"id,text\n,a\n", "must have an id in every row."),
        ("a.csv", b"text,x\n ,1\n", "must hold at least one text."),
        ("a.csv", b"text,vector\na,1\n", r"no column named id, text, digest, vector, .*=\['vector'\]"),
        ("a.csv", b"text\n\xff\n", "byte 0xff is not UTF-8"),
        ("a.jsonl", b'{"text": "\\ud83d"}\n', r"row 1, '1': .ud83d is half of a character"),
        ("folder/a.txt", b"good\n\xff", r"folder, row 1, 'a.txt': byte 0xff is not UTF-8"),
    ],
)
def test_errors(tmp_path, name, content, message):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        rows(path if path.parent == tmp_path else path.parent).look()
    with pytest.raises(FileNotFoundError, match="`index`: no such file"):
        rows(tmp_path / "absent")
