import copy
import pickle

import numpy as np
import pytest

from keras_bert_layers.data import Columns


@pytest.fixture
def columns():
    return Columns(["texts", "labels", "count"], [["a", "b"], [1, 0], [7, 8]], skipped=["file, line 3: empty"])


def test_is_a_tuple_of_lists(columns):
    texts, labels, counts = columns
    assert (texts, labels, counts) == columns == (["a", "b"], [1, 0], [7, 8])
    assert isinstance(columns, tuple)
    assert len(columns) == 3
    assert columns[-1] == [7, 8]
    assert columns[:2] == (["a", "b"], [1, 0])


def test_columns_have_names(columns):
    assert columns.names == ("texts", "labels", "count")
    assert columns.texts is columns[0]
    assert columns["labels"] is columns[1]
    assert "labels" in dir(columns)


def test_a_name_that_tuples_use_is_an_item(columns):
    assert columns["count"] == [7, 8]
    assert columns.count([1, 0]) == 1


def test_rows_and_what_was_left_out(columns):
    assert columns.num_rows == 2
    assert columns.num_skipped == 1
    assert columns.skipped == ("file, line 3: empty",)
    assert Columns([], []).num_rows == 0


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda columns: pickle.loads(pickle.dumps(columns))])
def test_copies_keep_everything(columns, again):
    other = again(columns)
    assert other == columns
    assert other.names == columns.names
    assert other.skipped == columns.skipped


def test_long_columns_print_shortly():
    text = repr(Columns(["texts", "labels"], [["x" * 1000] * 1000, list(range(1000))]))
    assert len(text) < 500
    assert text.endswith("labels=[0, 1, 2, 3, 4, 5, ...])")


def test_unknown_name(columns):
    with pytest.raises(KeyError, match=r"no column named 'label'. The columns are \['texts', 'labels', 'count'\]"):
        columns["label"]
    with pytest.raises(AttributeError, match="no column named 'label'"):
        getattr(columns, "label")  # noqa: B009
    assert not hasattr(columns, "__array__")
    assert np.asarray(columns.labels).tolist() == [1, 0]
