"""Trains small tasks on JAX in one of several processes, or on several virtual devices, and prints what came out.

    python distributed_trainings.py all process               the one that `KERAS_DISTRIBUTION_...` say
    python distributed_trainings.py few devices BATCH MODEL   BATCH x MODEL devices; weights divided by MODEL

`few` are a classifier and pretraining from shards. The last line of the output is JSON: name -> history, evaluation,
predictions, and the weights' means of squares.
"""

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import keras
from distributed_setup import BATCH_SIZE, CONFIG, TOKENS, divide_weights, means_of_squares, texts

import keras_bert_layers as kbl
from keras_bert_layers.distribution import initialize
from keras_bert_layers.preprocessing import NextSentence, PackedTexts

amount, kind, *numbers = sys.argv[1:]
numbers = [int(number) for number in numbers]


def documents(folder: str, num_texts: int) -> kbl.data.DocumentFiles:
    path = Path(folder, "documents.txt")
    path.write_text("\n".join(text + ("\n" if row % 6 == 5 else "") for row, text in enumerate(texts(2, num_texts))))
    return kbl.data.DocumentFiles(path, separated_by="blank_lines")


def trained(
    task: kbl.tasks.Task, *data: object, batch_size: int = BATCH_SIZE, epochs: int = 2, **options: object
) -> dict[str, object]:
    """What one training gives; every task is evaluated on what it was trained on."""
    history = task.fit(*data, batch_size=batch_size, epochs=epochs, verbose=0, **options).history
    evaluation = task.evaluate(*data, batch_size=batch_size, verbose=0, return_dict=True)
    weights, steps = means_of_squares(task), int(task.optimizer.iterations)
    return {"history": history, "evaluation": evaluation, "weights": weights, "steps": steps}


@contextlib.contextmanager
def rows_of_a_process() -> Iterator[list[float]]:
    """A list of the share of rows that this process computes, for each batch of `predict`."""
    shares, predict_on_batch = [], keras.Model.predict_on_batch

    def recorded(model: keras.Model, x: dict) -> object:
        ids = x["token_ids"]
        parts = {str(shard.index): len(shard.data) for shard in getattr(ids, "addressable_shards", ())} or {0: len(ids)}
        shares.append(sum(parts.values()) / len(ids))
        return predict_on_batch(model, x)

    keras.Model.predict_on_batch = recorded
    yield shares
    keras.Model.predict_on_batch = predict_on_batch


def trainings() -> dict[str, object]:
    tokenizer = kbl.BertTokenizer(TOKENS)
    found = {}

    def new(task: type[kbl.tasks.Task], padding: str = "max_length", **options: object) -> kbl.tasks.Task:
        keras.utils.set_random_seed(3)
        preprocessor = kbl.BertPreprocessor(tokenizer, max_length=16, padding=padding)
        return task(kbl.BertBackbone(CONFIG), preprocessor=preprocessor, **options)

    some = texts(0, 61)  # whole batches of 8, which two and four devices divide, and a last one of 5, which they do not
    labels = ["many" if len(text.split()) > 6 else "few" for text in some]
    classifier = new(kbl.BertClassifier, "longest", class_names=["few", "many"])
    found["classifier"] = trained(classifier, some, labels, batch_size=8, epochs=7, group_by_length=True)
    with rows_of_a_process() as shares:
        found["classifier"]["predictions"] = classifier.predict(texts(1), verbose=0).tolist()
    assert set(shares) == {1 / keras.distribution.distribution().num_processes if kind == "process" else 1}
    if amount == "all":
        found["masked language model"] = trained(new(kbl.BertMaskedLM, seed=1), texts(0))
        found["pairs without labels"] = trained(new(kbl.BertSentenceEncoder), (texts(0), texts(1)))
    with tempfile.TemporaryDirectory() as folder:
        for name, rule, task, num_texts in (
            ("pretraining from shards", NextSentence(), kbl.BertPretrainer, 50),
            ("packed rows", PackedTexts(), kbl.BertMaskedLM, 58),
        ):
            if amount == "few" and name == "packed rows":
                continue
            corpus = kbl.data.TextCorpus(documents(folder, num_texts), tokenizer, rule=rule, max_length=16)
            shards = kbl.data.write_shards(corpus, Path(folder, name))
            assert shards.num_rows == (5 * BATCH_SIZE,)
            found[name] = trained(new(task, seed=1), shards)
    return found


if kind == "process":
    assert initialize().num_processes == int(os.environ["KERAS_DISTRIBUTION_NUM_PROCESSES"])
elif numbers[1] == 1:
    assert (initialize() is None) == (numbers[0] == 1)
else:
    divide_weights(*numbers)
result = trainings()
if kind == "devices" and numbers[1] > 1:
    tasks = kbl.BertPretrainer(kbl.BertBackbone(CONFIG))
    tasks.compile()
    tasks.optimizer.build(tasks.trainable_variables)
    variables = (*tasks.trainable_variables, *tasks.optimizer.variables)
    result["bytes"] = {
        variable.path: [variable.value.addressable_shards[0].data.nbytes, variable.value.nbytes]
        for variable in variables
    }
print(json.dumps(result))
