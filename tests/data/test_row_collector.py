"""Rows that cannot be used, tested through `read_glue`: every reader handles them in the same way."""

import re

import pytest

from keras_bert_layers.data import read_glue

HEADER = "sentence\tlabel\n"


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
