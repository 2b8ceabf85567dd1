"""`OptimizerLogger`, on the backend that KERAS_BACKEND names."""

import csv

import keras
import numpy as np
import pytest

from keras_bert_layers.optimizers import OptimizerLogger, WarmupLinearDecay, adamw, lamb

X = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
Y = 3 * X @ np.array([[1.0], [-2.0], [0.5]], "float32")
# Float32 roundings of a norm of some ten numbers.
ROUNDING = 1e-5
_ERROR = -2 * np.float64(Y) / len(X)
FIRST_NORM = np.sqrt(np.sum((X.T @ _ERROR) ** 2) + np.sum(_ERROR) ** 2)  # of all rows, where the weights are 0


class Recorder(keras.callbacks.Callback):
    """Keeps the logs, and the norm of the gradients at the weights before each step, in float64."""

    def on_train_begin(self, logs=None):
        self.steps, self.norms = [], []

    def on_train_batch_begin(self, batch, logs=None):
        if keras.backend.backend() == "jax":
            self.model.jax_state_sync()
        kernel, bias = (np.float64(weight) for weight in self.model.get_weights())
        x, y = X[2 * batch : 2 * batch + 2], Y[2 * batch : 2 * batch + 2]
        error = 2 * (x @ kernel + bias - y) / len(x)
        self.norms.append(np.sqrt(np.sum((x.T @ error) ** 2) + np.sum(error) ** 2))

    def on_train_batch_end(self, batch, logs=None):
        self.steps.append(dict(logs))


def linear_model(optimizer):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(optimizer, "mse")
    return model


@pytest.mark.parametrize("kind", [adamw, lamb])
def test_each_step(kind):
    model = linear_model(kind(WarmupLinearDecay(0.1, 8, num_warmup_steps=2), clip_norm=0.5))
    recorder = Recorder()
    model.fit(X, Y, batch_size=2, shuffle=False, verbose=0, callbacks=[OptimizerLogger(each_step=True), recorder])
    np.testing.assert_allclose([step["gradient_norm"] for step in recorder.steps], recorder.norms, rtol=ROUNDING)
    rates = [step["learning_rate"] for step in recorder.steps]
    np.testing.assert_allclose(rates, [0.05, 0.1, 0.5 / 6, 0.4 / 6], rtol=ROUNDING)


def test_epochs_reach_history_and_files(tmp_path):
    model, recorder = linear_model(adamw(0.01)), Recorder()
    file = tmp_path / "log.csv"
    callbacks = [OptimizerLogger(), keras.callbacks.CSVLogger(file), recorder]
    history = model.fit(X, Y, batch_size=2, epochs=2, shuffle=False, verbose=0, callbacks=callbacks).history
    np.testing.assert_allclose(history["gradient_norm"], recorder.norms[3::4], rtol=ROUNDING)
    np.testing.assert_allclose(history["learning_rate"], [0.01, 0.01], rtol=ROUNDING)
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    assert [float(row["gradient_norm"]) for row in rows] == history["gradient_norm"]
    assert "gradient_norm" not in recorder.steps[0]


def test_accumulated_batches_have_the_norm_of_their_mean():
    model = linear_model(adamw(0.01, gradient_accumulation_steps=4))
    history = model.fit(X, Y, batch_size=2, shuffle=False, verbose=0, callbacks=[OptimizerLogger()]).history
    np.testing.assert_allclose(history["gradient_norm"], [FIRST_NORM], rtol=ROUNDING)


def test_optimizers_of_keras_have_a_rate_alone():
    history = linear_model("sgd").fit(X, Y, verbose=0, callbacks=[OptimizerLogger()]).history
    assert sorted(history) == ["learning_rate", "loss"]


def test_loss_scaling():
    model = linear_model(keras.optimizers.LossScaleOptimizer(adamw(0.01), initial_scale=4.0))
    history = model.fit(X, Y, batch_size=8, verbose=0, callbacks=[OptimizerLogger()]).history
    np.testing.assert_allclose(history["gradient_norm"], [FIRST_NORM], rtol=ROUNDING)


def test_parts_of_an_optimizer_have_their_names():
    parts = keras.optimizers.SGD(0.5, name="plain"), lamb(0.01)
    optimizer = keras.optimizers.MultiOptimizer(keras.optimizers.OptimizerMap(parts[0], {".*kernel": parts[1]}))
    history = linear_model(optimizer).fit(X, Y, batch_size=8, verbose=0, callbacks=[OptimizerLogger()]).history
    name = parts[1].name
    assert sorted(history) == sorted(["learning_rate_plain", f"learning_rate_{name}", f"gradient_norm_{name}", "loss"])
    assert history[f"gradient_norm_{name}"] == pytest.approx([np.linalg.norm(X.T @ _ERROR)])


def test_refusal():
    with pytest.raises(TypeError, match="`OptimizerLogger`: `each_step` must be True or False"):
        OptimizerLogger(each_step=3)
