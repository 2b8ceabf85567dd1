"""Prompts with choices as columns and batches, without a model."""

import numpy as np
import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.inputs import ChoiceInputs

X = (["good", "bad"], [["a", "film", "night"], ["film"]])


@pytest.fixture
def inputs(preprocessor):
    return ChoiceInputs("Owner", preprocessor, fill_value=-9.0)


def test_short_rows_are_padded_and_absent_choices_cut(inputs):
    prompts, choices = inputs.columns((X[0], [["a", ""], ["film"]]))
    assert prompts.tolist() == X[0]
    assert choices.tolist() == [["a"], ["film"]]


def test_a_batch_is_as_wide_as_its_widest_row(inputs):
    (batch,) = inputs.batches(X, [2, 0])
    ids, labels = batch
    assert ids["token_ids"].shape[:2] == (2, 3)
    assert ids["padding_mask"].numpy()[1, 1:].sum() == 0  # absent choices
    assert labels.numpy().tolist() == [2, 0]


def test_only_choices_that_exist_are_computed(inputs):
    rows = []

    def run(ids, preprocessor, finish):
        batch = finish({name: np.asarray(values) for name, values in ids.items()})
        rows.append(batch["token_ids"].shape[:2])
        return np.arange(4.0)[:, np.newaxis]

    assert inputs.outputs(inputs.columns(X), run).tolist() == [[0, 1, 2], [3, -9, -9]]
    assert rows == [(4, 1)]


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (["a"], ValueError, "`x` must be a tuple of two columns"),
        ((["a"], ["b"]), TypeError, "`choices` must hold a list of strings for each prompt. Received: 'b' in row 0"),
        (
            (["a", "b"], [["c"]]),
            ValueError,
            "every prompt must have its row of choices. Received: 2 prompts and 1 rows",
        ),
        ((["a", "b"], [["c"], [""]]), ValueError, "every row must have a choice that is not empty. .* none in row 1"),
    ],
)
def test_wrong_columns(inputs, x, error, message):
    with pytest.raises(error, match=f"`Owner`: {message}"):
        inputs.columns(x)


@pytest.mark.parametrize("index", [3, -1, 0.5])
def test_wrong_labels(inputs, index):
    message = "every label must be the index of a choice, counted from 0"
    with pytest.raises(ValueError, match=f"{message}. Received: {index} in row 0, which has 3 choices"):
        inputs.labels(inputs.columns(X), [index, 0])


def test_labels_in_other_forms(inputs):
    with pytest.raises(TypeError, match="`y` must hold integers. .* For a choice's own text"):
        inputs.labels(inputs.columns(X), ["a", "film"])
    columns = inputs.columns(X)
    texts = tf.constant(columns[0]), tf.constant(columns[1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="every label must be the index of a choice"):
        inputs.encode(texts, tf.constant([0, 1]))
