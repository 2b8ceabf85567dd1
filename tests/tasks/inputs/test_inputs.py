"""The protocol of all kinds of data, on texts and without a model."""

import keras
import numpy as np
import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.inputs import Inputs

pytestmark = pytest.mark.skipif(keras.backend.backend() == "jax", reason="on JAX, batches have one of a few widths")
TEXTS = ["a good film", "bad night", "good !"]


@pytest.fixture
def inputs(preprocessor):
    return Inputs("Owner", preprocessor)


def ids_of(batch):
    return batch[0]["token_ids"].numpy().tolist()


def test_a_batch_is_what_the_preprocessor_makes(inputs, preprocessor):
    (batch,) = inputs.batches(TEXTS, [1, 0, 1], [0.5, 1, 2])
    assert ids_of(batch) == preprocessor(TEXTS)["token_ids"].numpy().tolist()
    assert [part.numpy().tolist() for part in batch[1:]] == [[1, 0, 1], [0.5, 1, 2]]
    ids, labels, weights = inputs.batches.one(TEXTS, [1, 0, 1])
    assert ids["token_ids"].tolist() == ids_of(batch)
    assert labels.tolist() == [1, 0, 1]
    assert weights is None


def test_a_dataset_and_its_rows_give_the_same_batches(inputs):
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(2)
    assert [ids_of(batch) for batch in inputs.batches(dataset)] == [
        ids_of(batch) for batch in inputs.batches(TEXTS, batch_size=2)
    ]


def test_the_prompt_is_before_the_first_text(preprocessor):
    inputs = Inputs("Owner", preprocessor)
    prompted = inputs.prompted("bad ")
    for x, expected in [(["a"], ["bad a"]), ((["a"], ["film"]), (["bad a"], ["film"]))]:
        (batch,) = prompted.batches(x)
        assert ids_of(batch) == preprocessor(expected)["token_ids"].numpy().tolist()
    assert inputs.prompt == ""


def test_functions_are_traced_once_until_they_are_forgotten(inputs):
    first = inputs.batches.traced(inputs.encode)
    assert inputs.batches.traced(inputs.encode) is first
    assert inputs.made_once(list, "a") is inputs.made_once(list, "a")
    inputs.batches.forget()
    assert inputs.batches.traced(inputs.encode) is not first


@pytest.mark.parametrize("data", [TEXTS, (TEXTS,), TEXTS[0], tuple(TEXTS[:2]), (TEXTS, None), (TEXTS,) * 4])
def test_validation_data_without_labels(inputs, data):
    with pytest.raises(
        ValueError, match=r"`validation_data` must be `\(x, y\)` or `\(x, y, sample_weight\)`. Received"
    ):
        inputs.batches.validation(data, 2)


def test_text_without_a_preprocessor():
    ids_only = Inputs("Owner", None)
    with pytest.raises(ValueError, match="`Owner`: `preprocessor` must be given for raw text"):
        ids_only.is_raw(TEXTS)
    assert not ids_only.is_raw(np.ones((2, 3)))


def test_ids_are_not_raw(inputs):
    assert inputs.is_raw(TEXTS)
    assert not inputs.is_raw({"token_ids": np.ones((2, 3))})
    assert not inputs.is_raw(None)


@pytest.mark.parametrize("data", [(TEXTS, [1, 0, 1]), [TEXTS, [1, 0, 1]]])
def test_validation_data(inputs, data):
    (batch,) = inputs.batches.validation(data, 3)
    assert batch[1].numpy().tolist() == [1, 0, 1]
    ids = {"token_ids": np.ones((2, 3))}, [0, 1]
    assert inputs.batches.validation(ids, 3) is ids


def test_outputs_are_joined(inputs):
    blocks = [{"a": np.ones((1, 2)), "b": np.zeros(1)}, {"a": np.ones((1, 1)), "b": np.ones(1)}]
    joined = inputs.join(blocks)
    assert joined["a"].tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize(
    ("x", "y", "weights", "message"),
    [
        ([], None, None, "`x` must hold at least one row"),
        (TEXTS, [1], None, "`y` must have one row for each text. Received: 3 texts and 1 rows of y"),
        (TEXTS, None, [1.0], "`sample_weight` must have one row for each text. Received: 3 texts and 1 rows"),
    ],
)
def test_wrong_rows(inputs, x, y, weights, message):
    with pytest.raises(ValueError, match=f"`Owner`: {message}"):
        inputs.batches.checked(x, y, weights)


def test_other_errors(inputs):
    with pytest.raises(ValueError, match="`y` must hold one label for each text"):
        inputs.check_labels(TEXTS, None)
    with pytest.raises(ValueError, match="`validation_split` must be 0 for a dataset"):
        inputs.split(tf.data.Dataset.from_tensors(["a"]), None, None, 0.5)
    with pytest.raises(ValueError, match=r"`x` must hold 1 texts per row: \['text'\]"):
        inputs.answer_columns((["a"], ["b"]))
