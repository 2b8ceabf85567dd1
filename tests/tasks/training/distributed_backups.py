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
import warnings
from pathlib import Path

import keras
from distributed_setup import BATCH_SIZE, CONFIG, TOKENS, divide_weights, means_of_squares, texts

import keras_bert_layers as kbl
from keras_bert_layers.distribution import Backup, initialize

folder, batch, model, *event = sys.argv[1:]


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
    divide_weights(int(batch), int(model))
keras.utils.set_random_seed(3)
preprocessor = kbl.BertPreprocessor(kbl.BertTokenizer(TOKENS), max_length=16)
task = kbl.BertMaskedLM(kbl.BertBackbone(CONFIG), preprocessor, seed=1)
backup = Backup(folder, save_freq=3)
callbacks = [Happens()] if folder == "-" else [backup, Happens()]
handler = signal.getsignal(signal.SIGTERM)
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    history = task.fit(texts(0), batch_size=BATCH_SIZE, epochs=3, verbose=0, callbacks=callbacks).history
assert signal.getsignal(signal.SIGTERM) == handler
found = {"history": history, "weights": means_of_squares(task), "steps": int(task.optimizer.iterations)}
print(json.dumps({**found, "warnings": [str(warning.message) for warning in warned]}))
