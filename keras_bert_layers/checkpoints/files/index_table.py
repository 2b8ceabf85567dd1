"""The sorted table of keys and values, with checksums, in which TensorFlow keeps the index of a checkpoint."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import google_crc32c
import numpy as np

from keras_bert_layers._internal.files.wire_format import read_varint, varint
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, damaged
from keras_bert_layers.checkpoints.files.json_file import read_file

_MASK_DELTA = 0xA282EAD8


def masked_crc32c(data: bytes | np.ndarray) -> int:
    """The CRC-32C of bytes or of a C-contiguous array, rotated and shifted as TensorFlow stores it.

    Examples:
        >>> hex(masked_crc32c(b"123456789"))
        '0xc78ab0e5'

    References:
        tensorflow/core/lib/hash/crc32c.h, `Mask`.
    """
    crc = google_crc32c.value(data if isinstance(data, bytes) else data.reshape(-1).view(np.uint8))
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


# An entry takes about 60 bytes, its key about 60 before it is shortened. BERT-large with its optimizer's slots has
# about 1,200 entries. The bounds keep a hostile file from taking much memory.
MAX_INDEX_BYTES = 1024 * 1024
_MAX_KEY_BYTES = 512

_MAGIC = 0xDB4775248B80FB57.to_bytes(8, "little")
_HANDLES_BYTES = 40
_FOOTER_BYTES = _HANDLES_BYTES + len(_MAGIC)
_TRAILER_BYTES = 5
_KEYS_PER_RESTART = 16

DAMAGED_CURE = "Download or copy all files of the checkpoint again and compare their sizes and checksums."


# The offset and the size of a block in the file.
_Handle = tuple[int, int]


def read_table(path: Path) -> dict[bytes, bytes]:
    """Reads all keys and values of a table and checks the checksum of every block.

    Args:
        path: the file.

    Returns:
        Key -> value, in the table's order.

    Raises:
        CheckpointError: the file is not such a table, is damaged, compressed, or larger than `MAX_INDEX_BYTES`.
        OSError: it cannot be read.
    """
    data = read_file(path, MAX_INDEX_BYTES)
    if len(data) < _FOOTER_BYTES or data[-len(_MAGIC) :] != _MAGIC:
        raise CheckpointError(
            f"{path}: not a complete index of a TensorFlow checkpoint: its last 8 bytes must be the format's mark. "
            f"{DAMAGED_CURE}"
        )
    with damaged(f"{path}: the index of this checkpoint is damaged", ValueError, DAMAGED_CURE):
        handles = data[-_FOOTER_BYTES:]
        _, at = _handle(handles, 0)  # of a block that is always empty
        index, _ = _handle(handles, at)
        blocks = [_handle(value, 0)[0] for _, value in _entries(_block(data, index))]
        if sum(size for _, size in blocks) > len(data):
            raise ValueError("its blocks overlap")
        return {key: value for block in blocks for key, value in _entries(_block(data, block))}


def table_bytes(values: Mapping[bytes, bytes]) -> bytes:
    """The content of a table with these keys and values; the same bytes that TensorFlow writes up to 256 KiB.

    Args:
        values: key -> value, at least one.

    Returns:
        The file's content: one block of keys, an empty block, the index of blocks, and the positions of the last two.

    Examples:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "a.index")
        >>> size = path.write_bytes(table_bytes({b"one": b"1", b"only": b"2"}))
        >>> read_table(path)
        {b'one': b'1', b'only': b'2'}

    References:
        https://github.com/google/leveldb/blob/main/doc/table_format.md; tensorflow/core/lib/io/table_builder.cc.
    """
    keys = sorted(values)
    data = bytearray()
    keys_handle = _append(data, _block_bytes([(key, values[key]) for key in keys]))
    empty_handle = _append(data, _block_bytes([]))
    index_handle = _append(data, _block_bytes([(_short_successor(keys[-1]), keys_handle)]))
    return bytes(data + (empty_handle + index_handle).ljust(_HANDLES_BYTES, b"\0") + _MAGIC)


def _append(data: bytearray, block: bytes) -> bytes:
    """Adds a block with its trailer (0: not compressed; checksum) and returns its handle."""
    handle = varint(len(data)) + varint(len(block))
    typed = block + b"\0"
    data += typed + masked_crc32c(typed).to_bytes(4, "little")
    return handle


def _block_bytes(entries: list[tuple[bytes, bytes]]) -> bytes:
    """Encodes each key without its common prefix with the key before.

    Every 16th key is stored in full; the positions of these are at the end.
    """
    block, restarts, last = bytearray(), [0], b""
    for number, (key, value) in enumerate(entries):
        shared = _shared_length(last, key)
        if number and number % _KEYS_PER_RESTART == 0:
            restarts.append(len(block))
            shared = 0
        block += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    return bytes(block) + b"".join(number.to_bytes(4, "little") for number in (*restarts, len(restarts)))


def _shared_length(one: bytes, other: bytes) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))


def _short_successor(key: bytes) -> bytes:
    """A short key that is not before this one."""
    at = next((at for at, byte in enumerate(key) if byte != 0xFF), None)
    return key if at is None else key[:at] + bytes([key[at] + 1])


def _handle(data: bytes, at: int) -> tuple[_Handle, int]:
    offset, at = read_varint(data, at)
    size, at = read_varint(data, at)
    return (offset, size), at


def _block(data: bytes, handle: _Handle) -> bytes:
    offset, size = handle
    end = offset + size
    block, trailer = data[offset:end], data[end : end + _TRAILER_BYTES]
    if len(block) != size or len(trailer) != _TRAILER_BYTES:
        raise ValueError("a block is outside the file")
    if masked_crc32c(block + trailer[:1]) != int.from_bytes(trailer[1:], "little"):
        raise ValueError("the checksum of a block is wrong")
    if trailer[0]:
        raise ValueError("a block is compressed, which TensorFlow's checkpoints are not")
    return block


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    num_restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 * (num_restarts + 1)
    at, key = 0, b""
    while at < end:
        shared, at = read_varint(block, at)
        num_new, at = read_varint(block, at)
        num_value, at = read_varint(block, at)
        if shared > len(key) or at + num_new + num_value > end:
            raise ValueError("an entry is outside its block")
        if shared + num_new > _MAX_KEY_BYTES:
            raise ValueError(f"a name takes more than {_MAX_KEY_BYTES} bytes")
        key = key[:shared] + block[at : at + num_new]
        at += num_new + num_value
        yield key, block[at - num_value : at]
