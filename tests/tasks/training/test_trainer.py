"""`Trainer`: Ctrl-C during a trace, method signatures, and functions that follow their layers."""

import inspect
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers import BertClassifier, BertDualEncoder, BertSentenceEncoder, BertTokenClassifier

TEXTS, LABELS = ["a good film", "bad night"], [1, 0]


@pytest.fixture
def interrupted(new_backbone, preprocessor, monkeypatch):
    """A classifier whose first trace of a step was stopped after it had made a variable, as plain optimizers do."""
    made = []

    def stop(self, *arguments, **options):
        made.append(keras.Variable(0.0))
        with tf.init_scope():
            made.append(tf.Variable(0.0))
        made.append(tf.Variable(0.0))
        raise KeyboardInterrupt

    def interrupted(method, *arguments, **options):
        task = BertClassifier(new_backbone(), 2, preprocessor=preprocessor)
        task.backbone.trainable = False  # smaller graphs
        with monkeypatch.context() as patch:
            patch.setattr(BertClassifier, "compute_loss", stop)
            with pytest.raises(KeyboardInterrupt):
                getattr(task, method)(*arguments, **options)
        return task

    return interrupted


def test_fit_again(interrupted):
    task = interrupted("fit", TEXTS, LABELS, verbose=0)
    assert task.train_function is None
    assert len(task.fit(TEXTS, LABELS, verbose=0).history["loss"]) == 1


def test_evaluation_and_single_steps_are_traced_again_too(interrupted):
    assert interrupted("evaluate", TEXTS, LABELS, verbose=0).test_function is None
    assert interrupted("train_on_batch", TEXTS, LABELS).train_function is None


def test_signatures_are_kerass():
    assert list(inspect.signature(BertClassifier.fit).parameters)[:4] == ["self", "x", "y", "batch_size"]


@pytest.mark.parametrize(
    ("size", "error", "rule"), [("8", TypeError, "be an integer"), (0, ValueError, "be at least 1")]
)
@pytest.mark.parametrize("data", ["texts", "ids"])
def test_batch_sizes_and_numbers_of_steps(size, error, rule, data, new_backbone, preprocessor):
    task = BertClassifier(new_backbone(), 2, preprocessor=preprocessor)
    x, y = TEXTS if data == "texts" else IDS, np.array(LABELS)
    of_fit = ("batch_size", "validation_batch_size", "steps_per_epoch", "validation_steps")
    cases = [(name, task.fit) for name in of_fit] + [(name, task.evaluate) for name in ("batch_size", "steps")]
    for name, method in cases:
        with pytest.raises(error, match=f"`BertClassifier`: `{name}` must {rule}. Received: {name}={size!r}"):
            method(x, y, **{name: size})


def test_tensorboard_that_is_not_installed(new_backbone, preprocessor, monkeypatch, tmp_path):
    task = BertClassifier(new_backbone(), 2, preprocessor=preprocessor)
    before = task.get_weights()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"TensorBoard needs the package tensorboard.*layers\[tensorboard\]"):
        task.fit(TEXTS, LABELS, callbacks=[keras.callbacks.TensorBoard(tmp_path)], verbose=0)
    assert all(map(np.array_equal, before, task.get_weights()))
    assert list(tmp_path.iterdir()) == []


IDS = {name: np.ones((2, 3), "int32") for name in ("token_ids", "segment_ids", "padding_mask")}


@pytest.fixture
def trained(new_backbone):
    """A classifier whose optimizer has state."""
    task = BertClassifier(new_backbone(), 2)
    task.compile(keras.optimizers.Adam(), run_eagerly=True)
    task.train_on_batch(IDS, np.array(LABELS))
    return task


def test_an_optimizer_whose_weights_lora_froze_is_not_saved(trained, tmp_path):
    trained.backbone.enable_lora(2)
    trained.save_weights(tmp_path / "bert.weights.h5")
    trained.save(tmp_path / "bert.keras")
    again = keras.models.load_model(tmp_path / "bert.keras")
    for task in (trained, again):
        assert len(task.optimizer.variables) == 2 + 2 * len(task.trainable_weights)
    again.load_weights(tmp_path / "bert.weights.h5")  # Keras warns of state that does not fit


def test_a_training_with_lora_resumes_from_its_weights(trained, new_backbone, tmp_path):
    trained.backbone.enable_lora(2)
    trained.train_on_batch(IDS, np.array(LABELS))
    assert int(trained.optimizer.iterations) == 1  # another optimizer than before LoRA
    trained.save_weights(tmp_path / "lora.weights.h5")
    again = BertClassifier(new_backbone(), 2)
    again.compile(keras.optimizers.Adam(), run_eagerly=True)
    again.train_on_batch(IDS, np.array(LABELS))
    again.backbone.enable_lora(2)
    again.load_weights(tmp_path / "lora.weights.h5")  # a warning, which would be an error, if state did not fit
    again.train_on_batch(IDS, np.array(LABELS))
    assert int(again.optimizer.iterations) == 2


def test_functions_follow_their_layers(new_backbone, preprocessor):
    task = BertClassifier(new_backbone(), 2, preprocessor=preprocessor)
    task.compile(run_eagerly=True)  # functions are made all the same
    made, make = [], task.make_predict_function
    task.make_predict_function = lambda: made.append(task.predict_function) or make()
    for is_packed in (False, False, True, True):
        task.backbone.packed_rows = is_packed
        task.predict(IDS, verbose=0)
    assert [function is None for function in made] == [True, False, True, False]


@pytest.mark.parametrize(
    ("make", "arguments", "x", "y"),
    [
        (BertTokenClassifier, {"tag_names": ["O", "B-a"]}, [["a", "good"]], [["O", "B-a"]]),
        (BertSentenceEncoder, {}, (TEXTS, TEXTS), None),
        (BertDualEncoder, {}, (TEXTS, TEXTS), None),
    ],
)
def test_tasks_whose_labels_count_rows_are_refused_on_several_devices_of_tensorflow(
    make, arguments, x, y, new_backbone, preprocessor, monkeypatch
):
    task = make(new_backbone(), preprocessor=preprocessor, **arguments)
    monkeypatch.setattr(task, "_distribute_strategy", SimpleNamespace(num_replicas_in_sync=2))
    for method in (task.fit, task.evaluate):
        with pytest.raises(RuntimeError, match="have one device: .* Received: strategy=2 devices. Use Keras on JAX"):
            method(x, y, verbose=0)


def test_ids_of_queries_are_refused_on_several_devices_of_tensorflow_too(new_backbone, monkeypatch):
    task = BertDualEncoder(new_backbone())
    monkeypatch.setattr(task, "_distribute_strategy", SimpleNamespace(num_replicas_in_sync=2))
    for method in (task.fit, task.evaluate):
        with pytest.raises(RuntimeError, match="have one device: .* Received: strategy=2 devices"):
            method({"query": IDS, "document": IDS}, {"texts": np.array([[0, 1], [2, 3]])}, verbose=0)
