"""Padding-free layers beside padded ones: the same numbers, from less work."""

import keras
import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertConfig
from keras_bert_layers.layers import SequencePooling, TransformerEncoderBlock
from keras_bert_layers.layers.padding_free import PaddingFreeLayer, real_tokens_of

pytestmark = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="padding is left out on TensorFlow")

MASK = np.array([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0], [1, 0, 1, 1, 0, 0, 0]], "int32")
REAL = MASK.astype(bool)
# Rows of one matrix product, computed among fewer rows: float32 sums of some ten numbers in another order.
FLOAT32 = 2e-6
# The same through two blocks, in gradients that sum over all tokens.
GRADIENT = 2e-5
UNEQUAL = [[1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0, 0]]
UNEQUAL = np.array(UNEQUAL, "int32")


def traced(function, *arrays):
    """A function as a TensorFlow graph whose batch and sequence are open."""
    import tensorflow as tf

    # A new function each time: one that was traced before would not be traced again.
    specs = [tf.TensorSpec([None, None, *array.shape[2:]], array.dtype) for array in arrays]
    return tf.function(lambda *args: function(*args), input_signature=specs)  # noqa: PLW0108


def graph(function, *arrays):
    """Runs a function in such a graph."""
    return traced(function, *arrays)(*arrays)


def both_ways(model, function, *arrays):
    """What a function gives in a graph, padding-free and padded."""
    found = []
    for padding_free in (True, False):
        model.padding_free = padding_free
        found.append(keras.tree.map_structure(np.asarray, graph(function, *arrays)))
    return found


def make_backbone(config=None, **changes):
    keras.utils.set_random_seed(3)
    values = {"num_layers": 2, "num_heads": 3, "intermediate_dim": 22, "initializer_range": 0.3, "dropout": 0.0}
    values |= {"vocabulary_size": 31, "hidden_dim": 12, "max_sequence_length": 9, "attention_dropout": 0.0}
    return BertBackbone(BertConfig(**values | (config or {})), **changes)


@pytest.fixture(scope="module")
def ids():
    rng = np.random.default_rng(5)
    return [rng.integers(1, 31, MASK.shape).astype("int32"), rng.integers(0, 2, MASK.shape).astype("int32"), MASK]


def call(backbone, **options):
    names = ("token_ids", "segment_ids", "padding_mask")
    return lambda *args: backbone(dict(zip(names, args, strict=True)), **options)


@pytest.fixture(scope="module")
def outputs_of(ids):
    """A padding-free backbone as one graph, for batches of all sizes."""
    return traced(call(make_backbone()), *ids)


def test_real_tokens_of_a_mask():
    real = real_tokens_of(keras.ops.convert_to_tensor(MASK))
    assert np.asarray(real.indices).tolist() == [*range(7), 7, 8, 9, 14, 21, 23, 24]
    padded = np.arange(28 * 2).reshape(4, 7, 2).astype("float32")
    tokens = real.select(keras.ops.convert_to_tensor(padded))
    again = np.asarray(real.pad(tokens))
    np.testing.assert_array_equal(again[REAL], padded[REAL])
    np.testing.assert_array_equal(again[:, 0], padded[:, 0])
    np.testing.assert_array_equal(np.asarray(real.first(tokens)), padded[:, 0])
    # In the place of padding stands a token of the same row: a row of padding never meets another row's text.
    assert all(np.isin(again[row], padded[row]).all() for row in range(4))


def test_only_in_graphs_and_with_a_mask():
    skips_padding = PaddingFreeLayer()._skips_padding
    assert skips_padding(keras.KerasTensor(MASK.shape, "int32"))
    assert not skips_padding(keras.ops.convert_to_tensor(MASK))
    assert not skips_padding(None)


@pytest.mark.slow
def test_eager_calls_and_fixed_shapes(ids):
    import tensorflow as tf

    backbone = make_backbone()
    expected = graph(call(backbone), *ids)["sequence_output"].numpy()
    np.testing.assert_allclose(call(backbone)(*ids)["sequence_output"].numpy()[REAL], expected[REAL], atol=FLOAT32)
    for jit_compile in (False, True):  # XLA pads on its own, and is right
        fixed = tf.function(lambda *args: call(backbone)(*args)["sequence_output"], jit_compile=jit_compile)(*ids)
        np.testing.assert_allclose(fixed.numpy()[REAL], expected[REAL], atol=FLOAT32)


@pytest.mark.parametrize("normalize_first", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_block(normalize_first, causal):
    keras.utils.set_random_seed(4)
    block = TransformerEncoderBlock(3, 22, normalize_first=normalize_first, causal=causal, initializer_range=0.3)
    hidden = np.random.default_rng(1).normal(size=(*MASK.shape, 12)).astype("float32")
    padded = keras.tree.map_structure(np.asarray, block(hidden, MASK, return_attention_scores=True))
    free = graph(lambda x, mask: block(x, mask, return_attention_scores=True), hidden, MASK)
    free = keras.tree.map_structure(np.asarray, free)
    np.testing.assert_allclose(free[0][REAL], padded[0][REAL], atol=FLOAT32)
    np.testing.assert_allclose(
        np.swapaxes(free[1], 1, 2)[REAL], np.swapaxes(padded[1], 1, 2)[REAL], atol=FLOAT32
    )  # of real queries
    first = graph(lambda x, mask: block(x, mask, first_token_only=True), hidden, MASK)
    np.testing.assert_allclose(np.asarray(first), free[0][:, 0], atol=FLOAT32)


def test_first_token_without_a_mask():
    block = TransformerEncoderBlock(3, 22, causal=True, initializer_range=0.3)
    hidden = np.random.default_rng(1).normal(size=(2, 5, 12)).astype("float32")
    everything, scores = block(hidden, return_attention_scores=True)
    first, first_scores = block(hidden, first_token_only=True, return_attention_scores=True)
    np.testing.assert_allclose(np.asarray(first), np.asarray(everything)[:, 0], atol=FLOAT32)
    np.testing.assert_allclose(np.asarray(first_scores), np.asarray(scores)[:, :, :1], atol=FLOAT32)


@pytest.mark.parametrize("config", [{"num_segments": 0, "pooler_activation": "relu"}, {"position_offset": 2}])
def test_relatives(config, ids):
    backbone = make_backbone(config)
    padded = keras.tree.map_structure(np.asarray, call(backbone)(*ids))  # as eager calls are
    free = keras.tree.map_structure(np.asarray, graph(call(backbone), *ids))
    np.testing.assert_allclose(free["sequence_output"][REAL], padded["sequence_output"][REAL], atol=FLOAT32)
    np.testing.assert_allclose(free["pooled_output"][[0, 1, 3]], padded["pooled_output"][[0, 1, 3]], atol=FLOAT32)


def test_backbone(ids):
    backbone = make_backbone(return_hidden_states=True, return_attention_scores=True)
    free, padded = both_ways(backbone, call(backbone), *ids)
    np.testing.assert_allclose(free["sequence_output"][REAL], padded["sequence_output"][REAL], atol=FLOAT32)
    has_text = REAL.any(axis=1)
    np.testing.assert_allclose(free["pooled_output"][has_text], padded["pooled_output"][has_text], atol=FLOAT32)
    for ours, theirs in zip(free["hidden_states"], padded["hidden_states"], strict=True):
        np.testing.assert_allclose(ours[REAL], theirs[REAL], atol=FLOAT32)
    for value in keras.tree.flatten(free):
        assert np.isfinite(value).all()


@pytest.mark.slow
def test_bfloat16_is_as_near_to_float32(ids):
    """TensorFlow rounds a product of two axes once, with its bias, and one of three axes twice."""
    backbone, exact = make_backbone(dtype="mixed_bfloat16"), make_backbone()
    free, padded = both_ways(
        backbone, lambda *args: keras.ops.cast(call(backbone)(*args)["sequence_output"], "float32"), *ids
    )
    expected = graph(lambda *args: call(exact)(*args)["sequence_output"], *ids).numpy()[REAL]
    assert 0 < np.abs(free[REAL] - expected).mean() < 1.1 * np.abs(padded[REAL] - expected).mean()


@pytest.mark.slow
def test_gradients(ids):
    import tensorflow as tf

    backbone = make_backbone()

    def gradients(*args):
        with tf.GradientTape() as tape:
            outputs = call(backbone, training=True)(*args)
            real = tf.cast(args[2], "float32")[..., None]
            wave = tf.sin(tf.range(12, dtype="float32"))
            loss = tf.reduce_sum(outputs["sequence_output"] * real * wave)
            loss += tf.reduce_sum((outputs["pooled_output"] * real[:, 0]) ** 2)
        return [tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, backbone.trainable_weights)]

    free, padded = both_ways(backbone, gradients, *ids)
    assert len(free) == len(backbone.weights)
    for ours, theirs in zip(free, padded, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=GRADIENT * max(1, np.abs(theirs).max()))


def test_company_changes_nothing(ids, outputs_of):
    """A row of padding, and the rows beside it, are the same in any batch."""
    together = np.asarray(outputs_of(*ids)["pooled_output"])
    for row in range(4):
        alone = np.asarray(outputs_of(*(array[row : row + 1] for array in ids))["pooled_output"])
        np.testing.assert_allclose(together[row], alone[0], atol=FLOAT32)


def test_padding_only(ids, outputs_of):
    assert np.isfinite(np.asarray(outputs_of(ids[0], ids[1], 0 * ids[2])["sequence_output"])).all()
    assert outputs_of(*(array[:0] for array in ids))["pooled_output"].shape == (0, 12)


def test_a_graph_runs_only_what_it_needs(ids):
    """The dense layers of the last block: one row per text for `pooled_output`, one per token for `sequence_output`."""
    import tensorflow as tf

    backbone = make_backbone({"num_layers": 1})
    rows = []
    block = backbone.get_layer("encoder_block_0")
    dense = block.feed_forward.intermediate.call

    def spy(inputs, *args, **kwargs):
        rows.append(tf.shape(inputs))
        return dense(inputs, *args, **kwargs)

    block.feed_forward.intermediate.call = spy
    found = graph(lambda *args: (rows.clear(), call(backbone)(*args), list(rows))[-1], *ids)
    assert [np.asarray(shape).tolist() for shape in found] == [[4, 12], [14, 12]]


def test_xla_is_not_chosen_by_keras_where_padding_is_left_out():
    backbone = make_backbone()
    model = keras.Model(backbone.input, backbone.output["pooled_output"])
    model.compile("sgd", "mse")
    assert not model.jit_compile
    backbone.padding_free = False
    model.compile("sgd", "mse")
    assert backbone.get_layer("encoder_block_0").supports_jit
    with pytest.raises(TypeError, match=r"`BertEmbedding`: `padding_free` must be True or False"):
        backbone.padding_free = "no"


def grouped(mask):
    real = real_tokens_of(keras.ops.convert_to_tensor(np.asarray(mask, "int32")))
    return real, real.rows_by_length


def mask_of(lengths, width):
    return (np.arange(width) < np.array(lengths, "int32")[:, None]).astype("int32")


def test_every_row_is_in_one_group_cut_behind_its_longest():
    _, rows = grouped(UNEQUAL)
    long, short = rows.groups
    assert np.asarray(long.rows).tolist() == [1]
    assert np.asarray(short.rows).tolist() == [0, 3, 2]
    assert np.asarray(rows.ranks).tolist() == [1, 0, 3, 2]
    np.testing.assert_array_equal(np.asarray(long.padding_mask), UNEQUAL[[1], :6])
    np.testing.assert_array_equal(np.asarray(short.padding_mask), UNEQUAL[[0, 3, 2], :3])


@pytest.mark.parametrize("mask", [UNEQUAL, UNEQUAL[:1], UNEQUAL[2:3], UNEQUAL[:, :1], np.ones((3, 5))])
def test_what_is_padded_is_selected_again(mask):
    real, rows = grouped(mask)
    tokens = np.random.default_rng(2).normal(size=(len(np.asarray(real.indices)), 3)).astype("float32")
    for found in (rows, real.all_rows()):
        np.testing.assert_array_equal(np.asarray(found.select([group.pad(tokens) for group in found.groups])), tokens)
        values = np.arange(len(mask) * 2).reshape(-1, 2)
        np.testing.assert_array_equal(np.asarray(found.join([group.pick(values) for group in found.groups])), values)


def test_in_the_place_of_padding_stands_a_token_of_the_same_row():
    real, rows = grouped(UNEQUAL)
    row_of_token = np.asarray(real.rows())
    for group in rows.groups:
        assert (row_of_token[np.asarray(group.sources)] == np.asarray(group.rows)[:, None]).all()


@pytest.mark.parametrize("seed", range(5))
def test_no_other_parting_has_fewer_scores(seed):
    lengths = np.sort(np.random.default_rng(seed).integers(1, 90, 11))[::-1]
    _, rows = grouped(mask_of(lengths, 97))
    scores = sum(group.padding_mask.shape[0] * group.padding_mask.shape[1] ** 2 for group in rows.groups)
    assert scores == min(size * lengths[0] ** 2 + (11 - size) * lengths[size] ** 2 for size in range(11))


def test_rows_of_one_length_stay_together():
    _, rows = grouped(mask_of([4, 4, 4], 9))
    assert [tuple(group.padding_mask.shape) for group in rows.groups] == [(0, 4), (3, 4)]


def test_a_batch_may_be_empty():
    _, rows = grouped(np.ones((0, 4)))
    assert [group.padding_mask.shape[0] for group in rows.groups] == [0, 0]


def test_a_mean_of_tokens_is_compiled_by_xla():
    """Where `compile(jit_compile=True)` was not called, and padding is left out."""
    import tensorflow as tf

    backbone = BertBackbone(
        BertConfig(vocabulary_size=9, hidden_dim=15, num_layers=1, num_heads=3, intermediate_dim=21)
    )
    pooling, ids = SequencePooling("mean"), {"token_ids": MASK * 5, "segment_ids": 0 * MASK, "padding_mask": MASK}

    def pooled(inputs):
        return pooling(backbone(inputs)["sequence_output"], inputs["padding_mask"])

    expected = tf.function(pooled)(ids)
    np.testing.assert_allclose(tf.function(pooled, jit_compile=True)(ids), expected, atol=FLOAT32)
