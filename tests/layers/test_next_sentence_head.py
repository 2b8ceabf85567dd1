import numpy as np
import pytest

from keras_bert_layers.layers import NextSentenceHead

# One float32 product, against float64.
FLOAT32 = 2e-6


def test_contract(check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: NextSentenceHead(initializer_range=0.3, **kwargs),
        {"pooled": draw(3, 7)},
        output_shape=(3, 2),
        output_dtype="float32",
        num_weights=2,
        tmp_path=tmp_path,
    )


@pytest.mark.parametrize("shape", [(3, 7), (2, 5, 7)])
def test_values(draw, numpy_bert, named_weights, shape):
    layer = NextSentenceHead()
    pooled = draw(*shape)
    layer.build(pooled.shape)
    expected = numpy_bert.dense(named_weights(layer, "head"), "head/dense", pooled)
    np.testing.assert_allclose(np.asarray(layer(pooled)), expected, atol=FLOAT32)


def test_errors():
    with pytest.raises(ValueError, match="`NextSentenceHead`: `initializer_range` must be greater than 0"):
        NextSentenceHead(initializer_range=0)
