"""Long rows in turns. The other algorithms are tested where `SelfAttention` is."""

import keras
import numpy as np
import pytest

from keras_bert_layers.layers import RelativePositionBias, RotaryPositions, SelfAttention, attention_kernels
from keras_bert_layers.layers.attention_kernels import LONG_ROW

# Float32 products of some ten numbers and a softmax, whose sums are in another order.
FLOAT32 = 5e-6


@pytest.mark.parametrize("as_tensors", [False, True])
def test_numbers_of_scores_that_int32_cannot_hold(as_tensors):
    sizes = {(4, 8192): True, (32, 8192): True, (1, 1024): True, (32, 128): True, (1, 512): False, (0, 0): False}
    for (batch, length), expected in sizes.items():
        read = keras.ops.convert_to_tensor if as_tensors else int
        assert bool(attention_kernels._are_many(read(batch), 12, read(length))) is expected


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="other backends have a kernel for long rows")
@pytest.mark.parametrize(
    "options",
    [
        {"positions": RotaryPositions(max_sequence_length=3 * LONG_ROW)},
        {"window": 40},
        {"window": 40, "positions": RelativePositionBias()},
    ],
    ids=["all", "near", "near with bias"],
)
def test_long_rows_in_turns(options, monkeypatch):
    """Each query has a softmax of its own, so that only the order of sums in products may differ."""
    import tensorflow as tf

    monkeypatch.setattr(attention_kernels, "_MANY_SCORES", 1000)
    layer = SelfAttention(2, initializer_range=0.5, **options)

    def outputs(hidden, mask):
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            output = layer(hidden, mask, training=False)
        return output, tape.gradient(output, hidden)

    signature = [tf.TensorSpec([None, None, 8]), tf.TensorSpec([None, None], tf.int32)]
    in_graph = tf.function(outputs, input_signature=signature)
    for length in (LONG_ROW, LONG_ROW + 1, 2 * LONG_ROW):
        hidden = np.random.default_rng(7).normal(size=(2, length, 8)).astype("float32")
        mask = (np.arange(length) < np.array([[length], [length - 300]])).astype("int32")
        tensors = tf.constant(hidden), tf.constant(mask)
        layer.reads_long_rows = False
        expected = outputs(*tensors)
        layer.reads_long_rows = True
        for run in (outputs, in_graph):
            for mine, yours in zip(run(*tensors), expected, strict=True):
                scale = max(1, np.abs(yours).max())
                np.testing.assert_allclose(mine, yours, rtol=0, atol=FLOAT32 * scale, err_msg=str(length))
