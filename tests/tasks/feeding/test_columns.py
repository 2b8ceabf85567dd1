"""Columns of raw text: recognizing, checking, splitting and stacking them."""

from collections import UserList

import keras
import numpy as np
import pandas
import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.feeding import columns

DATASET = tf.data.Dataset.from_tensors((["a"], [1]))


class Batches(keras.utils.PyDataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return ["a"], [1]


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ("a", True),
        (["a"], True),
        (([b"a"], ["b"]), True),
        (np.array(["a"]), True),
        (np.array(["a"], object), True),
        (tf.constant(["a"]), True),
        (DATASET, True),
        (Batches(), True),
        ([1], False),
        ([], False),
        (np.ones(2), False),
        ({"token_ids": np.ones((1, 2))}, False),
        (None, False),
    ],
)
def test_what_holds_text(x, expected):
    assert columns.holds_text(x) is expected


def test_what_a_dataset_yields_decides():
    assert columns.is_dataset(DATASET)
    assert not columns.is_dataset([DATASET])
    assert columns.is_pair(tf.data.Dataset.from_tensors(((["a"], ["b"]), [1])))
    assert not columns.is_pair(DATASET)
    ids = tf.data.Dataset.from_tensors({"token_ids": [[1]]})
    assert columns.has_key(ids, "token_ids")
    assert not columns.has_key(DATASET, "token_ids")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2], [1, 2]),
        (["a", "bc"], ["a", "bc"]),
        (np.array([1, 2], object), [1, 2]),
        ([[1], [2, 3]], [[1], [2, 3]]),
    ],
)
def test_columns_as_arrays(values, expected):
    found = columns.as_array(values)
    assert isinstance(found, np.ndarray)
    assert found.tolist() == expected


def test_numbers_in_a_column_of_objects_are_numbers_again():
    pandas = pytest.importorskip("pandas")
    assert columns.as_array(pandas.Series([1.0, 2.0], dtype=object)).dtype.kind == "f"
    assert columns.as_array(np.array([1, 2], object)).dtype.kind == "i"
    assert columns.as_array(["a", "b"]).dtype == object
    tensor = tf.constant([1])
    assert columns.as_array(tensor) is tensor


def test_texts_in_columns():
    assert columns.as_columns("Owner", ["a", b"b"]).tolist() == ["a", b"b"]
    first, second = columns.as_columns("Owner", (["a", "b"], np.array(["c", "d"])))
    assert (first.tolist(), second.tolist()) == (["a", "b"], ["c", "d"])
    *_, negatives = columns.as_columns("Owner", (["a", "b"], ["c", "d"], [["e", "f"], "g"]), most=3)
    assert negatives.tolist() == [["e", "f"], ["g", ""]]
    assert columns.as_table("Owner", tf.constant([["a"], ["b"]])).tolist() == [[b"a"], [b"b"]]


@pytest.mark.parametrize(
    ("x", "options", "error", "message"),
    [
        ("a", {}, ValueError, "texts must be a list. Received: one string, 'a'. Write \\[text\\]."),
        (["a", None], {"first_row": 7}, TypeError, "texts must be strings. Received: None in row 8. Missing values"),
        ([1.5], {}, TypeError, "texts must be strings. Received: an array of dtype float64"),
        (
            ["a", "b\ud83d"],
            {},
            ValueError,
            r"texts must be valid Unicode. .*ud83d' at character 1 of row 1. It is half",
        ),
        (
            (["a"], ["b"], [["c\udc80"]]),
            {"most": 3},
            ValueError,
            "valid Unicode. .* of row 0. It is half of a character",
        ),
        ([["a", "b"]], {}, ValueError, r"texts must be one column `\(rows,\)`. Received: shape=\(1, 2\). Pairs are"),
        (
            pandas.DataFrame({"text": ["a"], "n": [1]}),
            {},
            ValueError,
            r"Take one column of the table: `table\['text'\]`",
        ),
        ({"text": ["a"]}, {}, TypeError, "`x` must be a list, array, tensor .* Take a column out of a dictionary"),
        (tf.ragged.constant([["a"]]), {}, TypeError, "`x` must hold one text per row. .* Join the words"),
        ((["a"], ["b"]), {"most": 1}, ValueError, "`x` must be single texts. Received: x='a tuple'"),
        ((["a"],) * 3, {}, ValueError, "a pair of texts must be a tuple of two lists. Received: a tuple of 3. A batch"),
        ((["a"],) * 4, {"most": 3}, ValueError, "must be a tuple of two to 3 lists. Received: a tuple of 4. A batch"),
        (("a", "b"), {}, ValueError, "Received: a tuple of 2, with strings where lists must be. A batch of single"),
        ((["a"], ["b", "c"]), {}, ValueError, "sides of a pair must have the same number of texts. Received: 1 and 2."),
        ((["a"], ["b"], "c"), {"most": 3}, ValueError, "with strings where lists must be"),
        ((["a"], ["b"], 5), {"most": 3}, TypeError, r"`x\[2\]` must be a column of texts, or of lists of texts"),
        ((["a"], ["b"], [[5]]), {"most": 3}, TypeError, r"texts must be strings. Received: \[5\] in row 0"),
    ],
)
def test_wrong_texts(x, options, error, message):
    with pytest.raises(error, match=f"`Owner`: .*{message}" if not message.startswith("`") else message):
        columns.as_columns("Owner", x, **options)


@pytest.mark.parametrize("wrong", [None, float("nan"), 3, True], ids=str)
@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize(
    "kind",
    [list, tuple, UserList, lambda x: np.array(x, object), pandas.Series],
    ids=["list", "tuple", "UserList", "array", "Series"],
)
def test_what_is_no_text_is_named_wherever_it_is(kind, row, wrong):
    texts = ["a", "b"]
    texts[row] = wrong
    match = rf"`Owner`: texts must be strings. Received: (nan|{wrong}) in row {5 + row}\."
    for x in ([kind(texts)] if kind is not tuple else []) + [(["a", "b"], kind(texts))]:
        with pytest.raises(TypeError, match=match):
            columns.as_columns("Owner", x, first_row=5)


def test_a_column_of_numbers_alone():
    for x in ([float("nan")] * 2, np.full(2, np.nan), pandas.Series([np.nan] * 2)):
        with pytest.raises(TypeError, match="an array of dtype float64, nan in row 5"):
            columns.as_columns("Owner", x, first_row=5)


@pytest.mark.parametrize(
    ("element", "cure"),
    [
        ({"text": ["a"]}, "For dictionaries"),
        (([1.0], [1]), "For dictionaries"),
        (((["a"],) * 3, [1]), "For dictionaries"),
        (("a", 1), r"Call `dataset.batch\(32\)` first"),
    ],
)
def test_wrong_datasets(element, cure):
    with pytest.raises(ValueError, match=f"`Owner`: `x` must yield `text`.* a tuple of two. .*{cure}"):
        columns.check_text_dataset("Owner", tf.data.Dataset.from_tensors(element))
    columns.check_text_dataset("Owner", DATASET)


def test_what_stands_beside_a_dataset():
    columns.refuse_beside_dataset("Owner", y=None, batch_size=None)
    with pytest.raises(ValueError, match="`y` must be None where `x` is a dataset. .* must yield"):
        columns.refuse_beside_dataset("Owner", y=[1], batch_size=None)
    with pytest.raises(ValueError, match="`batch_size` must be None where `x` is a dataset. .* Batch the dataset"):
        columns.refuse_beside_dataset("Owner", y=None, batch_size=2)


def test_split():
    ids = {"token_ids": np.arange(10).reshape(5, 2)}
    first, last = columns.split_rows("Owner", 0.3, (np.arange(5), np.arange(5)), None, ids)
    assert [part.tolist() for part in first[0]] == [[0, 1, 2]] * 2
    assert [part.tolist() for part in last[0]] == [[3, 4]] * 2
    assert first[1] is last[1] is None
    assert last[2]["token_ids"].tolist() == [[6, 7], [8, 9]]
    with pytest.raises(ValueError, match="`validation_split` must leave a row of 1 to train on"):
        columns.split_rows("Owner", 0.3, np.arange(1))
    with pytest.raises(ValueError, match="`validation_split` must be at least 0 and less than 1"):
        columns.split_rows("Owner", 1.0, np.arange(3))


def test_arrays_of_other_widths_are_stacked():
    parts = [np.ones((1, 2, 1)), np.full((2, 1, 3), 2.0)]
    found = columns.stacked(parts, -1.0)
    assert found.tolist() == [[[1, -1, -1], [1, -1, -1]], [[2, 2, 2], [-1, -1, -1]], [[2, 2, 2], [-1, -1, -1]]]
    assert columns.stacked(parts[:1], 0.0) is parts[0]


def test_nones_at_the_end_are_left_out():
    assert columns.without_none(1, None, None) == (1,)
    assert columns.without_none(1, None, 2) == (1, None, 2)
    assert columns.without_none(None) == ()


@pytest.mark.parametrize("x", [("Who?", "A man."), ("A man", ["sings.", "bakes."])])
def test_a_single_row_as_columns(x):
    assert columns.is_single_row(x)
    assert not columns.is_single_row(columns.as_rows(x))
    assert columns.as_rows(x) == tuple([part] for part in x)
