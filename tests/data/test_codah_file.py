import re

import pytest

from keras_bert_layers.data import read_codah


def test_rows_with_different_numbers_of_choices(write):
    content = (
        '\ufeffo\tHe "sat" on\ta chair.\tthe sun.\t0\r\n\r\n'
        "\tShe\tran.\tflew.\tsang.\t2 \n"
        "q\tIt\tis.\tis not.\t\t \t1\n"
        "q\tThey\ta\tb\tc\td\te\t4"
    )
    columns = read_codah(write(content, "codah.tsv", compress=True))
    assert columns.names == ("prompts", "choices", "labels")
    assert columns.prompts == ['He "sat" on', "She", "It", "They"]
    assert columns.choices == [["a chair.", "the sun."], ["ran.", "flew.", "sang."], ["is.", "is not."], list("abcde")]
    assert columns.labels == [0, 2, 1, 4]


BAD = [
    ("only a text", "line 2: 0 choices. A line must hold a category, a prompt, two or more choices and the number"),
    ("o\tShe\tran.\t0", "line 2: 1 choices. A line must hold"),
    ("o\tShe\tran.\t\t\t0", "line 2: 1 choices. A line must hold"),
    ("o\t\t\t0", "line 2: 0 choices. A line must hold"),
    ("o\t \tran.\tflew.\t0", "line 2: the prompt is empty. Fill or remove the line."),
    ("o\tShe\tran.\t\tflew.\t0", "line 2: choice 1 is empty. Fill or remove the line."),
    ("o\tShe\tran.\tflew.\t2", "line 2: the answer must be the number of a choice, 0 to 1. Received: '2'."),
    ("o\tShe\tran.\tflew.\t-1", "line 2: the answer must be the number of a choice, 0 to 1. Received: '-1'."),
    ("o\tShe\tran.\tflew.", "line 2: 1 choices. A line must hold"),
    ("o\tShe\tran.\tflew.\tsang.", "line 2: the answer must be the number of a choice, 0 to 1. Received: 'sang.'."),
    ("o\tShe\tran.\tflew.\t²", "line 2: the answer must be the number of a choice"),
    (b"o\tShe\tr\xe4n.\tflew.\t1", "line 2: byte 0xe4 is not UTF-8"),
]


@pytest.mark.parametrize(("line", "problem"), BAD)
def test_bad_line(write, line, problem):
    line = line.encode() if isinstance(line, str) else line
    path = write(b"\n" + line + b"\no\tShe\tran.\tflew.\t0\n", "codah.tsv")
    with pytest.raises(ValueError, match=re.escape(f"{path}, {problem}")):
        read_codah(path)
    with pytest.warns(UserWarning, match="`read_codah`: left out 1 rows"):
        columns = read_codah(path, on_error="skip")
    assert columns.labels == [0]
    assert columns.skipped[0].startswith(f"{path}, {problem}")


def test_no_lines(write):
    with pytest.raises(ValueError, match="no line to read."):
        read_codah(write("\n"))


def test_on_error(write):
    with pytest.raises(ValueError, match="`read_codah`: `on_error` must be one of"):
        read_codah(write(""), on_error="drop")


def test_real_file(shared_data):
    columns = read_codah(shared_data / "multiple_choice" / "codah.tsv")
    assert columns.num_rows == 2776
    assert {len(choices) for choices in columns.choices} == {4}
    assert [columns.labels.count(label) for label in range(4)] == [689, 684, 697, 706]
    assert columns.choices[0][columns.labels[0]] == "tempted to snack when I feel this way."
