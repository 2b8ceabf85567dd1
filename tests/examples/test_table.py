"""`examples/_table.py`: columns of a CSV file, and its errors."""

import gzip

import pytest


@pytest.fixture
def read_columns(import_example):
    return import_example("_table").read_columns


def test_reads_columns_in_the_order_asked(read_columns, tmp_path):
    path = tmp_path / "data.csv.gz"
    text = '\ufeffid,text,label\r\n1,"Good, ""very"" good",NA\r\n2,Schlecht,0\r\n'
    path.write_bytes(gzip.compress(text.encode()))
    assert read_columns(path, "label", "text") == [["NA", "0"], ['Good, "very" good', "Schlecht"]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,text\n1,a\n2\n", "row 2 below the header has no 'text'"),
        ("id,text\n1,a\n2, \n", "row 2 below the header has no 'text'"),
        ("id,text\n1,a\n2,b,c\n", "Expected 2 fields in line 3, saw 3"),
        ("id,label\n1,a\n", r"no column named 'text'. The columns are \['id', 'label'\]"),
        ("id,text\n", "no row below the header"),
        ("", "No columns to parse"),
    ],
)
def test_bad_file(read_columns, tmp_path, content, message):
    path = tmp_path / "data.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_columns(path, "text")
