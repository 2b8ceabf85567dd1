"""Trainings of every task, whose data, dropout and masks are random; and a program that kills itself within one.

`python trainings.py KIND FOLDER WEIGHTS SEED STEPS` trains with a backup in FOLDER every two steps, ends itself with
SIGKILL after STEPS steps (0 for never), and writes the weights at the end to WEIGHTS.
"""

import atexit
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np

import keras_bert_layers as kbl
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.data import DocumentFiles, TextCorpus, write_shards
from keras_bert_layers.preprocessing import NextSentence, PackedTexts

TEXTS = ["good film " * (row % 4) + word for row, word in enumerate(["bad", "night", "a", "unhappy", "!"] * 7)]
LABELS = [row % 2 for row in range(len(TEXTS))]
DOCUMENTS = [["good film", "bad night", "a night !"], ["unhappy film", "good good"], ["bad", "film", "night"]] * 2
VOCABULARY = [*"[PAD] [UNK] [CLS] [SEP] [MASK]".split(), *sorted(set(" ".join(TEXTS).split()))]
STEPS, EPOCHS = 5, 3  # 35 texts in batches of 7

CLASSES = {"num_classes": 2}
TAGS = {"tag_names": ["O", "B-a", "I-a"]}
WORDS = [text.split() for text in TEXTS]
#: The task, its arguments, `x` and `y`, and the arguments of `fit`.
KINDS = {
    "texts": (kbl.BertClassifier, CLASSES, TEXTS, LABELS, {}),
    "sorted by length": (kbl.BertClassifier, CLASSES, TEXTS, LABELS, {"group_by_length": True}),
    "in order": (kbl.BertClassifier, CLASSES, TEXTS, LABELS, {"shuffle": False}),
    "endless": (kbl.BertClassifier, CLASSES, TEXTS, LABELS, {"steps_per_epoch": 4}),
    "steps at once": (kbl.BertClassifier, CLASSES, TEXTS, LABELS, {}),
    "ids": (kbl.BertClassifier, CLASSES, TEXTS, LABELS, {}),
    "dataset": (kbl.BertClassifier, CLASSES, TEXTS, LABELS, {"batch_size": None}),
    "masks": (kbl.BertMaskedLM, {}, TEXTS, None, {}),
    "documents": (kbl.BertPretrainer, {}, DOCUMENTS, None, {"batch_size": 2}),
    "shards": (kbl.BertPretrainer, {}, None, None, {}),
    "packed shards": (kbl.BertMaskedLM, {}, None, None, {}),
    "corpus": (kbl.BertPretrainer, {}, None, None, {"steps_per_epoch": 4}),
    "words": (kbl.BertTokenClassifier, TAGS, WORDS, [["O"] * len(words) for words in WORDS], {}),
    "windows": (kbl.BertQuestionAnswerer, {}, (["film ?"] * 35, TEXTS), ([0] * 35, [text[:3] for text in TEXTS]), {}),
    "choices": (kbl.BertMultipleChoice, {}, (TEXTS, [["good", "bad"]] * 35), LABELS, {}),
    "sentences": (kbl.BertSentenceEncoder, {}, (TEXTS, TEXTS[::-1]), None, {}),
    "sparse vectors": (kbl.BertSparseEncoder, {}, (TEXTS, TEXTS[::-1]), None, {}),
    "queries": (kbl.BertDualEncoder, {}, (TEXTS, TEXTS[::-1]), None, {}),
    "pairs": (kbl.BertCrossEncoder, {}, (TEXTS, TEXTS[::-1]), LABELS, {}),
}


def make_task(kind, *, tokenizer=None, run_eagerly=False, **options):
    """A task with the same initial weights each time; with a tokenizer of its own if none is given."""
    make, arguments, *_ = KINDS[kind]
    sizes = {"hidden_dim": 15, "num_layers": 1, "num_heads": 3, "intermediate_dim": 21, "max_sequence_length": 13}
    keras.utils.set_random_seed(11)
    backbone = kbl.BertBackbone(
        kbl.BertConfig(vocabulary_size=len(VOCABULARY), initializer_range=0.3, **sizes, **options)
    )
    preprocessor = kbl.BertPreprocessor(tokenizer or kbl.BertTokenizer(VOCABULARY), max_length=9)
    task = make(backbone, preprocessor=preprocessor, **arguments)
    task.compile(run_eagerly=run_eagerly, steps_per_execution=2 if kind == "steps at once" else 1)
    return task


def row_source(kind, tokenizer):
    """Rows of a few blocks, in shards of two duplicates, or made anew in each epoch."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    (folder / "text.txt").write_text("\n\n".join("\n".join(document) for document in DOCUMENTS * 4))
    documents = DocumentFiles(folder / "text.txt", separated_by="blank_lines", block_bytes=200)
    rule = PackedTexts() if kind == "packed shards" else NextSentence()
    corpus = TextCorpus(documents, tokenizer, rule=rule, max_length=9)
    return corpus if kind == "corpus" else write_shards(corpus, folder / "shards", num_duplicates=2)


def train(task, kind, callbacks=(), *, seed=1, **options):
    """Trains in a process that has some seed; returns the history."""
    *_, x, y, of_kind = KINDS[kind]
    if kind == "ids":
        x, y = {name: np.asarray(ids) for name, ids in task.preprocessor(x).items()}, np.array(y)
    elif kind == "dataset":
        x, y = tf.data.Dataset.from_tensor_slices((x, y)).batch(7), None
    elif x is None:
        x = row_source(kind, task.preprocessor.tokenizer)
    keras.utils.set_random_seed(seed)
    options = {"batch_size": 7, "epochs": EPOCHS, "verbose": 0, **of_kind, **options}
    return task.fit(x, y, callbacks=list(callbacks), **options).history


class After(keras.callbacks.Callback):
    """Calls a function after a number of steps, those that are left out included."""

    def __init__(self, steps, function):
        super().__init__()
        self.left = steps
        self.function = function

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        if not self.left:
            self.function()


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    kind, folder, weights, seed, steps = sys.argv[1:]
    task = make_task(kind)
    callbacks = [keras.callbacks.BackupAndRestore(folder, save_freq=2), After(int(steps), kill)]
    train(task, kind, callbacks, seed=int(seed), epochs=5 * EPOCHS)
    np.savez(weights, *task.get_weights())
