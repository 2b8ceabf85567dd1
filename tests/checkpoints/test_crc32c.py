import numpy as np
import pytest

from keras_bert_layers.checkpoints.crc32c import _RELATIONS, crc32c, masked_crc32c


def bit_by_bit(data):
    """The definition: the remainder of a division of polynomials, one bit at a time."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


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
    assert crc32c(data) == crc


SHORT, LONG = 4 * min(relation[0] for relation in _RELATIONS), 4 * max(relation[0] for relation in _RELATIONS)


@pytest.mark.parametrize("size", [1, 3, 4, 5, SHORT - 1, SHORT, SHORT + 1, SHORT + 4, 5000, LONG, LONG + 9, 2 * LONG])
def test_lengths_round_the_folding(size):
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    assert crc32c(data) == bit_by_bit(data)


@pytest.mark.parametrize("num_words", [2**18 - 1, 2**18, 2**18 + 1, 2**19 + 331])
def test_several_pieces(num_words):
    """Long data, whose sum over zeros is known from short data: a CRC is linear."""
    words = np.zeros(num_words, "<u4")
    words[-1] = 77
    zeros, one = crc32c(np.zeros(num_words, "<u4")), crc32c(words)
    assert one ^ zeros == bit_by_bit(np.uint32(77).tobytes()) ^ bit_by_bit(bytes(4))
    words[0] = 5
    assert crc32c(words) != one


def test_an_array_is_its_bytes_and_is_not_changed():
    array = np.random.default_rng(1).normal(size=(300, 200)).astype("float32")
    before = array.copy()
    assert crc32c(array) == crc32c(array.tobytes())
    np.testing.assert_array_equal(array, before)


def test_mask():
    # tensorflow/core/lib/hash/crc32c_test.cc: a masked checksum is neither the checksum nor one masked again
    crc = crc32c(b"foo")
    masked = masked_crc32c(b"foo")
    assert masked != crc
    turned = (masked - 0xA282EAD8) & 0xFFFFFFFF
    assert ((turned >> 17) | (turned << 15)) & 0xFFFFFFFF == crc
