import numpy as np
import pytest

from keras_bert_layers._internal.files.wire_format import varint
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.index_table import (
    MAX_INDEX_BYTES,
    _block_bytes,
    masked_crc32c,
    read_table,
    table_bytes,
)

VALUES = {f"layer_{number}/{name}".encode(): bytes([number] * number) for number in range(23) for name in "ab"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.ckpt.index"


def with_block(block, kind=0):
    """A table whose only block of keys is this."""
    typed = block + bytes([kind])
    data = typed + masked_crc32c(typed).to_bytes(4, "little")
    index = _block_bytes([(b"z", varint(0) + varint(len(block)))])
    handle = varint(len(data)) + varint(len(index))
    data += index + b"\0" + masked_crc32c(index + b"\0").to_bytes(4, "little")
    return data + (b"\0\0" + handle).ljust(40, b"\0") + 0xDB4775248B80FB57.to_bytes(8, "little")


@pytest.mark.parametrize("values", [VALUES, {b"": b"header"}, {b"\xff\xff": b"", b"\xff": b"x"}])
def test_round_trip(path, values):
    path.write_bytes(table_bytes(values))
    assert list(read_table(path).items()) == sorted(values.items())


def test_several_blocks(path):
    """What TensorFlow writes where the index is large: blocks one behind the other."""
    data, handles = b"", []
    for keys in (sorted(VALUES)[:20], sorted(VALUES)[20:]):
        block = _block_bytes([(key, VALUES[key]) for key in keys])
        handles.append((keys[-1], varint(len(data)) + varint(len(block))))
        data += block + b"\0" + masked_crc32c(block + b"\0").to_bytes(4, "little")
    index = _block_bytes(handles)
    footer = (b"\0\0" + varint(len(data)) + varint(len(index))).ljust(40, b"\0")
    data += index + b"\0" + masked_crc32c(index + b"\0").to_bytes(4, "little")
    path.write_bytes(data + footer + 0xDB4775248B80FB57.to_bytes(8, "little"))
    assert read_table(path) == VALUES


@pytest.mark.parametrize("size", [0, 7, 47, 600])
def test_truncated(path, size):
    path.write_bytes(table_bytes(VALUES)[:size])
    with pytest.raises(CheckpointError, match=r"model\.ckpt\.index: not a complete index of a TensorFlow checkpoint"):
        read_table(path)


def test_every_changed_byte_is_noticed(path):
    whole = table_bytes(VALUES)
    messages, num_unread = [], 0
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x11]) + whole[at + 1 :])
        try:
            assert read_table(path) == VALUES
            num_unread += 1
        except CheckpointError as error:
            messages.append(str(error))
    assert all(str(path) in message for message in messages)
    assert num_unread <= 50  # the footer's padding and the empty block, which nothing reads


def test_too_large(path):
    path.write_bytes(bytes(MAX_INDEX_BYTES + 1))
    with pytest.raises(CheckpointError, match=r"must take at most 1048576 bytes\. Received: 1048577 bytes"):
        read_table(path)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (with_block(_block_bytes(sorted(VALUES.items())), kind=1), "a block is compressed"),
        (with_block(_block_bytes([(b"a" * 513, b"")])), "a name takes more than 512 bytes"),
        (with_block(b"\5\1\1ab" + bytes(8)), "an entry is outside its block"),
        (with_block(b"\0\1\x60ab" + bytes(8)), "an entry is outside its block"),
    ],
)
def test_damaged(path, data, text):
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=rf"index of this checkpoint is damaged: {text}.*Download or copy"):
        read_table(path)


def test_blocks_over_each_other(path):
    """A block that is named often would be read often: a small file would give much."""
    block = _block_bytes(sorted(VALUES.items()))
    data = block + b"\0" + masked_crc32c(block + b"\0").to_bytes(4, "little")
    index = _block_bytes([(b"%04d" % number, b"\0" + varint(len(block))) for number in range(999)])
    handle = varint(len(data)) + varint(len(index))
    data += index + b"\0" + masked_crc32c(index + b"\0").to_bytes(4, "little")
    path.write_bytes(data + (b"\0\0" + handle).ljust(40, b"\0") + 0xDB4775248B80FB57.to_bytes(8, "little"))
    with pytest.raises(CheckpointError, match="its blocks overlap"):
        read_table(path)


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
