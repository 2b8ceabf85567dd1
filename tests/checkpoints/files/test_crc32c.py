import numpy as np
import pytest

from keras_bert_layers.checkpoints.files.index_table import masked_crc32c


def bit_by_bit(data):
    """The definition: the remainder of a division of polynomials, one bit at a time."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def unmasked(masked):
    """tensorflow/core/lib/hash/crc32c.h, `Unmask`."""
    rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
    return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF


# RFC 3720, section B.4, whose bytes are the checksum's lowest first; the last is the check value that catalogues give.
@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        (b"", 0),
        (b"123456789", 0xE3069283),
    ],
)
def test_published_values(data, crc):
    assert unmasked(masked_crc32c(data)) == crc
    assert masked_crc32c(data) != crc


@pytest.mark.parametrize("size", [1, 3, 4, 5, 5000])
def test_lengths(size):
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    assert unmasked(masked_crc32c(data)) == bit_by_bit(data)


def test_an_array_is_its_bytes_and_is_not_changed():
    array = np.random.default_rng(1).normal(size=(300, 200)).astype("float32")
    before = array.copy()
    assert masked_crc32c(array) == masked_crc32c(array.tobytes())
    np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 0)])
def test_arrays_of_any_shape(shape):
    array = np.ones(shape, "float32")
    assert masked_crc32c(array) == masked_crc32c(array.tobytes())
