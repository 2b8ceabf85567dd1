"""What programs of several processes or virtual devices share: a small encoder, random texts, and their devices.

The environment has `KERAS_BACKEND=jax`, and the devices in `XLA_FLAGS`; see `devices` in processes.py.
"""

import keras
import numpy as np

import keras_bert_layers as kbl
from keras_bert_layers.distribution import bert_layout_map

WORDS = [f"word{number}" for number in range(50)]
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "spare"]
CONFIG = kbl.BertConfig(
    vocabulary_size=len(TOKENS), hidden_dim=16, num_layers=1, num_heads=4, intermediate_dim=32, max_sequence_length=16
)
# Two and four devices divide no batch. All have as many rows, as XLA compiles a step for each number of them.
BATCH_SIZE, NUM_ROWS = 7, 56


def texts(seed: int, num_rows: int = NUM_ROWS) -> list[str]:
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(WORDS, draw.integers(1, 14))) for _ in range(num_rows)]


def divide_weights(batch: int, model: int) -> None:
    """Divides batches among `batch` groups of `model` devices, and the weights among those of a group."""
    mesh = keras.distribution.DeviceMesh((batch, model), ("batch", "model"))
    spread = keras.distribution.ModelParallel(layout_map=bert_layout_map(mesh, CONFIG), batch_dim_name="batch")
    keras.distribution.set_distribution(spread)


def means_of_squares(task: kbl.tasks.Task) -> list[float]:
    return [float(np.mean(np.square(value))) for value in map(keras.ops.convert_to_numpy, task.trainable_variables)]
