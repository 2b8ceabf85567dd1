import gzip

import pytest

from keras_bert_layers.cli.training_rows import read_table


def write(path, content):
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'id,text,label\n1,"A film, a ""good"" one\nof two lines",x\n2,b,y\n'),
        ("a.csv.gz", '\ufefftext,label\r\n"A film, a ""good"" one\nof two lines",x\r\nb,y\r\n'),
        ("a.tsv", 'label\ttext\nx\t"A film, a ""good"" one\nof two lines"\ny\tb\n'),
        ("a.jsonl", '{"text": "A film, a \\"good\\" one\\nof two lines", "label": "x"}\n{"label": "y", "text": "b"}\n'),
    ],
)
def test_columns(tmp_path, name, content):
    texts, labels = read_table(write(tmp_path / name, content), ["text", "label"], owner="train")
    assert texts == ['A film, a "good" one\nof two lines', "b"]
    assert labels == ["x", "y"]


def test_a_cell_longer_than_pythons_limit(tmp_path):
    assert read_table(write(tmp_path / "a.csv", "text\n" + "a" * 200_000), ["text"], owner="train") == [["a" * 200_000]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "txt,label\na,b\n", "must have a column 'text'. The columns are: txt, label"),
        ("a.csv", "text;label\na;b\n", "The columns are: text;label. A .csv file has commas between its columns"),
        ("a.csv", "text,label\na\n", "line 2: column 'label' is empty"),
        ("a.csv", "text,label\na,b,c\n", "line 2: 1 cells more than columns"),
        ("a.csv", "text,label\n", "must have at least one row"),
        ("a.jsonl", '{"text": \n', "line 1 must be JSON"),
        ("a.jsonl", "[1]\n", "line 1 must be a JSON object"),
    ],
)
def test_refusals(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=f"`train`: .*{name}.*{message}"):
        read_table(write(tmp_path / name, content), ["text", "label"], owner="train")


def test_bytes_that_are_not_utf8(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"text\na\nb\xff\n")
    with pytest.raises(ValueError, match="line 3: byte 0xff is not UTF-8"):
        read_table(tmp_path / "a.csv", ["text"], owner="train")
