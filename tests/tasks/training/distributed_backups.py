"""Trains a masked language model on JAX with a `Backup`, and prints the losses and the means of the weights' squares.

    python distributed_backups.py FOLDER BATCH MODEL [EVENT STEP]

Runs as one of the processes that `KERAS_DISTRIBUTION_...` say, or else on BATCH x MODEL virtual devices. After STEP
steps EVENT happens: SIGTERM, SIGKILL, or "full", which fills the disk of FOLDER up. FOLDER "-" makes no backup.
"""

import contextlib
import json
import os
import signal
import sys
from pathlib import Path

folder, batch, model, *event = sys.argv[1:]
devices = int(batch) * int(model)
os.environ["KERAS_BACKEND"] = "jax"
# Compiling takes most of the time.
quick = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
os.environ["XLA_FLAGS"] = f"{quick} --xla_force_host_platform_device_count={devices}"

import keras  # noqa: E402
import numpy as np  # noqa: E402

import keras_bert_layers as kbl  # noqa: E402
from keras_bert_layers.distribution import Backup, bert_layout_map, initialize  # noqa: E402

WORDS = [f"word{number}" for number in range(50)]
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "spare"]
CONFIG = kbl.BertConfig(
    vocabulary_size=len(TOKENS), hidden_dim=16, num_layers=1, num_heads=4, intermediate_dim=32, max_sequence_length=16
)


class Happens(keras.callbacks.Callback):
    """What an operator, a cluster or a disk does."""

    def on_train_batch_end(self, batch, logs=None):
        if not event or int(self.model.optimizer.iterations) != int(event[1]):
            return
        if event[0] != "full":
            os.kill(os.getpid(), getattr(signal, event[0]))
            return
        backup._manager.wait_until_finished()
        with contextlib.suppress(OSError), Path(folder).with_name("filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1024))


if int(model) == 1:
    initialize()
else:
    mesh = keras.distribution.DeviceMesh((int(batch), int(model)), ("batch", "model"))
    spread = keras.distribution.ModelParallel(layout_map=bert_layout_map(mesh, CONFIG), batch_dim_name="batch")
    keras.distribution.set_distribution(spread)
draw = np.random.default_rng(0)
texts = [" ".join(draw.choice(WORDS, draw.integers(1, 14))) for _ in range(61)]
keras.utils.set_random_seed(3)
preprocessor = kbl.BertPreprocessor(kbl.BertTokenizer(TOKENS), max_length=16)
task = kbl.BertMaskedLM(kbl.BertBackbone(CONFIG), preprocessor, seed=1)
backup = Backup(folder, save_freq=3)
callbacks = [Happens()] if folder == "-" else [backup, Happens()]
history = task.fit(texts, batch_size=8, epochs=3, verbose=0, callbacks=callbacks).history
weights = [float(np.mean(np.square(value))) for value in map(keras.ops.convert_to_numpy, task.trainable_variables)]
print(json.dumps({"history": history, "weights": weights, "steps": int(task.optimizer.iterations)}))
