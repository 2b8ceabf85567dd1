import re

import pytest

from keras_bert_layers.data import read_jsonl


def test_values_of_every_type(write):
    path = write(
        '\ufeff{"a": "x\u2028y", "b": [1, null], "c": 2.5}\r\n\n'
        '{"c": null, "a": "\\u00e9\\ud83d\\ude00", "more": 1, "b": {"d": true}}',
        "rows.jsonl",
    )
    columns = read_jsonl(path, "b", "a", "c")
    assert columns == ([[1, None], {"d": True}], ["x\u2028y", "é😀"], [2.5, None])
    assert columns.a == ["x\u2028y", "é😀"]


def test_gzip(write):
    assert read_jsonl(write('{"a": 1}\n', compress=True), "a") == ([1],)


BAD = [
    ('{"b": 1}', "line 2: no key 'a'. The keys are ['b']."),
    ('{"a": 1', "line 2: not JSON: Expecting ',' delimiter: line 1 column 8 (char 7). Every line must hold one object"),
    ('["a", 1]', "line 2: a list where an object must stand. Every line must hold one object"),
    (b'{"a": "\xff"}', "line 2: byte 0xff is not UTF-8. Save the file as UTF-8."),
    ('{"a": {"b": ["\\ud83d"]}}', r"line 2: \ud83d is half of a character. Write both halves, or remove it."),
    ("[" * 100_000, "line 2: not JSON: "),
    ('{"a": ' + "9" * 5000 + "}", "line 2: not JSON: Exceeds the limit"),
]


@pytest.mark.parametrize(("line", "problem"), BAD)
def test_bad_line(write, line, problem):
    line = line.encode() if isinstance(line, str) else line
    path = write(b"\n" + line + b'\n{"a": 3}\n', "rows.jsonl")
    with pytest.raises(ValueError, match=re.escape(f"{path}, {problem}")):
        read_jsonl(path, "a")
    with pytest.warns(UserWarning, match="`read_jsonl`: left out 1 rows"):
        columns = read_jsonl(path, "a", on_error="skip")
    assert columns == ([3],)
    assert columns.skipped[0].startswith(f"{path}, {problem}")


def test_no_columns(write):
    with pytest.raises(ValueError, match="`read_jsonl`: `columns` must name at least one column"):
        read_jsonl(write("{}"))


def test_no_rows(write):
    with pytest.raises(ValueError, match="no row to read"):
        read_jsonl(write("\n\n"), "a")


def test_on_error(write):
    with pytest.raises(ValueError, match="`read_jsonl`: `on_error` must be one of"):
        read_jsonl(write("{}"), "a", on_error="warn")
