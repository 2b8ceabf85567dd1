import numpy as np
import tensorflow as tf

from keras_bert_layers.tasks.inputs import tags as words_and_tags
from keras_bert_layers.tasks.inputs.epochs import batches_of_rows

NAMES = ["O", "B-p", "I-p"]
WORDS = words_and_tags.as_words("Owner", [[str(n)] * n for n in range(7)])
TAGS = words_and_tags.as_tags("Owner", [[n % 3] * n for n in range(7)], WORDS, NAMES)


def batches(rows, epochs=None):
    return list(batches_of_rows(rows, batch_size=3, lengths=tf.size, epochs=epochs))


def test_batches_hold_the_same_rows_of_every_column():
    found = batches((WORDS, (TAGS, np.arange(7)), np.arange(7)))
    assert [batch[0].to_list() for batch in found] == [WORDS[begin : begin + 3].to_list() for begin in (0, 3, 6)]
    assert [batch[1][0].to_list() for batch in found] == [TAGS[begin : begin + 3].to_list() for begin in (0, 3, 6)]
    assert np.concatenate([batch[2] for batch in found]).tolist() == list(range(7))


def test_columns_that_are_none():
    texts, weights = np.array(["a", "b"], object), np.array([1.0, 2.0])
    assert [len(batch) for batch in batches((texts, None, None))] == [1]
    ((x, y, weight),) = batches((texts, None, weights))
    assert (x.numpy().tolist(), y, weight.numpy().tolist()) == ([b"a", b"b"], None, [1.0, 2.0])


def test_shuffled(make_epochs):
    epochs = make_epochs()
    orders = [np.concatenate([batch[2] for batch in batches((WORDS, TAGS, np.arange(7)), epochs)]) for _ in range(2)]
    for order in orders:
        assert sorted(order) == list(range(7))
    assert orders[0].tolist() != list(range(7))
