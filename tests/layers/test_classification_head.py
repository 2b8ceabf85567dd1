"""Classification heads of sequences, tokens and choices beside NumPy."""

import keras
import numpy as np
import pytest

from keras_bert_layers.layers import ClassificationHead, FlattenChoices, MultipleChoiceHead, TokenClassificationHead

# One float32 product, against float64.
FLOAT32 = 2e-6
IDS = np.arange(2 * 3 * 5, dtype="int32").reshape(2, 3, 5)
MASK = np.array([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0], [0, 1, 1, 1, 1]], "int32")


def test_contract(check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: ClassificationHead(4, dropout=0.0, initializer_range=0.3, **kwargs),
        {"hidden": draw(3, 7)},
        output_shape=(3, 4),
        output_dtype="float32",
        num_weights=2,
        tmp_path=tmp_path,
    )


@pytest.mark.parametrize(
    ("kind", "sizes", "shapes"),
    [
        (ClassificationHead, [4], [(3, 7), (3, 5, 7)]),
        (TokenClassificationHead, [4], [(3, 5, 7), (11, 7), (2, 3, 5, 7)]),
        (MultipleChoiceHead, [], [(3, 7), (3, 5, 7)]),
    ],
)
def test_values(kind, sizes, shapes, draw, numpy_bert, named_weights):
    for shape in shapes:
        layer, hidden = kind(*sizes), draw(*shape)
        layer.build(hidden.shape)
        expected = numpy_bert.dense(named_weights(layer, "head"), "head/dense", hidden)
        expected = expected[..., 0] if kind is MultipleChoiceHead else expected
        np.testing.assert_allclose(np.asarray(layer(hidden)), expected, atol=FLOAT32)


@pytest.mark.parametrize(
    ("kind", "sizes", "shape"),
    [(ClassificationHead, [4], (3, 7)), (TokenClassificationHead, [4], (3, 5, 7)), (MultipleChoiceHead, [], (3, 5, 7))],
)
def test_dropout_only_in_training(kind, sizes, shape, draw):
    layer, hidden = kind(*sizes, dropout=0.5), draw(*shape)
    np.testing.assert_array_equal(np.asarray(layer(hidden)), np.asarray(layer(hidden, training=False)))
    assert np.abs(np.asarray(layer(hidden, training=True)) - np.asarray(layer(hidden))).max() > 0


def test_errors():
    with pytest.raises(ValueError, match="`ClassificationHead`: `num_classes` must be at least 1"):
        ClassificationHead(0)
    with pytest.raises(ValueError, match="`ClassificationHead`: `dropout` must be at least 0 and less than 1"):
        ClassificationHead(4, dropout=1.0)
    with pytest.raises(ValueError, match="`ClassificationHead`: `initializer_range` must be greater than 0"):
        ClassificationHead(4, initializer_range=0)


def test_token_contract(check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: TokenClassificationHead(4, dropout=0.0, initializer_range=0.3, **kwargs),
        {"hidden": draw(3, 5, 7)},
        output_shape=(3, 5, 4),
        output_dtype="float32",
        num_weights=2,
        tmp_path=tmp_path,
    )


def test_token_errors():
    with pytest.raises(ValueError, match="`TokenClassificationHead`: `num_tags` must be at least 1"):
        TokenClassificationHead(0)
    with pytest.raises(ValueError, match="`TokenClassificationHead`: `dropout` must be at least 0 and less than 1"):
        TokenClassificationHead(4, dropout=1.0)


def test_flatten_contract(check_layer, tmp_path):
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


def test_choice_contract(check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: MultipleChoiceHead(dropout=0.0, initializer_range=0.3, **kwargs),
        {"pooled": draw(3, 5, 7), "choice_mask": np.ones((3, 5), "int32")},
        output_shape=(3, 5),
        output_dtype="float32",
        num_weights=2,
        tmp_path=tmp_path,
    )


def test_absent_choices_have_no_probability_and_give_no_gradient(draw):
    tf = pytest.importorskip("tensorflow")
    layer = MultipleChoiceHead(dropout=0.0)
    pooled = tf.constant(draw(15, 7), "float32")  # as flat as it came from the backbone
    with tf.GradientTape() as tape:
        tape.watch(pooled)
        scores = layer(pooled, choice_mask=MASK)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(np.array([0, 1, 2]), scores)
    present = MASK.astype(bool)
    assert scores.shape == (3, 5)
    np.testing.assert_array_equal(np.asarray(scores)[present], np.asarray(layer(pooled))[present.ravel()])
    assert (np.asarray(keras.ops.softmax(scores))[~present] == 0).all()
    gradient = np.abs(np.asarray(tape.gradient(loss, pooled))).max(axis=-1).reshape(MASK.shape)
    assert (gradient[~present] == 0).all()
    assert (gradient[present] > 0).all()


def test_a_row_without_choices_is_finite(draw):
    scores = MultipleChoiceHead()(draw(1, 2, 7), choice_mask=np.zeros((1, 2)))
    assert np.isfinite(np.asarray(keras.ops.log_softmax(scores))).all()


def test_choice_errors():
    with pytest.raises(ValueError, match="`MultipleChoiceHead`: `dropout` must be at least 0 and less than 1"):
        MultipleChoiceHead(dropout=1.0)
    with pytest.raises(ValueError, match="`MultipleChoiceHead`: `initializer_range` must be greater than 0"):
        MultipleChoiceHead(initializer_range=0)
