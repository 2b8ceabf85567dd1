import keras
import numpy as np

from keras_bert_layers.layers import FlattenChoices, MultipleChoiceHead

IDS = np.arange(2 * 3 * 5, dtype="int32").reshape(2, 3, 5)


def test_contract(check_layer, tmp_path):
    check_layer(
        FlattenChoices,
        {"ids": IDS},
        output_shape=(6, 5),
        output_dtype="int32",
        num_weights=0,
        tmp_path=tmp_path,
    )


def test_rows_keep_their_choices_together():
    np.testing.assert_array_equal(np.asarray(FlattenChoices()(IDS)), np.concatenate(IDS))


def test_the_head_brings_the_choices_back():
    flat = keras.ops.cast(FlattenChoices()(IDS), "float32")
    head = MultipleChoiceHead(dropout=0.0)
    scores = np.asarray(head(flat, choice_mask=np.ones((2, 3))))
    np.testing.assert_array_equal(scores, np.asarray(head(flat)).reshape(2, 3))
