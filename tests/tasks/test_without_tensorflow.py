"""Strings in and answers out on JAX and torch where TensorFlow is not installed, beside TensorFlow."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import trainings

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_graph")]

KINDS = ("texts", "sentences", "pairs", "words", "windows", "masks")
# Other products of float32, and what the steps of Adam make of them.
TOLERANCE = 1e-5
# TensorFlow is hidden, and tensorflow-text.
PROGRAM = """
import gc, sys
gc.set_threshold(100_000, 10, 100)  # tracing makes millions of objects that live as long as their graph
sys.modules.update(tensorflow=None, tensorflow_text=None)
from pathlib import Path
from test_without_tensorflow import KINDS, run
for kind in KINDS:
    run(kind, Path(sys.argv[1]), sys.argv[2])
"""


def asked(kind):
    """Texts that the task answers."""
    *_, x, _, _ = trainings.KINDS[kind]
    if kind == "masks":
        return [f"{text} [MASK]" for text in x[:8]]
    return trainings.TEXTS if kind == "words" else x[0] if kind == "sentences" else x


def run(kind, folder, name):
    """Predicts, trains, evaluates, answers and saves, from the weights of a `.keras` file."""
    *_, x, y, _ = trainings.KINDS[kind]
    task = keras.models.load_model(folder / f"{kind}.keras")
    before = task.predict(x if kind == "words" else asked(kind), verbose=0)
    keras.utils.set_random_seed(1)
    losses = []
    follow = keras.callbacks.LambdaCallback(on_train_batch_end=lambda step, logs: losses.append(logs["loss"]))
    task.fit(x, y, batch_size=7, epochs=2, verbose=0, callbacks=[follow])
    losses.append(task.evaluate(x, y, batch_size=7, verbose=0, return_dict=True)["loss"])
    task.save(folder / f"{kind}-{name}.keras")
    answers = task.answer(asked(kind))
    np.savez(
        folder / f"{kind}-{name}.npz",
        losses=np.array(losses, np.float64),
        **{f"before/{place}": array for place, array in enumerate(keras.tree.flatten(before))},
        **{f"answer/{key}": array.astype(str) if array.dtype == object else array for key, array in answers.items()},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory, eagerly):
    """The tasks, and what TensorFlow makes of them, eagerly: its graphs are not what is tested here."""
    folder = tmp_path_factory.mktemp("tasks")
    with eagerly():
        for kind in KINDS:
            trainings.make_task(kind, dropout=0.0, attention_dropout=0.0).save(folder / f"{kind}.keras")
            run(kind, folder, "tensorflow")
    return folder


@pytest.fixture(scope="module", params=["jax", "torch"])
def backend(request, folder):
    """The name of a backend, with which all tasks were run."""
    pytest.importorskip(request.param)
    paths = [*map(str, (Path(__file__).parent, Path(trainings.__file__).parent)), os.environ.get("PYTHONPATH", "")]
    variables = {**os.environ, "KERAS_BACKEND": request.param, "PYTHONPATH": os.pathsep.join(paths)}
    # Most of the time is that of its compiler.
    variables["XLA_FLAGS"] = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    subprocess.run([sys.executable, "-c", PROGRAM, str(folder), request.param], env=variables, check=True)
    return request.param


def results(folder, kind, name):
    """What `run` has stored."""
    with np.load(folder / f"{kind}-{name}.npz") as arrays:
        return dict(arrays)


def in_common(ours, theirs):
    """Both without the columns that only the wider one has: JAX pads to one of a few widths."""
    size = tuple(map(slice, np.minimum(ours.shape, theirs.shape)))
    return ours[size], theirs[size]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_numbers(folder, backend, kind):
    found, expected = results(folder, kind, backend), results(folder, kind, "tensorflow")
    assert list(found) == list(expected)
    for name in found:
        ours, theirs = in_common(found[name], expected[name])
        if ours.dtype.kind == "f":
            atol = 1e-3 if name.startswith("answer") else TOLERANCE  # after the training
            np.testing.assert_allclose(ours, theirs, atol=atol, rtol=TOLERANCE)
        elif kind != "windows":  # whose texts repeat their words: the best answers have equal scores
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize("kind", KINDS)
def test_what_it_writes_is_read_on_tensorflow(folder, backend, kind):
    answers = keras.models.load_model(folder / f"{kind}-{backend}.keras").answer(asked(kind))
    expected = results(folder, kind, backend)
    for name, values in answers.items():
        ours, theirs = in_common(values, expected[f"answer/{name}"])
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, atol=1e-6, rtol=TOLERANCE)
        elif kind != "windows":
            np.testing.assert_array_equal(ours, theirs)
