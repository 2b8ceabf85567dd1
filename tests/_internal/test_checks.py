import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import check_in_graph


def test_a_long_value_is_cut():
    text = checks.message("Owner", "vocabulary", "be a list", {"token": "a" * 10**6}, "Give a list.")
    assert len(text) < 1200
    assert text.endswith("… (1,000,013 characters). Give a list.")


@pytest.mark.parametrize(("cure", "end"), [("", ""), ("Scale them.", " Scale them.")])
def test_every_row_names_the_first_wrong_row(cure, end):
    rows = np.array([0.5, 2.0, np.nan])
    checks.every_row("Owner", "every number must be small", rows[:1], rows[:1] < 1, cure)
    with pytest.raises(ValueError, match=f"^`Owner`: every number must be small. Received: 2.0 in row 1.{end}$"):
        checks.every_row("Owner", "every number must be small", rows, rows < 1, cure)


def test_known_arguments_names_the_first_unknown_one():
    checks.known_arguments("Owner", {"width": 3}, ["height", "width"])
    text = r"^`Owner`: `widht` must be one of the arguments \['height', 'width'\]\. Received: widht=3\.$"
    with pytest.raises(ValueError, match=text):
        checks.known_arguments("Owner", {"width": 1, "widht": 3, "other": 2}, ["height", "width"])


@pytest.mark.parametrize("in_graph", [False, True])
@pytest.mark.parametrize("ragged", [False, True])
def test_values_pass_and_the_error_shows_the_message(in_graph, ragged):
    def checked(values):
        return check_in_graph(values, tf.reduce_all(values > 0), ["every value must be above 0. Received: ", values[0]])

    call = tf.function(checked) if in_graph else checked
    make = tf.ragged.constant if ragged else tf.constant
    assert call(make([[1, 2], [3, 4]])).numpy().tolist() == [[1, 2], [3, 4]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="every value must be above 0. Received: "):
        call(make([[0, 2], [3, 4]]))
