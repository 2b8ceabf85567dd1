"""Reading text files, tested through `read_documents`: every reader opens its files in the same way."""

import re

import pytest

from keras_bert_layers.data import read_documents


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
