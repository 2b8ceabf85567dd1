import re

import keras
import numpy as np
import pytest

from keras_bert_layers.layers import BertEmbedding, RelativePositionBias

# float32 sums of three numbers and a LayerNorm, against float64.
FLOAT32 = 5e-6
TOKENS = np.array([[3, 16, 0, 5, 9], [1, 1, 7, 12, 2]], "int32")
SEGMENTS = np.array([[0, 0, 1, 2, 2], [0, 1, 1, 0, 0]], "int32")


def make(**kwargs):
    return BertEmbedding(
        17, 7, **{"max_sequence_length": 6, "num_segments": 3, "dropout": 0.0, "initializer_range": 0.3, **kwargs}
    )


@pytest.mark.parametrize(("embedding_dim", "num_weights"), [(None, 5), (4, 7)])
def test_contract(embedding_dim, num_weights, check_layer, tmp_path):
    check_layer(
        lambda **kwargs: make(embedding_dim=embedding_dim, **kwargs),
        {"token_ids": TOKENS, "segment_ids": SEGMENTS},
        output_shape=(2, 5, 7),
        num_weights=num_weights,
        tmp_path=tmp_path,
    )


@pytest.mark.parametrize("embedding_dim", [None, 4])
def test_values(embedding_dim, numpy_bert, named_weights):
    layer = make(embedding_dim=embedding_dim, layer_norm_epsilon=0.01)
    layer.build(TOKENS.shape)
    expected = numpy_bert.embed(named_weights(layer, "embedding"), "embedding", TOKENS, SEGMENTS, 0.01)
    np.testing.assert_allclose(np.asarray(layer(TOKENS, SEGMENTS)), expected, atol=FLOAT32)


# The id 1 is the padding's: at the start, in the middle and at the end of a row.
PADDED = np.array([[3, 16, 1, 5, 9], [1, 4, 7, 1, 1]], "int32")


@pytest.mark.parametrize("num_segments", [0, 1])
def test_relatives_contract(num_segments, check_layer, tmp_path):
    check_layer(
        lambda **kwargs: make(num_segments=num_segments, position_offset=2, **kwargs),
        {"token_ids": PADDED, "segment_ids": 0 * SEGMENTS},
        output_shape=(2, 5, 7),
        num_weights=4 + num_segments,
        tmp_path=tmp_path,
    )


@pytest.mark.parametrize(("num_segments", "position_offset"), [(0, 0), (3, 2), (0, 1)])
def test_relatives_values(num_segments, position_offset, numpy_bert, named_weights):
    layer = make(num_segments=num_segments, position_offset=position_offset, layer_norm_epsilon=0.01)
    layer.build(TOKENS.shape)
    assert tuple(layer.position_embedding.shape) == (6 + position_offset, 7)
    weights = named_weights(layer, "embedding")
    expected = numpy_bert.embed(weights, "embedding", PADDED, SEGMENTS, 0.01, position_offset)
    np.testing.assert_allclose(np.asarray(layer(PADDED, SEGMENTS)), expected, atol=FLOAT32)
    flat = layer(PADDED[0], SEGMENTS[0])
    np.testing.assert_allclose(np.asarray(flat), expected[0], atol=FLOAT32)


@pytest.mark.parametrize(("keeps", "num_weights"), [(True, 5), (False, 4)])
def test_a_position_embedding_beside_other_positions(keeps, num_weights, numpy_bert, named_weights):
    layer = make(positions=RelativePositionBias(keeps_position_embedding=keeps), layer_norm_epsilon=0.01)
    layer.build(TOKENS.shape)
    assert len(layer.weights) == num_weights
    table = None if keeps else np.zeros((6, 1))
    weights = named_weights(layer, "embedding")
    expected = numpy_bert.embed(weights, "embedding", TOKENS, SEGMENTS, 0.01, position_table=table)
    np.testing.assert_allclose(np.asarray(layer(TOKENS, SEGMENTS)), expected, atol=FLOAT32)


def test_without_biases(numpy_bert, named_weights):
    layer = make(use_bias=False, embedding_dim=4)
    layer.build(TOKENS.shape)
    weights = named_weights(layer, "embedding")
    assert not [path for path in weights if path.endswith(("bias", "beta"))]
    expected = numpy_bert.embed(weights, "embedding", TOKENS, SEGMENTS, 1e-12)
    np.testing.assert_allclose(np.asarray(layer(TOKENS, SEGMENTS)), expected, atol=FLOAT32)
    assert BertEmbedding.from_config(layer.get_config()).use_bias is False


def test_without_segments_their_ids_are_ignored():
    layer = make(num_segments=0)
    np.testing.assert_array_equal(np.asarray(layer(TOKENS, SEGMENTS + 7)), np.asarray(layer(TOKENS)))


def test_segments_default_to_zero():
    layer = make()
    np.testing.assert_array_equal(np.asarray(layer(TOKENS)), np.asarray(layer(TOKENS, np.zeros_like(TOKENS))))


def test_positions_default_to_counting():
    layer = make()
    counted = np.broadcast_to(np.arange(5, dtype="int32"), (2, 5))
    np.testing.assert_array_equal(
        np.asarray(layer(TOKENS)), np.asarray(layer(TOKENS, position_ids=np.ascontiguousarray(counted)))
    )


def test_tokens_without_a_batch_axis():
    layer = make(embedding_dim=4)
    whole = np.asarray(layer(TOKENS, SEGMENTS))
    positions = np.tile(np.arange(5, dtype="int32"), 2)
    flat = layer(TOKENS.reshape(10), SEGMENTS.reshape(10), position_ids=positions)
    np.testing.assert_allclose(np.asarray(flat), whole.reshape(10, 7), atol=FLOAT32)


def test_a_token_means_the_same_in_any_company():
    layer = make()
    before = np.asarray(layer(TOKENS))
    changed = TOKENS.copy()
    changed[:, 2] = 11
    np.testing.assert_array_equal(np.delete(np.asarray(layer(changed)), 2, axis=1), np.delete(before, 2, axis=1))


def test_equal_widths_have_no_projection():
    layer = make(embedding_dim=7)
    layer.build(TOKENS.shape)
    assert len(layer.weights) == 5


def test_the_full_length_is_allowed():
    assert tuple(make()(np.zeros((1, 6), "int32")).shape) == (1, 6, 7)


def test_too_long_a_sequence():
    text = (
        "`BertEmbedding`: `token_ids.shape` must have at most `max_sequence_length` (6) tokens per row. "
        "Received: token_ids.shape=(2, 7). Truncate the texts, or split them into windows."
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        make()(np.zeros((2, 7), "int32"))


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize(("max_sequence_length", "position_offset"), [(1, 0), (6, 0), (6, 2)])
def test_too_long_a_sequence_in_a_graph_that_does_not_know_the_length(
    max_sequence_length, position_offset, jit_compile
):
    tf = pytest.importorskip("tensorflow")
    layer = make(max_sequence_length=max_sequence_length, position_offset=position_offset)
    layer.build((None, None))
    graph = tf.function(layer, input_signature=[tf.TensorSpec((None, None), "int32")], jit_compile=jit_compile)
    assert graph(np.zeros((2, max_sequence_length), "int32")).shape == (2, max_sequence_length, 7)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"[Ss]lice|size"):
        graph(np.zeros((2, max_sequence_length + 1), "int32"))


@pytest.mark.parametrize(("ids", "kind"), [([17], "token_ids"), ([-1], "token_ids"), ([3], "segment_ids")])
def test_ids_out_of_range_on_tensorflow_on_cpu(ids, kind):
    tf = pytest.importorskip("tensorflow")
    arguments = {"token_ids": np.zeros((1, 1), "int32"), kind: np.array([ids], "int32")}
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"), tf.device("CPU"):
        make()(**arguments)


@pytest.mark.parametrize(("ids", "kind"), [([17], "token_ids"), ([-1], "token_ids"), ([3], "segment_ids")])
def test_ids_out_of_range_under_xla(ids, kind):
    tf = pytest.importorskip("tensorflow")
    layer = make()
    tokens = np.array([[0, 1, 2]], "int32")
    arguments = {"token_ids": tokens, "segment_ids": tokens, kind: np.array([[0, *ids, 1]], "int32")}
    output = np.asarray(tf.function(layer, jit_compile=True)(**arguments))
    assert np.isnan(output[:, 1]).all()
    assert np.isfinite(output[:, [0, 2]]).all()


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"max_sequence_length": 0}, ValueError, "`max_sequence_length` must be at least 1"),
        ({"num_segments": "two"}, TypeError, "`num_segments` must be an integer. Received: num_segments='two'"),
        ({"num_segments": -1}, ValueError, "`num_segments` must be at least 0"),
        ({"position_offset": -1}, ValueError, "`position_offset` must be at least 0"),
        ({"embedding_dim": 0}, ValueError, "`embedding_dim` must be at least 1"),
        ({"dropout": 1.0}, ValueError, "`dropout` must be at least 0 and less than 1"),
        ({"layer_norm_epsilon": 0}, ValueError, "`layer_norm_epsilon` must be greater than 0"),
        ({"initializer_range": -1}, ValueError, "`initializer_range` must be greater than 0"),
        ({"use_bias": 1}, TypeError, "`use_bias` must be True or False"),
        ({"positions": "none"}, TypeError, "`positions` must be a Positions"),
    ],
)
def test_errors(arguments, error, text):
    with pytest.raises(error, match=re.escape(f"`BertEmbedding`: {text}")):
        make(**arguments)
    with pytest.raises(ValueError, match="`BertEmbedding`: `vocabulary_size` must be at least 1"):
        BertEmbedding(0, 7)
    with pytest.raises(ValueError, match="`BertEmbedding`: `hidden_dim` must be at least 1"):
        BertEmbedding(17, 0)


def test_dropout_only_in_training():
    layer = make(dropout=0.5)
    np.testing.assert_array_equal(np.asarray(layer(TOKENS)), np.asarray(layer(TOKENS, training=False)))
    assert (np.asarray(layer(TOKENS, training=True)) == 0).any()


def test_the_token_matrix_is_at_hand_for_tying():
    layer = make()
    layer.build(TOKENS.shape)
    assert tuple(layer.token_embedding.shape) == (17, 7)
    assert isinstance(layer.token_embedding, keras.Variable)
