"""`quantize_embeddings`: codes by hand, their errors, and beside sentence-transformers."""

import re

import numpy as np
import pytest

from keras_bert_layers.tasks import QuantizedEmbeddings, quantize_embeddings

RANGES = np.array([[-1, -2, 0], [1, 2, 255]], np.float32)


def random_vectors(rows, width=11):
    return np.random.default_rng(5).normal(size=(rows, width)).astype(np.float32)


def test_each_value_is_rounded_to_the_nearest_code():
    vectors = np.array([[-1, 2, 0.4], [0.001, -0.001, 0.6], [1, -2, 254.4]], np.float32)
    codes = quantize_embeddings(vectors, calibration_embeddings=RANGES).codes
    assert codes.dtype == np.int8
    assert codes.tolist() == [[-128, 127, -128], [0, -1, -127], [127, -128, 126]]


def test_values_outside_the_calibration_become_its_ends():
    quantized = quantize_embeddings(np.array([[-7, 7, -1], [7, -7, 999]], np.float32), calibration_embeddings=RANGES)
    assert quantized[:].tolist() == [[-1, 2, 0], [1, -2, 255]]


def test_error_of_half_a_step_in_a_quarter_of_the_bytes():
    vectors = random_vectors(50)
    quantized = quantize_embeddings(vectors)
    steps = np.ptp(vectors, axis=0) / 255
    assert (abs(quantized[:] - vectors) <= steps * 0.501).all()
    assert quantized[:].dtype == np.float32
    assert 4 * quantized.codes.nbytes == vectors.nbytes
    assert quantized.shape == (50, 11)
    assert len(quantized) == 50
    assert np.array_equal(quantized[np.array([3, 1])], quantized[:][[3, 1]])


def test_equal_values_of_a_dimension_are_kept():
    assert quantize_embeddings(np.full((3, 2), 0.3, np.float32))[:] == pytest.approx(np.full((3, 2), 0.3), abs=1e-7)


def test_one_bit_for_the_sign():
    vectors = random_vectors(6)
    vectors[0, 0] = 0
    quantized = quantize_embeddings(vectors, "binary")
    assert quantized.codes.shape == (6, 2)
    assert np.array_equal(quantized[:], np.where(vectors > 0, 1, -1))
    assert np.array_equal(quantized[2:4], quantized[:][2:4])
    assert quantize_embeddings(vectors[:0], "binary")[:].shape == (0, 11)


@pytest.mark.parametrize("precision", ["int8", "binary"])
def test_from_a_file(tmp_path, precision):
    quantized = quantize_embeddings(random_vectors(6), precision)
    np.save(tmp_path / "codes.npy", quantized.codes)
    codes = np.load(tmp_path / "codes.npy", mmap_mode="r")
    assert np.array_equal(QuantizedEmbeddings(codes, 11, quantized.ranges)[:], quantized[:])


@pytest.mark.parametrize(
    ("vectors", "words", "message"),
    [
        (np.ones((2, 3)), {"precision": "int4"}, "`precision` must be one of ['int8', 'binary']"),
        (
            np.ones(3),
            {},
            "`embeddings` must be finite, of the shape (rows, vector_dim). Received: embeddings=the shape (3,)",
        ),
        (np.full((2, 3), np.nan), {}, "`embeddings` must be finite"),
        (np.ones((0, 3)), {}, "`calibration_embeddings` must be finite, of the shape (rows, 3), with a row or more"),
        (
            np.ones((2, 3)),
            {"calibration_embeddings": np.ones((2, 4))},
            "`calibration_embeddings` must be finite, of",
        ),
    ],
)
def test_errors(vectors, words, message):
    with pytest.raises(ValueError, match=re.escape(f"`quantize_embeddings`: {message}")):
        quantize_embeddings(vectors, **words)


@pytest.mark.peers
def test_beside_sentence_transformers():
    module = pytest.importorskip("sentence_transformers.util.quantization", reason="the extra `benchmarks` brings it")
    vectors = random_vectors(40)
    assert np.array_equal(quantize_embeddings(vectors, "binary").codes, module.quantize_embeddings(vectors, "ubinary"))
    ranges = np.stack([vectors.min(axis=0), vectors.max(axis=0)])
    ours, theirs = quantize_embeddings(vectors).codes, module.quantize_embeddings(vectors, "int8", ranges=ranges)
    assert set(np.unique(ours.astype(int) - theirs)) == {0, 1}, "they round down"
    zero = np.zeros((1, 2), np.float32)
    assert module.quantize_embeddings(zero, "int8", ranges=RANGES[:, :2]).tolist() == [[-1, -1]]
