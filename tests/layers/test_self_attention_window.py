"""Local attention (`window`), computed in blocks of the sequence, beside all scores of the NumPy BERT."""

import keras
import numpy as np
import pytest

from keras_bert_layers.layers import RelativePositionBias, RotaryPositions, SelfAttention, TransformerEncoderBlock

# float32 products of some ten numbers and a softmax, against float64.
FLOAT32 = 5e-6
on_tensorflow = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's graphs")
# The same float32 products, of a block and its neighbours and not of the whole sequence.
BLOCKS = 2e-6
# Sums over all tokens of such products; relative to the largest of a gradient.
GRADIENT = 5e-6
# Two LayerNorms more, of the same float32 sums in another order.
NORMED = 1e-5
# Right and left padding, and a gap longer than the reach of the windows below, with a text on either side.
MASK = np.array([[1] * 23, [1] * 9 + [0] * 14, [0] * 14 + [1] * 9, [1] * 6 + [0] * 9 + [1] * 8], "int32")
REAL = MASK.astype(bool)
# Several texts in a row: longer than the window, of one token, and equal to a window of 6; then padding.
TEXTS = np.array([[1] * 11 + [2] + [3] * 6 + [4] * 5, [1] * 3 + [2] * 14 + [0] * 6], "int32")
POSITIONS = {
    "no positions": lambda: None,
    "rotary": lambda: RotaryPositions(base=50.0, max_sequence_length=70),
    "halves": lambda: RotaryPositions(base=50.0, max_sequence_length=70, halves=True),
    "relative": lambda: RelativePositionBias(num_buckets=8, max_distance=3, initializer_range=0.4),
}
# Positions and causality, each of them with and without the other.
PARTS = [
    ("no positions", False),
    ("no positions", True),
    ("rotary", False),
    ("halves", True),
    ("relative", False),
    ("relative", True),
]
SAMPLED = (1, 2, 3, 5, 8, 13)


def make(window, positions="no positions", **kwargs):
    keras.utils.set_random_seed(3)
    layer = SelfAttention(2, window=window, positions=POSITIONS[positions](), initializer_range=0.4, **kwargs)
    layer.build((None, None, 8))
    return layer


def make_block(window, positions="no positions", **kwargs):
    keras.utils.set_random_seed(3)
    options = {"dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.4, **kwargs}
    return TransformerEncoderBlock(2, 11, window=window, positions=POSITIONS[positions](), **options)


def with_all_scores(layer, *args, **options):
    """What the same layer gives from the scores of all pairs of tokens."""
    return layer(*args, return_attention_scores=True, **options)[0]


def turn(vector, position, halves):
    """The point of each pair of columns as a complex number, turned by its angle."""
    pairs = len(vector) // 2
    first, second = (vector[:pairs], vector[pairs:]) if halves else (vector[0::2], vector[1::2])
    turned = (first + 1j * second) * np.exp(1j * position * 50.0 ** (-np.arange(pairs) / pairs))
    parts = [turned.real, turned.imag]
    return np.concatenate(parts) if halves else np.stack(parts, axis=-1).ravel()


def reference_options(layer):
    """The positions of a layer, for the NumPy BERT."""
    part = layer.positions
    if isinstance(part, RotaryPositions):
        return {"rotate": lambda vector, position: turn(vector, position, part.halves)}
    if isinstance(part, RelativePositionBias):
        numbers = np.asarray(part.bucket_bias, "float64")
        return {"added": lambda head, distance: numbers[part.buckets(distance), head]}
    return {}


@pytest.mark.parametrize(
    "window",
    [window if window in SAMPLED else pytest.param(window, marks=pytest.mark.exhaustive) for window in range(1, 21)],
)
def test_values(window, draw, numpy_bert, named_weights):
    """Sequences of one token, shorter than a window, up to those that are computed as a whole, and in blocks."""
    layer, reach = make(window), max(window // 2, 1)
    weights = named_weights(layer, "a")
    for length in sorted({1, window, 3 * reach, 3 * reach + 1, 4 * reach, 5 * reach + reach // 2}):
        hidden = draw(1, length, 8)
        mask = np.ones((1, length), "int32")
        expected, expected_scores = numpy_bert.attend(weights, "a", hidden, mask, 2, window=window)
        np.testing.assert_allclose(np.asarray(layer(hidden)), expected, atol=FLOAT32, err_msg=str(length))
        output, scores = layer(hidden, return_attention_scores=True)
        np.testing.assert_allclose(np.asarray(output), expected, atol=FLOAT32, err_msg=str(length))
        np.testing.assert_allclose(np.asarray(scores), expected_scores, atol=FLOAT32, err_msg=str(length))


@pytest.mark.parametrize(("positions", "causal"), PARTS)
def test_positions_and_padding(positions, causal, draw, numpy_bert):
    layer = make(6, positions, causal=causal)
    hidden = draw(4, 23, 8)
    weights = {weight.path.replace(layer.name, "a"): np.asarray(weight) for weight in layer.weights}
    options = {"window": 6, "causal": causal, **reference_options(layer)}
    expected, _ = numpy_bert.attend(weights, "a", hidden, MASK, 2, **options)
    for mask in (MASK, REAL):
        np.testing.assert_allclose(np.asarray(layer(hidden, mask))[REAL], expected[REAL], atol=FLOAT32)
    np.testing.assert_allclose(np.asarray(with_all_scores(layer, hidden, MASK))[REAL], expected[REAL], atol=FLOAT32)
    first = np.asarray(layer(hidden, MASK, first_token_only=True))
    np.testing.assert_allclose(first[REAL[:, 0]], expected[REAL[:, 0], 0], atol=FLOAT32)


@pytest.mark.parametrize(("positions", "causal"), [("rotary", False), ("relative", True)])
def test_packed_rows(positions, causal, draw):
    layer = make(6, positions, causal=causal)
    hidden = draw(2, 23, 8)
    together = np.asarray(layer(hidden, TEXTS, packed_rows=True))
    for row, texts in enumerate(TEXTS):
        for number in range(1, texts.max() + 1):
            alone = np.asarray(with_all_scores(layer, hidden[row : row + 1, texts == number]))
            np.testing.assert_allclose(together[row, texts == number], alone[0], atol=BLOCKS, err_msg=f"text {number}")
    np.testing.assert_array_equal(np.asarray(layer(hidden, packed_rows=True)), np.asarray(layer(hidden)))


def test_contract(check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: SelfAttention(
            2,
            window=4,
            use_bias=False,
            positions=RelativePositionBias(num_buckets=8, max_distance=3, name="positions"),
            initializer_range=0.4,
            **kwargs,
        ),
        {"hidden": draw(2, 11, 8), "padding_mask": np.array([[1] * 11, [1] * 5 + [0] * 6], "int32")},
        output_shape=(2, 11, 8),
        num_weights=3,
        tmp_path=tmp_path,
        places=np.array([[True] * 11, [True] * 5 + [False] * 6]),
    )


def test_padding_content_changes_nothing(draw):
    layer = make(6)
    hidden = draw(4, 23, 8)
    before = np.asarray(layer(hidden, MASK))
    hidden[~REAL] = 1000.0
    np.testing.assert_array_equal(np.asarray(layer(hidden, MASK))[REAL], before[REAL])


@pytest.mark.parametrize(
    ("dtype", "positions"),
    [("mixed_float16", "relative"), ("mixed_bfloat16", "rotary"), ("float16", "rotary"), ("bfloat16", "relative")],
)
def test_half_precision_is_finite(dtype, positions, draw):
    """Also in blocks, and in rows, of only padding."""
    layer = make(6, positions, dtype=dtype)
    for mask in (MASK, 0 * MASK):
        output = layer(5 * draw(4, 23, 8), mask)
        assert keras.backend.standardize_dtype(output.dtype) == dtype.removeprefix("mixed_")
        assert np.isfinite(np.asarray(keras.ops.cast(output, "float32"))).all()


@pytest.mark.parametrize(
    ("positions", "causal", "mask"),
    [("no positions", True, MASK), ("rotary", False, MASK), ("relative", False, MASK), ("relative", True, TEXTS)],
)
def test_gradients(positions, causal, mask, draw):
    import tensorflow as tf

    layer, packed = make(6, positions, causal=causal), mask is TEXTS
    hidden, slopes = tf.constant(draw(len(mask), 23, 8)), draw(len(mask), 23, 8) * (mask > 0)[..., None]

    def gradients(run, *args):
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            loss = tf.reduce_sum(run(*args, hidden, mask, packed_rows=packed) * slopes)
        return all_gradients(tape, loss, hidden, layer)

    for ours, theirs in zip(gradients(layer), gradients(with_all_scores, layer), strict=True):
        assert np.abs(theirs).max() > 0.1
        np.testing.assert_allclose(ours, theirs, atol=GRADIENT * np.abs(theirs).max())


def all_gradients(tape, loss, hidden, layer):
    """The gradients for a layer's input and its weights, dense."""
    import tensorflow as tf

    found = tape.gradient(loss, [hidden, *[weight.value for weight in layer.trainable_weights]])
    return [tf.convert_to_tensor(gradient) for gradient in found]


@on_tensorflow
@pytest.mark.parametrize(
    ("packed", "positions"), [pytest.param(False, "rotary", marks=pytest.mark.slow), (True, "relative")]
)
def test_padding_free_of_any_length(packed, positions, draw):
    """One graph, in which TensorFlow does not know the length, for rows in one block and in several."""
    import tensorflow as tf

    block = make_block(6, positions)
    block.packed_rows = packed
    numbers = np.concatenate([TEXTS, [[1] * 7 + [0] * 16]]).astype("int32") if packed else MASK
    hidden = draw(len(numbers), 23, 8)
    specs = [tf.TensorSpec([None, None, 8], "float32"), tf.TensorSpec([None, None], "int32")]

    @tf.function(input_signature=specs)
    def run(hidden, mask):
        return block(hidden, mask), block(hidden, mask, first_token_only=True)

    for length in (1, 5, 9, 10, 23):
        mask = numbers[:, :length]
        expected = np.asarray(with_all_scores(block, hidden[:, :length], mask))
        found, first = run(hidden[:, :length], mask)
        np.testing.assert_allclose(np.asarray(found)[mask > 0], expected[mask > 0], atol=NORMED, err_msg=str(length))
        has_first = mask[:, 0] > 0
        np.testing.assert_allclose(np.asarray(first)[has_first], expected[has_first, 0], atol=NORMED)
    assert run(hidden[:0], numbers[:0])[0].shape == (0, 23, 8)


@on_tensorflow
@pytest.mark.parametrize("in_graph", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_rematerialization(in_graph, draw):
    """The same output and gradients, with dropout, also without padding in a graph."""
    import tensorflow as tf

    hidden, slopes = tf.constant(draw(4, 23, 8)), draw(4, 23, 8) * REAL[..., None]
    found = []
    for rematerialize in (False, True):
        block = make_block(6, "relative", dropout=0.3, attention_dropout=0.3)
        block.build((None, None, 8))
        block.rematerialize = rematerialize

        def step(hidden, mask, block=block):
            with tf.GradientTape() as tape:
                tape.watch(hidden)
                loss = tf.reduce_sum(block(hidden, mask, training=True) * slopes)
            return [loss, *all_gradients(tape, loss, hidden, block)]

        found.append([np.asarray(value) for value in (tf.function(step) if in_graph else step)(hidden, MASK)])
    for plain, again in zip(*found, strict=True):
        np.testing.assert_allclose(again, plain, atol=GRADIENT * max(1, np.abs(plain).max()))


def largest_tensor(function, *specs):
    """How many elements the largest tensor has in the graph of a function, all of whose shapes are known."""
    import tensorflow as tf

    operations = tf.function(function).get_concrete_function(*specs).graph.get_operations()
    shapes = [output.shape for operation in operations for output in operation.outputs]
    return max(shape.num_elements() or 0 for shape in shapes if shape.rank is not None)


@on_tensorflow
def test_no_tensor_grows_with_the_square_of_the_length():
    """In the output and the gradients, with a mask, of packed rows too."""
    import tensorflow as tf

    specs = [tf.TensorSpec([1, 1024, 8], "float32"), tf.TensorSpec([1, 1024], "int32")]
    largest = {}
    for window in (16, None):
        layer = SelfAttention(2, window=window, positions=RelativePositionBias())
        layer.build((None, None, 8))

        def step(hidden, mask, layer=layer):
            with tf.GradientTape() as tape:
                tape.watch(hidden)
                loss = tf.reduce_sum(layer(hidden, mask) + layer(hidden, mask, packed_rows=True))
            return all_gradients(tape, loss, hidden, layer)

        largest[window] = largest_tensor(step, *specs)
    assert largest[None] == 2 * 1024 * 1024
    assert largest[16] == 2 * 1024 * 24  # each block of 8 queries has 24 keys
