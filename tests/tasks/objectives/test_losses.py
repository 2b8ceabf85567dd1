"""Losses of `compile` read logits."""

import keras
import numpy as np
import pytest

from keras_bert_layers import BertClassifier
from keras_bert_layers.tasks.objectives.losses import on_logits

TEXTS, LABELS = ["a good film", "bad night", "good !", "unhappy"], [1, 0, 1, 0]


@pytest.fixture(scope="module")
def task(new_backbone, preprocessor):
    return BertClassifier(new_backbone(), 2, preprocessor=preprocessor)


@pytest.fixture(scope="module")
def ids(task):
    return task.pipeline.batches.one(TEXTS)[0]


@pytest.mark.parametrize(
    "loss",
    [
        "sparse_categorical_crossentropy",
        "SparseCategoricalCrossentropy",
        keras.losses.sparse_categorical_crossentropy,
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    ],
)
def test_every_way_to_name_it_is_the_default(loss, task, ids):
    losses = []
    for chosen in ("auto", loss):
        task.compile(loss=chosen, run_eagerly=True)
        losses.append(task.test_on_batch(ids, np.array(LABELS), return_dict=True)["loss"])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-6)  # the mean of four float32 values


def test_an_object_for_probabilities_is_refused(backbone):
    with pytest.raises(ValueError, match=r"SparseCategoricalCrossentropy\(from_logits=True\)"):
        BertClassifier(backbone, 2).compile(loss=keras.losses.SparseCategoricalCrossentropy())


@pytest.mark.parametrize(
    "name", ["binary_crossentropy", "categorical_crossentropy", "binary_focal_crossentropy", "CategoricalCrossentropy"]
)
def test_by_name(name):
    assert on_logits("Task", name).from_logits
    assert on_logits("Task", [name, {"a": name}])[1]["a"].from_logits


def test_the_others_stay():
    def mine(y_true, y_pred):
        return y_pred

    huber = keras.losses.Huber()
    for loss in ("mse", "mean_squared_error", huber, mine, None, keras.losses.mean_squared_error):
        assert on_logits("Task", loss) is loss
