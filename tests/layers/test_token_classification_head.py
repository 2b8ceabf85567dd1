import numpy as np
import pytest

from keras_bert_layers.layers import TokenClassificationHead

# One float32 product, against float64.
FLOAT32 = 2e-6


def test_contract(check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: TokenClassificationHead(4, dropout=0.0, initializer_range=0.3, **kwargs),
        {"hidden": draw(3, 5, 7)},
        output_shape=(3, 5, 4),
        output_dtype="float32",
        num_weights=2,
        tmp_path=tmp_path,
    )


@pytest.mark.parametrize("shape", [(3, 5, 7), (11, 7), (2, 3, 5, 7)])
def test_values(shape, draw, numpy_bert, named_weights):
    layer = TokenClassificationHead(4)
    hidden = draw(*shape)
    layer.build(hidden.shape)
    expected = numpy_bert.dense(named_weights(layer, "head"), "head/dense", hidden)
    np.testing.assert_allclose(np.asarray(layer(hidden)), expected, atol=FLOAT32)


def test_dropout_only_in_training(draw):
    layer = TokenClassificationHead(4, dropout=0.5)
    hidden = draw(3, 5, 7)
    np.testing.assert_array_equal(np.asarray(layer(hidden)), np.asarray(layer(hidden, training=False)))
    assert np.abs(np.asarray(layer(hidden, training=True)) - np.asarray(layer(hidden))).max() > 0


def test_errors():
    with pytest.raises(ValueError, match="`TokenClassificationHead`: `num_tags` must be at least 1"):
        TokenClassificationHead(0)
    with pytest.raises(ValueError, match="`TokenClassificationHead`: `dropout` must be at least 0 and less than 1"):
        TokenClassificationHead(4, dropout=1.0)
