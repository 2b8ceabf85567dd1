import inspect

import keras
import numpy as np
import pytest

from keras_bert_layers.layers import SpanHead
from keras_bert_layers.layers.span_head import MASKED_LOGIT

# One float32 product, against float64 or in another order.
FLOAT32 = 2e-6
# bfloat16 inputs keep 8 bits.
BFLOAT16 = 0.05


@pytest.mark.parametrize("shape", [(7, 3), (3, 5, 7)])
def test_values(shape, draw, numpy_bert, named_weights):
    head = SpanHead()
    hidden = draw(*shape)
    head.build(hidden.shape)
    expected = numpy_bert.dense(named_weights(head, "head"), "head/dense", hidden)
    start_logits, end_logits = head(hidden)
    np.testing.assert_allclose(np.asarray(start_logits), expected[..., 0], atol=FLOAT32)
    np.testing.assert_allclose(np.asarray(end_logits), expected[..., 1], atol=FLOAT32)


@pytest.mark.parametrize("dtype", ["int32", "bool"])
def test_mask(dtype, draw):
    head, hidden = SpanHead(), draw(3, 5, 7)
    mask = (np.arange(15).reshape(3, 5) % 4 > 0).astype(dtype)
    for masked, plain in zip(head(hidden, answer_mask=mask), head(hidden), strict=True):
        np.testing.assert_array_equal(np.asarray(masked)[mask == 1], np.asarray(plain)[mask == 1])
        assert set(np.asarray(masked)[mask == 0].tolist()) == {MASKED_LOGIT}


def test_config():
    head = SpanHead(initializer_range=0.3, name="head")
    assert set(inspect.signature(SpanHead.__init__).parameters) - {"self", "kwargs"} <= set(head.get_config())
    assert SpanHead.from_config(head.get_config()).get_config() == head.get_config()


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_float32_under_every_policy(policy, draw):
    plain, half = SpanHead(initializer_range=0.3), SpanHead(initializer_range=0.3, dtype=policy)
    hidden = draw(3, 5, 7)
    expected = plain(hidden)
    half.build(hidden.shape)
    half.set_weights(plain.get_weights())
    for found, exact in zip(half(hidden, answer_mask=np.ones((3, 5), bool)), expected, strict=True):
        assert keras.backend.standardize_dtype(found.dtype) == "float32"
        np.testing.assert_allclose(np.asarray(found), np.asarray(exact), atol=BFLOAT16)


def test_model_of_it_is_saved_and_trains(draw, tmp_path):
    hidden, mask = draw(3, 5, 7), np.ones((3, 5), "int32")
    inputs = {"hidden": keras.Input((None, 7), name="hidden"), "mask": keras.Input((None,), dtype="int32", name="mask")}
    model = keras.Model(inputs, SpanHead()(inputs["hidden"], answer_mask=inputs["mask"]))
    assert [output.shape for output in model.output] == [(None, None), (None, None)]
    before = model.get_weights()
    model.compile("sgd", ["mse", "mse"], jit_compile=True)
    model.train_on_batch({"hidden": hidden, "mask": mask}, [np.ones((3, 5)), np.ones((3, 5))])
    assert all((old != new).all() for old, new in zip(before, model.get_weights(), strict=True))
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    for found, expected in zip(
        again({"hidden": hidden, "mask": mask}), model({"hidden": hidden, "mask": mask}), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_errors():
    with pytest.raises(ValueError, match="`SpanHead`: `initializer_range` must be greater than 0"):
        SpanHead(initializer_range=0)
