import re

import pytest

from keras_bert_layers.data import read_csv


@pytest.fixture
def write(tmp_path):
    def write(content, encoding="utf-8"):
        path = tmp_path / "data.csv"
        path.write_bytes(content.encode(encoding) if isinstance(content, str) else content)
        return path

    return write


def test_reads_columns_in_the_order_asked(write):
    path = write('\ufeffid,text,label\r\n1,"Good, ""very"" good\nindeed",yes\r\n2,Schlecht – très,no\r\n')
    assert read_csv(path, "label", "text") == (["yes", "no"], ['Good, "very" good\nindeed', "Schlecht – très"])


def test_where_keeps_matching_rows(write):
    path = write("text,source\na,x\nb,y\n,y2\nc,x\n")
    assert read_csv(path, "text", where={"source": "x"}) == (["a", "c"],)


def test_blank_lines_are_skipped(write):
    assert read_csv(write("text,label\na,b\n\nc,d\n\n"), "text", "label") == (["a", "c"], ["b", "d"])


def test_other_delimiter(write):
    assert read_csv(write("a\tb\n1\t2,3\n"), "b", delimiter="\t") == (["2,3"],)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "the file is empty"),
        ("text,label\n", "no row to read below the header"),
        ("text,other\na,b\n", r"line 1: no column named 'label'. The columns are ['text', 'other']"),
        ("text,label,label\na,b,c\n", "line 1: 2 columns named 'label'"),
        ("text,label\na,b\nc\n", "line 3: 1 cells where the header names 2 columns"),
        ("text,label\na,b,c\n", "line 2: 3 cells where the header names 2 columns"),
        ('text,label\n"a\nb",c\n,d\n', "line 4: column 'text' is empty"),
        ('text,label\n"a,b\n', "line 2: unexpected end of data"),
        ("text,label\na,b\n\xe9t\xe9,c\n".encode("latin-1"), "byte 0xe9 is not UTF-8"),
    ],
)
def test_bad_file_names_the_line(write, content, problem):
    path = write(content)
    with pytest.raises(ValueError, match=re.escape(problem)) as error:
        read_csv(path, "text", "label")
    assert str(path) in str(error.value)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_csv(tmp_path / "none.csv", "text")


def test_no_columns(write):
    with pytest.raises(ValueError, match="`columns` must name at least one column"):
        read_csv(write("text\na\n"))
