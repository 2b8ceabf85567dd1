"""Resuming: a training that is interrupted and started again ends with the weights of an uninterrupted one."""

import functools
import gc
import os
import shutil
import subprocess
import sys
import weakref
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf
from trainings import EPOCHS, KINDS, STEPS, TEXTS, VOCABULARY, After, make_task, train

from keras_bert_layers import BertTokenizer
from keras_bert_layers.optimizers import OptimizerLogger
from keras_bert_layers.tasks import AdversarialTraining, GradualUnfreezing, RDrop, TokenRate

PROGRAM = Path(__file__).parents[1] / "trainings.py"


def interrupt():
    raise KeyboardInterrupt


@functools.cache
def tokenizer():
    """One for all tasks: what it traces, it traces once."""
    return BertTokenizer(VOCABULARY)


def new_task(kind="texts"):
    """A task of whose encoder the pooler is trained alone: less work in each step."""
    task = make_task(kind, tokenizer=tokenizer(), run_eagerly=True)
    for layer in task.backbone.layers:
        layer.trainable = layer.name == "pooler"
    return task


def trained(*callbacks, kind="texts", task=None, **options):
    """A task that was trained, and its history up to the interrupt."""
    task = task or new_task(kind)
    try:
        history = train(task, kind, callbacks, **options)
    except KeyboardInterrupt:
        history = {}
    return task, history


def assert_equal(first, second):
    for expected, found in zip(first.get_weights(), second.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)


def assert_goes_on(undisturbed, found):
    """Equal weights, and equal logs of the epochs that were computed again or at last."""
    assert_equal(undisturbed[0], found[0])
    for name, values in found[1].items():
        assert values == undisturbed[1][name][-len(values) :]


def left_after(steps, folder, copy, *, save_freq):
    """Callbacks that make backups, and copy what would be left if the process were killed after so many steps."""
    backup = keras.callbacks.BackupAndRestore(folder, save_freq=save_freq)
    return backup, After(steps, functools.partial(shutil.copytree, folder, copy))


# How often a training is backed up, and after how many steps it is interrupted.
MOMENTS = {
    "epochs": ("epoch", 7),
    "within an epoch": (2, 8),
    "after the last step of an epoch": (STEPS, STEPS),
    "within the last epoch": (2, 13),
}


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """A folder of what the undisturbed training would leave at each of the moments, and after its second epoch."""
    return tmp_path_factory.mktemp("left")


@pytest.fixture(scope="module")
def undisturbed(left):
    callbacks = [keras.callbacks.ModelCheckpoint(left / "{epoch}.keras")]
    for name, (save_freq, after) in MOMENTS.items():
        callbacks += left_after(after, left / f"{name}, going on", left / name, save_freq=save_freq)
    return trained(*callbacks)


def test_backup_and_restore(tmp_path):
    """Within the last of two epochs; the tests below are of three."""

    def backup():
        return keras.callbacks.BackupAndRestore(tmp_path, save_freq=2)

    trained(backup(), After(7, interrupt), epochs=2)
    assert_goes_on(trained(epochs=2), trained(backup(), epochs=2, seed=2))


def trained_rows(task, *callbacks, **options):
    """The rows of each step of a training: their numbers are their weights."""
    steps, step = [], task.train_step

    def recorded(batch):
        steps.append(batch[2].numpy().astype(int).tolist())
        return step(batch)

    task.train_step = recorded
    trained(*callbacks, task=task, sample_weight=np.arange(len(TEXTS)), **options)
    return steps


def without_order(path):
    """Makes a file as those before places had the number of an order; returns the seed of its training."""
    with h5py.File(path, "a") as file:
        group = file["_training_place/vars"]
        place = group["place_0000"][:]
        del group["place_0000"]
        group["place_0000"] = place[:4]
    assert len(place) == 5
    return int(place[0])


@pytest.mark.parametrize("by_callback", [True, False], ids=["by a callback", "by the epoch"])
def test_a_training_in_the_former_order_goes_on_in_it(by_callback, tmp_path):
    path, options = tmp_path / "latest.weights.h5", {"epochs": 2}
    backup = keras.callbacks.BackupAndRestore(tmp_path, save_freq=2)
    if by_callback:
        trained_rows(new_task(), backup, After(8, interrupt), **options)
    else:
        task = new_task()
        trained_rows(task, epochs=1)
        task.save_weights(path)
        options["initial_epoch"] = 1
    seed, task = without_order(path), new_task()
    if not by_callback:
        task.optimizer.build(task.trainable_variables)
        task.load_weights(path)
    found = trained_rows(task, *([backup] if by_callback else []), seed=2, **options)
    (bits,) = np.random.SeedSequence([seed, 1, 0]).generate_state(1, np.uint64)
    tf.random.set_seed(1)
    rows = tf.data.Dataset.range(len(TEXTS))
    rows = rows.shuffle(len(TEXTS), seed=int(bits) >> 1, reshuffle_each_iteration=False)
    assert found == [step.tolist() for step in rows.batch(7).as_numpy_iterator()][-len(found) :]
    assert len(found) == (2 if by_callback else STEPS)
    task.save_weights(path)
    with h5py.File(path) as file:
        assert file["_training_place/vars/place_0000"][4] == 0
    trained_rows(task, epochs=1)
    assert task._training_place.now()[0] >= 0  # a new training


@pytest.mark.slow
@pytest.mark.parametrize("moment", [moment for moment in MOMENTS if moment != "within the last epoch"])
def test_backup_and_restore_in_the_midst(moment, undisturbed, left, tmp_path):
    folder = shutil.copytree(left / moment, tmp_path / "backup")
    backup = keras.callbacks.BackupAndRestore(folder, save_freq=MOMENTS[moment][0])
    assert_goes_on(undisturbed, trained(backup, seed=2))


UNFREEZING = {
    "in the first epoch": (2, 3),
    "where a block has opened": (2, 8),
    "before the embedding opens": ("epoch", 12),
}


@pytest.fixture(scope="module")
def gradually_unfrozen():
    return trained(GradualUnfreezing(), task=make_task("texts", tokenizer=tokenizer(), run_eagerly=True))


@pytest.mark.parametrize("moment", UNFREEZING)
def test_gradual_unfreezing_resumes(gradually_unfrozen, moment, tmp_path):
    save_freq, steps = UNFREEZING[moment]

    def go(*others, **options):
        backup = keras.callbacks.BackupAndRestore(tmp_path, save_freq=save_freq)
        task = make_task("texts", tokenizer=tokenizer(), run_eagerly=True)
        return trained(backup, GradualUnfreezing(), *others, task=task, **options)

    go(After(steps, interrupt))
    assert_goes_on(gradually_unfrozen, go(seed=2))


CALLBACKS = {
    "r-drop": lambda: [RDrop()],
    "adversarial": lambda: [AdversarialTraining()],
    "logs": lambda: [TokenRate(), OptimizerLogger()],
}


@pytest.mark.slow
@pytest.mark.parametrize("callbacks", CALLBACKS)
def test_callbacks_resume(callbacks, tmp_path):
    def go(*others, **options):
        backup = keras.callbacks.BackupAndRestore(tmp_path, save_freq=2)
        return trained(backup, *CALLBACKS[callbacks](), *others, epochs=1, **options)[0]

    undisturbed = trained(*CALLBACKS[callbacks](), epochs=1)[0]
    go(After(3, interrupt))
    assert_equal(undisturbed, go(seed=2))


@pytest.mark.slow
def test_twice_in_one_epoch(undisturbed, left, tmp_path):
    """Keras's own file states epoch 0 after the second; see `BackupAndRestore._current_epoch`."""

    folder = shutil.copytree(left / "within the last epoch", tmp_path / "backup")

    def backup():
        return keras.callbacks.BackupAndRestore(folder, save_freq=2)

    trained(backup(), After(4, interrupt), seed=2)
    task, history = trained(backup(), seed=3)
    assert_goes_on(undisturbed, (task, history))
    train(task, "texts", epochs=1)
    assert task.optimizer.iterations == STEPS * (EPOCHS + 1)


@pytest.fixture(scope="module")
def checkpoint(undisturbed, left):
    return left / "2.keras"


@pytest.mark.slow
def test_model_checkpoint(undisturbed, checkpoint):
    task = keras.models.load_model(checkpoint)
    with pytest.raises(ValueError, match="equally many|one row for each text"):
        task.fit(["good"], [0, 1], initial_epoch=2)  # a mistake loses nothing
    assert_goes_on(undisturbed, trained(task=task, seed=2, initial_epoch=2))


@pytest.mark.slow
def test_a_new_training_has_its_own_seed(checkpoint):
    """What a model was trained with before must not make trainings with other seeds equal."""

    def task_of(seed):
        keras.utils.set_random_seed(seed)
        return trained(task=keras.models.load_model(checkpoint), seed=seed, epochs=1)[0]

    first, second, third = map(task_of, (4, 4, 5))
    assert_equal(first, second)
    with pytest.raises(AssertionError, match="not equal"):
        assert_equal(first, third)


@pytest.mark.slow
def test_masks_of_a_model_that_was_read_again(tmp_path):
    """With its own seed, each epoch of its life has other masks."""
    task = make_task("masks")
    task._training_place.num_epochs = 3
    task.save(tmp_path / "task.keras")
    read = keras.models.load_model(tmp_path / "task.keras")
    *_, last = read._training_place.callbacks(None, initial_epoch=0, steps_per_epoch=None)
    last.on_train_begin()
    assert read._training_place.now()[1:] == (0, 3)


@pytest.mark.slow
def test_weights_without_a_place(undisturbed, tmp_path):
    """Files of earlier versions have none; and a plain Keras model reads ours."""
    task, _ = undisturbed
    path = tmp_path / "task.weights.h5"
    task.save_weights(path)
    keras.Model(task.inputs, task.outputs).load_weights(path)
    with h5py.File(path, "a") as file:
        del file["_training_place"]
    other = new_task()
    other.optimizer.build(other.trainable_variables)
    other.load_weights(path)
    assert_equal(task, other)


@pytest.mark.slow
def test_files_that_keras_did_not_finish(undisturbed, left, tmp_path):
    """It writes the epoch after the weights, and removes both one after the other when training has ended."""
    folder = tmp_path / "backup"
    metadata = shutil.copytree(left / "epochs", folder) / "training_metadata.json"
    metadata.write_text("")
    assert_goes_on(undisturbed, trained(keras.callbacks.BackupAndRestore(folder), seed=2))
    folder.mkdir(exist_ok=True)
    metadata.write_text('{"epoch": 3, "batch": 0}')
    assert_goes_on(undisturbed, trained(keras.callbacks.BackupAndRestore(folder)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["endless", "ids", "masks", "shards", "words"])
def test_every_kind_of_data(kind, tmp_path):
    copy = tmp_path / "copy"
    undisturbed = trained(*left_after(3, tmp_path / "going on", copy, save_freq=2), kind=kind, epochs=2)
    found = trained(keras.callbacks.BackupAndRestore(copy, save_freq=2), kind=kind, seed=2, epochs=2)
    assert_goes_on(undisturbed, found)


@pytest.mark.exhaustive
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("kind", KINDS)
def test_killed_ten_times(kind, tmp_path):
    """Each process continues from the last backup of the one before."""

    def run(seed, after, *, folder):
        weights = tmp_path / f"{folder}.npz"
        command = [sys.executable, PROGRAM, kind, tmp_path / folder, weights, str(seed), str(after)]
        code = subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode
        return code, weights

    code, expected = run(1, 0, folder="undisturbed")
    assert code == 0
    generator = np.random.default_rng(len(kind))
    codes = [run(seed, generator.integers(1, 10), folder="killed")[0] for seed in range(1, 11)]
    code, found = run(11, 0, folder="killed")
    assert (codes, code) == ([-9] * 10, 0)
    with np.load(expected) as first, np.load(found) as second:
        for name in first:
            np.testing.assert_array_equal(second[name], first[name])


def test_fit_lets_go_of_the_model():
    """TensorFlow keeps the Python functions of a dataset for ever."""
    task = new_task()
    train(task, "texts", epochs=1, batch_size=35)
    reference = weakref.ref(task)
    del task
    gc.collect()
    assert reference() is None
