import json
import re

import pytest

from keras_bert_layers.data import read_swag

ROW = {"sent1": "A cat.", "sent2": "It", "ending0": "sits.", "ending1": "sings.", "ending2": "sleeps.", "label": 2}
HEADER = ",video-id,sent1,sent2,ending0,ending1,label\n"


def as_json(**changes):
    row = {**ROW, **changes}
    return json.dumps({key: value for key, value in row.items() if value is not None})


def test_json_lines(write):
    rows = [as_json(), "", as_json(ending3="flies.", label="0"), as_json(sent2="", ending2=None, label=1)]
    columns = read_swag(write("\ufeff" + "\n".join(rows), "swag.jsonl", compress=True))
    assert columns.names == ("prompts", "choices", "labels")
    assert columns.prompts == ["A cat."] * 3
    three = ["It sits.", "It sings.", "It sleeps."]
    assert columns.choices == [three, [*three, "It flies."], ["sits.", "sings."]]
    assert columns.labels == [2, 0, 1]


def test_csv(write):
    path = write("\ufeff" + HEADER + '0,v1,"A cat, two dogs.",They,"sit, or lie.",sing.,1\r\n', "train.csv")
    assert read_swag(path) == (["A cat, two dogs."], [["They sit, or lie.", "They sing."]], [1])


def test_more_than_ten_endings_keep_their_order(write):
    row = {"sent1": "A", "sent2": "B", "label": 10, **{f"ending{number}": str(number) for number in range(12)}}
    assert read_swag(write(json.dumps(row))).choices == [[f"B {number}" for number in range(12)]]


BAD_JSON = [
    (as_json(label=None), "no label. The columns are ['sent1', 'sent2', 'ending0', 'ending1', 'ending2']."),
    (as_json(ending1=None), "no ending1. The columns are"),
    (as_json(ending2=None, ending3="x"), "the endings are not numbered one after the other: ['ending0', 'ending1', 'e"),
    (as_json(sent1=""), "'sent1' must be a text that is not empty. Received: ''."),
    (as_json(ending1=5), "'ending1' must be a text that is not empty. Received: 5."),
    (as_json(label=3), "the answer must be the number of a choice, 0 to 2. Received: 3."),
    (as_json(label=True), "the answer must be the number of a choice, 0 to 2. Received: True."),
    (as_json(label=1.0), "the answer must be the number of a choice, 0 to 2. Received: 1.0."),
    ("[1]", "a list where an object must stand."),
]


@pytest.mark.parametrize(("line", "problem"), BAD_JSON)
def test_bad_json_line(write, line, problem):
    check_bad_line(write(f"{as_json()}\n{line}\n{as_json()}\n", "swag.jsonl"), problem, [2, 2])


BAD_CSV = [
    ("0,v1,A cat.,It,,sings.,1", "'ending0' must be a text that is not empty. Received: ''."),
    ("0,v1,A cat,two,It,sits.,sings.,1", "8 cells where the header names 7 columns."),
    ('0,v1,A "cat".,It,"sits".,sings.,1', "',' expected after '\"'. Check the quotes of this row."),
    ("0,v1,A cat.,It,sits.,sings.,2", "the answer must be the number of a choice, 0 to 1. Received: '2'."),
]


@pytest.mark.parametrize(("line", "problem"), BAD_CSV)
def test_bad_csv_row(write, line, problem):
    check_bad_line(write(f"{HEADER}{line}\n0,v1,A cat.,It,sits.,sings.,1\n"), problem, [1])


def check_bad_line(path, problem, labels):
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 2: {problem}")):
        read_swag(path)
    with pytest.warns(UserWarning, match="`read_swag`: left out 1 rows"):
        columns = read_swag(path, on_error="skip")
    assert columns.labels == labels
    assert columns.skipped[0].startswith(f"{path}, line 2: {problem}")


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_csv_of_a_test_set(write, on_error):
    with pytest.raises(ValueError, match=r"test.csv, line 1: no label. The columns are \['sent1', 'sent2', 'ending0'"):
        read_swag(write("sent1,sent2,ending0,ending1\na,b,c,d\n", "test.csv"), on_error=on_error)


def test_empty(write):
    with pytest.raises(ValueError, match="line 1: no sent1, sent2, ending0, ending1, label."):
        read_swag(write(""))


def test_on_error(write):
    with pytest.raises(ValueError, match="`read_swag`: `on_error` must be one of"):
        read_swag(write(as_json()), on_error="drop")


def test_real_file(shared_data):
    columns = read_swag(shared_data / "multiple_choice" / "swag-sample.json")
    assert columns.num_rows == 10
    assert [columns.labels.count(label) for label in range(4)] == [3, 2, 0, 5]
    assert columns.choices[0][0] == "A drum line passes by walking down the street playing their instruments."
