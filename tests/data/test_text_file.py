"""Reading text files and collecting rows, tested through `read_documents` and `read_glue`: all readers share both."""

import re

import pytest

from keras_bert_layers.data import read_documents, read_glue

HEADER = "sentence\tlabel\n"


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("One.\n".encode("utf-16"), "the file is UTF-16. Save it as UTF-8."),
        (b"\x1f\x8b\x08\x00damaged and not long", "the gzip data are damaged"),
        (b"", "no document to read."),
    ],
)
def test_bad_file(write, content, problem, on_error):
    path = write(content)
    with pytest.raises(ValueError, match=re.escape(f"{path}: {problem}")):
        read_documents(path, on_error=on_error)


def test_gzip_cut_short(write):
    path = write("\n".join(map(str, range(9999))), compress=True)
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(ValueError, match=r"data.csv.gz: the gzip data are damaged \(Compressed file ended"):
        read_documents(path)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_documents(tmp_path / "none.txt")


def test_error_names_the_line_and_the_cure(write):
    path = write(HEADER + "good\t1\nbad\n")
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 3: 1 cells where there are 2 columns.")) as error:
        read_glue(path, "SST-2")
    assert str(error.value).endswith(' With on_error="skip" such rows are left out.')


def test_one_warning_for_all_and_it_points_here(write):
    path = write(HEADER + "a\nb\n\t1\nd\t0\n")
    with pytest.warns(UserWarning, match="left out 3 rows that cannot be used. The first: ") as warnings:
        columns = read_glue(path, "SST-2", on_error="skip")
    assert columns == (["d"], [0])
    assert columns.num_skipped == 3
    assert not any("on_error" in message for message in columns.skipped)
    assert [warning.filename for warning in warnings] == [__file__]


def test_no_row_is_good(write):
    with pytest.raises(ValueError, match="none of the 2 rows can be used. The first: .*, line 2: 1 cells"):
        read_glue(write(HEADER + "a\nb\n"), "SST-2", on_error="skip")
