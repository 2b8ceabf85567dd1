"""Packed rows: several texts in one row give the same as each in a row of its own."""

import keras
import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertConfig, load_backbone
from keras_bert_layers.layers import (
    EncoderParts,
    MaskedLMHead,
    SelfAttention,
    SequencePooling,
    TransformerEncoderBlock,
)

# The project's promise for packed rows: float32 sums of other lengths, with zeros among them.
PACKED = 1e-5
# bfloat16 keeps 8 bits; products of other sizes may be rounded in other places.
HALF_PRECISION = 0.1
# Gradients sum over all tokens; relative to the largest.
GRADIENT = 1e-5
LENGTHS = ((4, 1, 3), (2, 5), (7,), ())
WIDTH = 9


def packed(rows, seed=4, vocabulary_size=31):
    """Ids of rows of texts, and the row and the columns of each text."""
    rng = np.random.default_rng(seed)
    width = max(WIDTH, *(sum(lengths) for lengths in rows))
    texts, places = np.zeros((len(rows), width), "int32"), []
    for row, lengths in enumerate(rows):
        ends = np.cumsum(lengths, dtype=int)
        for number, (end, length) in enumerate(zip(ends, lengths, strict=True), start=1):
            texts[row, end - length : end] = number
            places.append((row, slice(end - length, end)))
    ids = {"token_ids": rng.integers(3, vocabulary_size, texts.shape).astype("int32")}
    return {**ids, "segment_ids": rng.integers(0, 2, texts.shape).astype("int32"), "padding_mask": texts}, places


def unpacked(inputs, places):
    """The same texts, each in a row of its own, as a padded batch."""
    width = max(columns.stop - columns.start for _, columns in places)
    rows = {name: np.zeros((len(places), width), "int32") for name in inputs}
    for row, (source, columns) in enumerate(places):
        length = columns.stop - columns.start
        for name in inputs:
            rows[name][row, :length] = 1 if name == "padding_mask" else inputs[name][source, columns]
    return rows


def make(config=None, **options):
    keras.utils.set_random_seed(3)
    values = {"num_layers": 2, "num_heads": 3, "intermediate_dim": 22, "initializer_range": 0.3, "dropout": 0.0}
    values |= {"vocabulary_size": 31, "hidden_dim": 12, "max_sequence_length": 11, "attention_dropout": 0.0}
    return BertBackbone(BertConfig(**values | (config or {})), **options)


def check(found, expected, places, tolerance=PACKED):
    """Each text's vectors `[B, S, ...]` in the packed rows, against its own row."""
    found, expected = (np.asarray(keras.ops.cast(values, "float32")) for values in (found, expected))
    for own, (row, columns) in enumerate(places):
        text = expected[own, : columns.stop - columns.start]
        np.testing.assert_allclose(found[row, columns], text, rtol=0, atol=tolerance, err_msg=f"text {own}")


def ways(backbone):
    """The ways in which a backbone runs: padded, and as a graph, which is padding-free on TensorFlow."""
    yield "eager", backbone
    yield "graph", lambda inputs: backbone.predict(inputs, verbose=0)


@pytest.mark.parametrize(
    "config",
    [{}, {"position_offset": 2}, pytest.param({"num_segments": 0}, marks=pytest.mark.slow)],
    ids=["bert", "roberta", "distilbert"],
)
def test_backbone(config):
    inputs, places = packed(LENGTHS)
    backbone = make(config, return_hidden_states=True)
    expected = backbone(unpacked(inputs, places))
    backbone.packed_rows = True
    for name, run in ways(backbone):
        found = run(inputs)
        for ours, theirs in zip(found["hidden_states"], expected["hidden_states"], strict=True):
            check(ours, theirs, places)
        firsts = [own for own, (_, columns) in enumerate(places) if columns.start == 0]
        pooled = np.asarray(found["pooled_output"])[: len(firsts)]
        np.testing.assert_allclose(pooled, np.asarray(expected["pooled_output"])[firsts], atol=PACKED, err_msg=name)
        assert np.isfinite(np.asarray(found["pooled_output"])).all()


def test_a_pooler_of_means_reads_the_first_text_only():
    inputs, places = packed(LENGTHS)
    backbone = make(parts=EncoderParts(pooling="mean"))
    expected = np.asarray(backbone(unpacked(inputs, places))["pooled_output"])
    firsts = [own for own, (_, columns) in enumerate(places) if columns.start == 0]
    backbone.packed_rows = True
    for name, run in ways(backbone):
        found = np.asarray(run(inputs)["pooled_output"])
        np.testing.assert_allclose(found[: len(firsts)], expected[firsts], atol=PACKED, err_msg=name)


@pytest.mark.parametrize("mode", ["cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"])
def test_pooling_of_the_first_text(mode):
    texts = np.array([[1, 1, 1, 2, 2], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], "int32")
    hidden = np.random.default_rng(1).normal(size=(3, 5, 6)).astype("float32")
    pooling = SequencePooling(mode)
    expected = np.asarray(pooling(hidden, (texts == 1).astype("int32")))
    pooling.packed_rows = True
    np.testing.assert_array_equal(np.asarray(pooling(hidden, texts)), expected)
    np.testing.assert_array_equal(np.asarray(pooling(hidden)), np.asarray(SequencePooling(mode)(hidden)))


def test_padding_ids_inside_texts_take_no_position():
    """RoBERTa's positions skip the padding's id wherever it is, also in packed rows."""
    inputs, places = packed(LENGTHS)
    inputs["token_ids"][[0, 0, 1], [1, 5, 3]] = 1
    backbone = make({"position_offset": 2})
    expected = backbone(unpacked(inputs, places))["sequence_output"]
    backbone.packed_rows = True
    check(backbone(inputs)["sequence_output"], expected, places)


def test_attention_stays_within_a_text():
    inputs, _ = packed(LENGTHS)
    backbone = make(return_attention_scores=True)
    backbone.packed_rows = True
    texts = inputs["padding_mask"]
    is_same = texts[:, :, None] == texts[:, None, :]
    for attention in backbone(inputs)["attention_scores"]:
        scores = np.asarray(attention).swapaxes(1, 2)[texts > 0]  # [tokens, N, S]
        assert not scores[~np.broadcast_to(is_same[texts > 0][:, None], scores.shape)].any()
        np.testing.assert_allclose(scores.sum(axis=-1), 1, atol=PACKED)


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="test_backends.py has the other backends")
def test_static_shapes():
    import tensorflow as tf

    inputs, places = packed(LENGTHS)
    backbone = make()
    expected = backbone(unpacked(inputs, places))["sequence_output"]
    backbone.packed_rows = True
    for padding_free, jit_compile in ((False, True), (False, False), (True, True)):
        backbone.padding_free = padding_free
        found = tf.function(lambda ids: backbone(ids)["sequence_output"], jit_compile=jit_compile)(inputs)
        check(found, expected, places)


@pytest.mark.parametrize("position_offset", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_mask_of_zeros_and_ones_is_an_ordinary_one(position_offset):
    inputs, _ = packed(LENGTHS)
    # The second row begins with padding, the third has a gap.
    inputs["padding_mask"] = np.array([[1] * 8 + [0], [0, 0] + [1] * 7, [1, 0, 1, 1, 0, 0, 0, 0, 0], [0] * 9], "int32")
    backbone = make({"position_offset": position_offset})
    real = inputs["padding_mask"].astype(bool)
    expected = np.asarray(backbone(inputs)["sequence_output"])
    backbone.packed_rows = True
    for _, run in ways(backbone):
        np.testing.assert_allclose(np.asarray(run(inputs)["sequence_output"])[real], expected[real], atol=PACKED)


@pytest.mark.parametrize("causal", [False, True])
def test_block(causal):
    inputs, places = packed(LENGTHS)
    block = TransformerEncoderBlock(3, 22, causal=causal, normalize_first=True, initializer_range=0.3)
    hidden = np.random.default_rng(1).normal(size=(*inputs["padding_mask"].shape, 12)).astype("float32")
    block.packed_rows = True
    found = block(hidden, inputs["padding_mask"])
    scored, _ = block(hidden, inputs["padding_mask"], return_attention_scores=True)
    first = block(hidden, inputs["padding_mask"], first_token_only=True)
    for row, columns in places:
        alone = np.asarray(block(hidden[row : row + 1, columns]))[0]
        np.testing.assert_allclose(np.asarray(found)[row, columns], alone, atol=PACKED)
        np.testing.assert_allclose(np.asarray(scored)[row, columns], alone, atol=PACKED)
        if columns.start == 0:
            np.testing.assert_allclose(np.asarray(first)[row], alone[0], atol=PACKED)


def test_attention_reads_a_mask_by_packed_rows():
    hidden = np.random.default_rng(1).normal(size=(1, 4, 6)).astype("float32")
    attention, texts = SelfAttention(2, initializer_range=0.3), np.array([[1, 1, 2, 2]], "int32")
    together = np.asarray(attention(hidden, texts))
    np.testing.assert_allclose(together, np.asarray(attention(hidden)), atol=PACKED)
    apart = np.asarray(attention(hidden, texts, packed_rows=True))
    np.testing.assert_allclose(apart[:, 2:], np.asarray(attention(hidden[:, 2:])), atol=PACKED)
    assert np.abs(apart - together).max() > 100 * PACKED


@pytest.mark.parametrize(
    ("rematerialize", "padding_free"),
    [(True, True), *[pytest.param(*flags, marks=pytest.mark.slow) for flags in ((False, True), (False, False))]],
)
def test_training_step_with_masked_positions(rematerialize, padding_free):
    """The loss of a masked-LM head, and a step of plain gradient descent that moves every weight by its gradient."""
    inputs, places = packed(LENGTHS)
    rows = unpacked(inputs, places)
    picked = [(0, 1), (1, 0), (2, 2), (3, 1), (4, 0), (4, 4), (5, 6)]  # text, position in it
    labels = np.random.default_rng(2).integers(0, 31, len(picked))
    losses, moves = [], []
    for ids, is_packed in ((inputs, True), (rows, False)):
        positions, wanted, weights = (np.zeros((len(ids["token_ids"]), 3), dtype) for dtype in ("int32", "int32", "f"))
        counts = [0] * len(positions)
        for (text, position), label in zip(picked, labels, strict=True):
            row, start = (places[text][0], places[text][1].start) if is_packed else (text, 0)
            column, counts[row] = counts[row], counts[row] + 1
            positions[row, column], wanted[row, column], weights[row, column] = start + position, label, 1
        backbone = make()
        given = keras.Input((None,), dtype="int32", name="mask_positions")
        logits = MaskedLMHead(backbone, initializer_range=0.3)(backbone.output["sequence_output"], given)
        model = keras.Model({**backbone.input, "mask_positions": given}, logits)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
        # Padded and without a trace, the texts in rows of their own are the plain reference.
        model.compile(keras.optimizers.SGD(1.0), loss, run_eagerly=not is_packed)
        backbone.packed_rows, backbone.rematerialize, backbone.padding_free = is_packed, rematerialize, padding_free
        before = model.get_weights()
        # One batch of all rows: Keras's losses per row are then summed to the same.
        losses.append(model.train_on_batch({**ids, "mask_positions": positions}, wanted, sample_weight=weights))
        moves.append([new - old for new, old in zip(model.get_weights(), before, strict=True)])
    np.testing.assert_allclose(losses[0], losses[1], rtol=PACKED)
    used = [np.abs(move).max() > 0 for move in moves[1]]
    assert sum(used) >= len(used) - 3  # all but the pooler, and the segments' or positions' unused rows
    for ours, theirs in zip(*moves, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=GRADIENT * max(1, np.abs(theirs).max()))


@pytest.mark.slow
def test_half_precision():
    inputs, places = packed(LENGTHS)
    backbone = make(dtype="mixed_bfloat16")
    for _, run in ways(backbone):
        backbone.packed_rows = False
        expected = run(unpacked(inputs, places))["sequence_output"]
        backbone.packed_rows = True
        check(run(inputs)["sequence_output"], expected, places, HALF_PRECISION)


@pytest.mark.parametrize("way", [0, pytest.param(1, marks=pytest.mark.slow)], ids=["eager", "graph"])
def test_minilm(way, minilm):
    inputs, places = packed(((37, 60, 31), (128,), (5, 9, 100)), vocabulary_size=30522)
    backbone = load_backbone(minilm)
    _, run = list(ways(backbone))[way]
    expected = run(unpacked(inputs, places))["sequence_output"]
    backbone.packed_rows = True
    check(run(inputs)["sequence_output"], expected, places)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="elsewhere a look at the mask would wait for it")
def test_numbers_without_the_setting():
    inputs, _ = packed(LENGTHS)
    with pytest.raises(ValueError, match=r"`padding_mask` must be 0 or 1\. Received: padding_mask=3.*packed_rows"):
        make()(inputs)


def test_setting():
    backbone = make({"num_layers": 1})
    assert not backbone.packed_rows
    inputs, places = packed(LENGTHS)
    before = backbone.predict(inputs, verbose=0)["sequence_output"]
    backbone.packed_rows = True
    assert [layer.packed_rows for layer in backbone.layers if hasattr(layer, "packed_rows")] == [True] * 2
    after = backbone.predict(inputs, verbose=0)["sequence_output"]  # not the function that was traced before
    row, columns = places[1]
    assert np.abs(after[row, columns] - before[row, columns]).max() > 0.1
    assert not BertBackbone.from_config(backbone.get_config()).packed_rows
    with pytest.raises(TypeError, match=r"`BertBackbone`: `packed_rows` must be True or False"):
        backbone.packed_rows = 1
