"""`TokenRate`: the tokens that it counts, and the logs that report them."""

import keras
import pytest

from keras_bert_layers import BertClassifier, BertDualEncoder, BertSentenceEncoder
from keras_bert_layers.tasks import TokenRate

TEXTS, LABELS = ["good film", "bad", "a good night"], [1, 0, 1]
NUM_TOKENS = 6 + 2 * 3  # with [CLS] and [SEP]


@pytest.fixture(scope="module")
def task(new_backbone, preprocessor):
    task = BertClassifier(new_backbone(), 2, preprocessor=preprocessor)
    task.backbone.trainable = False  # less work in each step
    task.compile(run_eagerly=True)
    return task


def test_tokens_of_each_epoch(task, tmp_path):
    assert "tokens" not in task.test_on_batch(TEXTS, LABELS, return_dict=True)
    logged = keras.callbacks.CSVLogger(tmp_path / "log.csv")
    options = {"validation_data": (TEXTS[:2], LABELS[:2]), "validation_freq": 2, "callbacks": [TokenRate(), logged]}
    history = task.fit(TEXTS, LABELS, batch_size=2, epochs=2, verbose=0, **options).history
    assert history["tokens"] == [NUM_TOKENS, NUM_TOKENS]
    assert history["val_tokens"] == [7]
    assert min(history["tokens_per_second"]) > 0
    assert "tokens_per_second" in (tmp_path / "log.csv").read_text()


def test_tokens_of_each_step(task):
    steps = []
    told = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: steps.append(logs["tokens_per_second"])
    )
    task.fit(TEXTS, LABELS, batch_size=2, verbose=0, callbacks=[TokenRate(each_step=True), told])
    assert len(steps) == 2


@pytest.mark.parametrize("make", [BertSentenceEncoder, BertDualEncoder])
def test_tokens_of_pairs_and_of_inputs_in_parts(make, new_backbone, preprocessor):
    task = make(new_backbone(), preprocessor=preprocessor)
    task.compile(run_eagerly=True)
    TokenRate().set_model(task)
    assert task.test_on_batch((TEXTS, TEXTS[::-1]), return_dict=True)["tokens"] == 2 * NUM_TOKENS


def test_bad_arguments():
    with pytest.raises(TypeError, match="`TokenRate`: `each_step` must be True or False"):
        TokenRate(each_step=1)
    with pytest.raises(TypeError, match="`TokenRate`: `model` must be a Task"):
        TokenRate().set_model(keras.Sequential())
