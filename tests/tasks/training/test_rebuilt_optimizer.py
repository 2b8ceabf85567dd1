"""Optimizers whose weights are frozen and freed between two calls of `fit`."""

import keras
import numpy as np
import pytest

from keras_bert_layers import BertClassifier
from keras_bert_layers.optimizers import adamw, lamb

TEXTS, LABELS = ["a good film", "bad night"], [1, 0]
IDS = {name: np.ones((2, 3), "int32") for name in ("token_ids", "segment_ids", "padding_mask")}
RATE = 0.05
# Adam's epsilon beside small gradients, and the difference of two float32 weights.
FIRST_STEP = 1e-3


# How weights are frozen and freed between two calls of `fit`.
def freeze_backbone(task, frozen):
    task.backbone.trainable = not frozen


def freeze_block(task, frozen):
    task.backbone.get_layer("encoder_block_0").trainable = not frozen


OPTIMIZERS = {
    "adamw": lambda: adamw(1e-2),
    "adamw of several batches": lambda: adamw(1e-2, gradient_accumulation_steps=2),
    "scaled loss": lambda: keras.optimizers.LossScaleOptimizer(adamw(1e-2)),
    "parts": lambda: keras.optimizers.MultiOptimizer(
        keras.optimizers.OptimizerMap(adamw(1e-2), {"classification_head/.*": keras.optimizers.SGD(0.1, 0.9)})
    ),
    "lamb": lambda: lamb(1e-2),
    "Adam with averages": lambda: keras.optimizers.Adam(1e-2, use_ema=True),
    "Adafactor": lambda: keras.optimizers.Adafactor(1e-2),
}


def moved(task, steps=2):
    """The layers whose weights a few steps change."""
    before = {weight.path: weight.numpy() for weight in task.weights}
    for _ in range(steps):
        task.train_on_batch(IDS, np.array(LABELS))
    return {weight.path.split("/")[0] for weight in task.weights if (weight.numpy() != before[weight.path]).any()}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("freeze", [freeze_backbone, freeze_block])
def test_weights_frozen_and_freed_between_fits(new_backbone, optimizer, freeze):
    task = BertClassifier(new_backbone(), 2)
    task.compile(made := OPTIMIZERS[optimizer](), run_eagerly=True)
    everything = moved(task)
    assert "encoder_block_0" in everything
    num_steps, num_variables = int(made.iterations), len(made.variables)
    head = [weight for weight in task.weights if weight.path == "classification_head/dense/kernel"]
    before = [np.array(variable) for variable in made.variables if _is_moment(variable, head)]
    freeze(task, True)
    task.trainer.follow_layers()
    assert int(made.iterations) == num_steps
    assert len(made.variables) < num_variables
    after = [np.array(variable) for variable in made.variables if _is_moment(variable, head)]
    assert len(after) == len(before) > 0
    assert all(map(np.array_equal, after, before))
    frozen = everything - moved(task)
    assert frozen == ({"embedding", "encoder_block_0", "pooler"} if freeze is freeze_backbone else {"encoder_block_0"})
    freeze(task, False)
    assert moved(task) == everything
    assert task.optimizer is made
    assert len(made.variables) == num_variables


def _is_moment(variable, weights):
    return any(variable.name.startswith(weight.path.replace("/", "_")) for weight in weights)


def test_freed_weights_have_the_first_steps_of_new_ones(new_backbone):
    """With its bias corrected, Adam's first step is as long as the rate."""
    task = BertClassifier(new_backbone(), 2)
    task.compile(adamw(RATE, weight_decay=0.0, clip_norm=None), run_eagerly=True)
    task.backbone.trainable = False
    moved(task, 5)
    task.backbone.trainable = True
    weight = task.backbone.get_layer("encoder_block_0").feed_forward.weights[0]
    before = weight.numpy()
    moved(task, 1)
    np.testing.assert_allclose(np.median(np.abs(weight.numpy() - before)), RATE, rtol=FIRST_STEP)


def test_frozen_weights_in_graph(new_backbone, preprocessor):
    """Where the compiled step of the `fit` before is another one."""
    task, freed = BertClassifier(new_backbone(), 2, preprocessor=preprocessor), []
    for frozen in (True, False, True):
        task.backbone.trainable = not frozen
        before = task.backbone.get_weights()
        task.fit(TEXTS, LABELS, verbose=0)
        freed.append(not all(map(np.array_equal, before, task.backbone.get_weights())))
    assert freed == [False, True, False]


def test_an_optimizer_whose_weights_were_frozen_is_saved(new_backbone, tmp_path):
    trained = BertClassifier(new_backbone(), 2)
    trained.compile(keras.optimizers.Adam(), run_eagerly=True)
    moved(trained, 1)
    trained.backbone.trainable = False
    trained.save(tmp_path / "bert.keras")
    again = keras.models.load_model(tmp_path / "bert.keras")  # Keras warns of state that does not fit
    assert int(again.optimizer.iterations) == int(trained.optimizer.iterations) == 1


def test_single_weights_that_were_frozen(new_backbone, tmp_path):
    """The file does not hold that they are frozen, and its optimizer has no state of them."""
    task = BertClassifier(new_backbone(), 2)
    task.compile(adamw(RATE), run_eagerly=True)
    for weight in task.backbone.get_layer("encoder_block_0").weights:
        weight.trainable = False
    moved(task, 2)
    task.save(tmp_path / "bert.keras")
    again = keras.models.load_model(tmp_path / "bert.keras")
    assert [variable.shape for variable in again.optimizer.variables] == [v.shape for v in task.optimizer.variables]
    again.run_eagerly = True
    assert "encoder_block_0" in moved(again, 1)
    assert int(again.optimizer.iterations) == 3


class OnceBuilt(keras.optimizers.SGD):
    """A user's optimizer that refuses to be built twice."""

    def build(self, variables):
        if getattr(self, "factors", None):
            raise AttributeError("factors")
        super().build(variables)
        self.factors = {"a": 1.0}


def test_an_optimizer_that_cannot_be_built_again(new_backbone):
    task = BertClassifier(new_backbone(), 2)
    task.compile(OnceBuilt(0.1), run_eagerly=True)
    moved(task, 1)
    task.backbone.trainable = False
    with pytest.raises(RuntimeError, match="`optimizer` must be one that can be built again .*Call `compile`"):
        moved(task, 1)
