"""Keras's optimizers on embeddings whose tokens repeat, beside NumPy, on the backend that KERAS_BACKEND names.

`python tests/optimizers/on_embeddings.py tensorflow jax` prints the table of docs/reference/optimizers.md: for each
backend the largest difference with Keras's own layers, and with `BertEmbedding`. Both backends must be installed.
"""

import json
import os
import subprocess
import sys

import keras
import numpy as np
from keras import ops
from numpy_optimizers import NumpyOptimizer

from keras_bert_layers.layers import BertEmbedding

IDS = np.array([[3, 1, 1, 4, 1], [3, 3, 2, 1, 3]])
ROWS = {"vocabulary_size": 7, "num_segments": 2, "max_sequence_length": 6}
WIDTH, STEPS, RATE, EPSILON = 3, 3, 0.01, 1e-12
# Of 1,500 seeds the one whose smallest gradient is largest, 0.06: most optimizers divide a gradient by its size, which
# turns the rounding of one near zero into a step of its own.
SEED = 0
#: What is compared: the class and, after a comma, its variant; and the arguments.
CASES = {
    "Adadelta": {},
    "Adafactor": {},
    "Adagrad": {},
    "Adam": {},
    "Adam, amsgrad": {"amsgrad": True},
    "Adam, clipnorm": {"clipnorm": 0.5},
    "Adam, global_clipnorm": {"global_clipnorm": 0.5},
    "AdamW": {},
    "Adamax": {},
    "Ftrl": {"l1_regularization_strength": 0.01, "l2_regularization_strength": 0.02, "beta": 0.1},
    "Lamb": {},
    "Lion": {},
    "LossScaleOptimizer, of Adam": {},
    "MultiOptimizer, of Adam": {},
    "Muon": {},
    "Muon, embeddings too": {"exclude_embeddings": False},
    "Nadam": {},
    "RMSprop": {},
    "RMSprop, centered": {"centered": True, "momentum": 0.9},
    "SGD": {},
    "SGD, Nesterov": {"momentum": 0.9, "nesterov": True},
    "ScheduleFreeAdamW": {},
}
MODES = {
    "compiled": {"jit_compile": keras.backend.backend() != "tensorflow"},
    "eager": {"run_eagerly": True},
    "XLA": {"jit_compile": True},
}


class PlainEmbedding(keras.layers.Layer):
    """`BertEmbedding`, made of Keras's own layers."""

    def __init__(self):
        super().__init__()
        self.matrices = [keras.layers.Embedding(rows, WIDTH) for rows in ROWS.values()]
        self.norm = keras.layers.LayerNormalization(epsilon=EPSILON)

    def build(self, input_shape):
        for layer in self.matrices:
            layer.build(input_shape)
        self.norm.build((*input_shape, WIDTH))

    def call(self, token_ids, segment_ids):
        given = token_ids, segment_ids, ops.arange(IDS.shape[1])
        return self.norm(sum(layer(ids) for layer, ids in zip(self.matrices, given, strict=True)))


def bert_embedding():
    return BertEmbedding(hidden_dim=WIDTH, dropout=0.0, layer_norm_epsilon=EPSILON, **ROWS)


def optimizer_of(case):
    """Keras's optimizer, and the same in NumPy; None where this version of Keras has none."""
    name, options = case.split(",")[0], CASES[case]
    if not hasattr(keras.optimizers, name):
        return None
    if "of Adam" not in case:
        return getattr(keras.optimizers, name)(RATE, **options), NumpyOptimizer(name, RATE, **options)
    adam, reference = keras.optimizers.Adam(RATE), NumpyOptimizer("Adam", RATE)
    if name == "LossScaleOptimizer":
        return keras.optimizers.LossScaleOptimizer(adam), reference
    by_name = {".*embedding.*": keras.optimizers.Adam(RATE)}
    return keras.optimizers.MultiOptimizer(keras.optimizers.OptimizerMap(adam, by_name)), reference


def data():
    """The initial weights; and a batch for each step, `(ids, segment_ids, slopes)`, in which other tokens repeat."""
    generator = np.random.default_rng(SEED)
    weights = [generator.normal(scale=0.5, size=(rows, WIDTH)) for rows in ROWS.values()]
    weights += [1 + generator.normal(scale=0.1, size=WIDTH), generator.normal(scale=0.1, size=WIDTH)]
    slopes = [generator.normal(scale=0.3, size=(*IDS.shape, WIDTH)).astype("float32") for _ in range(STEPS)]
    return weights, [((IDS + step) % 7, IDS % 2, slopes[step]) for step in range(STEPS)]


def gradients(weights, ids, segment_ids, slopes):
    """The gradients of `sum(slopes * outputs**2)`, where each row's gradient is the sum over its tokens."""
    gamma, positions = weights[3], np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
    given = ids, segment_ids, positions
    hidden = sum(matrix[rows] for matrix, rows in zip(weights[:3], given, strict=True))  # [B, S, H]
    deviation = np.sqrt(hidden.var(axis=-1, keepdims=True) + EPSILON)
    normal = (hidden - hidden.mean(axis=-1, keepdims=True)) / deviation
    outer = 2 * slopes * (normal * gamma + weights[4])
    inner = outer * gamma
    inner = inner - inner.mean(axis=-1, keepdims=True) - normal * (inner * normal).mean(axis=-1, keepdims=True)
    found = [np.zeros_like(matrix) for matrix in weights[:3]]
    for gradient, rows in zip(found, given, strict=True):
        np.add.at(gradient, rows, inner / deviation)
    return [*found, (outer * normal).sum(axis=(0, 1)), outer.sum(axis=(0, 1))]


def largest_difference(case, layer, **mode):
    """The largest difference between weights that Keras and NumPy have trained for a few steps; None: no optimizer."""
    if (found := optimizer_of(case)) is None:
        return None
    optimizer, reference = found
    layer.padding_free = not mode.get("jit_compile", False)  # as a task sets it
    inputs = [keras.Input(IDS.shape[1:], dtype="int32") for _ in range(2)]
    model = keras.Model(inputs, layer(inputs[0], segment_ids=inputs[1]))
    # Not linear: TensorFlow 2.21 may update a weight before it reads it, where no gradient depends on its value.
    model.compile(optimizer, lambda slopes, outputs: ops.sum(slopes * outputs**2), **mode)
    weights, batches = data()
    layer.set_weights(weights)
    optimizer.build(model.trainable_variables)  # as a task does, and not while the first step is traced
    for ids, segment_ids, slopes in batches:
        model.train_on_batch([ids, segment_ids], slopes)
        weights = reference.apply(gradients(weights, ids, segment_ids, slopes), weights)
    differences = [np.abs(a - b).max() for a, b in zip(layer.get_weights(), weights, strict=True)]
    return float(max(differences))


def main(backends):
    if not backends:
        for case in CASES:
            layers = PlainEmbedding(), bert_embedding()
            print(json.dumps([case, *(largest_difference(case, layer, **MODES["compiled"]) for layer in layers)]))
        return
    columns = []
    for backend in backends:
        environment = {**os.environ, "KERAS_BACKEND": backend}
        lines = subprocess.run(
            [sys.executable, __file__], env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        columns.append([json.loads(line) for line in lines.stdout.splitlines()])
    for rows in zip(*columns, strict=True):
        print("|", " | ".join([rows[0][0], *(f"{number:.0e}" for row in rows for number in row[1:])]), "|")


if __name__ == "__main__":
    main(sys.argv[1:])
