"""`DocumentFiles`: documents of files of every format, in blocks, and the errors for bad files."""

import re

import pytest

from keras_bert_layers.data import DocumentFiles


@pytest.mark.parametrize("compress", [False, True])
def test_text(blank_lines, write, compress, documents):
    path = blank_lines(compress=compress)
    assert list(DocumentFiles(path, separated_by="blank_lines")) == documents
    lines = [[line] for document in documents for line in document]
    assert list(DocumentFiles(path, separated_by="lines")) == lines
    odd = write("\ufeff\n One. \r\nTwo\u2028still.\r\n\r\n \t\r\nThree.", "odd.txt", compress=compress)
    assert list(DocumentFiles(odd, separated_by="blank_lines")) == [["One.", "Two\u2028still."], ["Three."]]


@pytest.mark.parametrize("compress", [False, True])
def test_json_lines(json_lines, compress, documents):
    path = json_lines(field="body", compress=compress)
    assert list(DocumentFiles(str(path), text_field="body")) == documents


def test_parquet(parquet, documents):
    path = parquet(["\n".join(document) for document in documents], field="body")
    assert list(DocumentFiles(path, text_field="body")) == documents
    with pytest.raises(ValueError, match=r"no column 'text'. The columns are \['id', 'body'\]"):
        list(DocumentFiles(path))


def test_several_files(blank_lines, json_lines, tmp_path, documents):
    first, second = blank_lines("b.txt", documents[:2]), blank_lines("a.txt", documents[2:4], compress=True)
    third = json_lines("c.jsonl", documents[4:])
    options = {"separated_by": "blank_lines"}
    assert list(DocumentFiles([first, second, third], **options)) == documents
    by_name = [*documents[2:4], *documents[:2], *documents[4:]]
    assert list(DocumentFiles(str(tmp_path / "*"), **options)) == by_name
    assert DocumentFiles([first, second, third], **options).num_units == 1, "small files are joined"
    assert DocumentFiles([first, second, third], block_bytes=50, **options).num_units > 1


@pytest.mark.parametrize("separated_by", ["lines", "blank_lines"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_split_at_every_byte(write, separated_by, end):
    text = f"{end}Für eins{end}zwei{end}{end} {end}drei ☂{end}{end}vier{end}fünf{end}sechs"
    path = write("\ufeff" + text, "corpus.txt")
    expected = [["Für eins", "zwei"], ["drei ☂"], ["vier", "fünf", "sechs"]]
    if separated_by == "lines":
        expected = [[line] for document in expected for line in document]
    num_bytes = path.stat().st_size
    for block_bytes in range(1, num_bytes + 1):
        files = DocumentFiles(path, separated_by=separated_by, block_bytes=block_bytes)
        assert list(files) == expected, block_bytes
        blocks = [list(files.blocks(unit)) for unit in range(files.num_units)]
        assert [len(found) for found in blocks] == [1] * files.num_units, "a part of a file is one block"
        assert files.num_units == -(-num_bytes // block_bytes)


def test_split_of_json_lines(json_lines, documents):
    path = json_lines()
    for block_bytes in range(1, path.stat().st_size):
        assert list(DocumentFiles(path, block_bytes=block_bytes)) == documents


def test_blocks_of_a_gzip_file(blank_lines, documents):
    path = blank_lines(compress=True)
    files = DocumentFiles(path, separated_by="blank_lines", block_bytes=30)
    assert files.num_units == 1
    blocks = list(files.blocks(0))
    assert [block.documents for block in blocks] == [documents[:1], documents[1:3], documents[3:]]
    assert [block.number for block in blocks] == [0, 1, 2]
    assert [block.is_last for block in blocks] == [False, False, True]


def test_bad_text(write):
    path = write(b"One.\n\nTwo.\nThr\xe9e.\nFour.\n\nFive.\n", "corpus.txt")
    problem = f"{path}, line 4: byte 0xe9 is not UTF-8. Save the file as UTF-8. With on_error="
    for block_bytes in (100, 5):
        files = DocumentFiles(path, separated_by="blank_lines", block_bytes=block_bytes)
        with pytest.raises(ValueError, match=re.escape(problem)):
            list(files)
        files = DocumentFiles(path, separated_by="blank_lines", block_bytes=block_bytes, on_error="skip")
        assert list(files) == [["One."], ["Five."]]


BAD_LINES = {
    b"{": "line 2: the line is not JSON",
    b"[1]": "line 2: the line is not an object with 'text'",
    b'{"txt": "a"}': "line 2: the line is not an object with 'text'",
    b'{"text": null}': "line 2: 'text' must be a string. Received: None",
    b'{"text": "\\ud800"}': r"line 2: \ud800 is half of a character",
    b'{"text": "\xff"}': "line 2: byte 0xff is not UTF-8",
}


@pytest.mark.parametrize("line", BAD_LINES)
def test_bad_json(write, line):
    path = write(b'{"text": "a"}\n' + line + b'\n{"text": ""}\n{"text": "b"}', "corpus.jsonl")
    with pytest.raises(ValueError, match=re.escape(f"{path}, {BAD_LINES[line]}")):
        list(DocumentFiles(path))
    assert list(DocumentFiles(path, on_error="skip")) == [["a"], ["b"]]


def test_bad_parquet(parquet):
    path = parquet(["a", None, "b"])
    with pytest.raises(ValueError, match="corpus.parquet, row 2: 'text' must be a string. Received: None"):
        list(DocumentFiles(path))
    assert list(DocumentFiles(path, on_error="skip")) == [["a"], ["b"]]


def test_damaged_gzip(write, blank_lines):
    data = blank_lines(compress=True).read_bytes()
    path = write(data[:-9], "half.txt.gz")
    with pytest.raises(ValueError, match="half.txt.gz: the gzip data are damaged"):
        list(DocumentFiles(path, separated_by="lines"))


def test_split_sentences(write):
    pytest.importorskip("sentencex", reason="needs sentencex, from the extra `sentences`")
    path = write("Dr. Smith went home. He paid $3.50!\nNo.", "corpus.txt")
    expected = [["Dr. Smith went home.", "He paid $3.50!"], ["No."]]
    assert list(DocumentFiles(path, separated_by="lines", split_sentences="en")) == expected


def test_without_sentencex(blank_lines, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sentencex", None)
    with pytest.raises(ModuleNotFoundError, match=r"keras-bert-layers\[sentences\]"):
        DocumentFiles(blank_lines(), separated_by="lines", split_sentences="en")


def test_errors(blank_lines, write, tmp_path):
    path = blank_lines()
    with pytest.raises(ValueError, match="`separated_by` must be 'lines' or 'blank_lines' for files of text"):
        DocumentFiles(path)
    with pytest.raises(ValueError, match="`separated_by` must be one of"):
        DocumentFiles(path, separated_by="tabs")
    with pytest.raises(ValueError, match="`on_error` must be one of"):
        DocumentFiles(path, separated_by="lines", on_error="drop")
    with pytest.raises(ValueError, match="`block_bytes` must be at least 1"):
        DocumentFiles(path, separated_by="lines", block_bytes=0)
    with pytest.raises(FileNotFoundError, match="no such file"):
        DocumentFiles(tmp_path / "none.txt")
    with pytest.raises(FileNotFoundError, match="no file matches"):
        DocumentFiles(tmp_path / "*.none")
    with pytest.raises(ValueError, match=r"names that end in .txt"):
        DocumentFiles(write("a", "corpus.csv"))
    with pytest.raises(ValueError, match="hold at least one file"):
        DocumentFiles([])
    with pytest.raises(TypeError, match="`files` must be a path"):
        DocumentFiles(3)
