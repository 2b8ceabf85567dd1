"""The wire format of protocol buffers: the integers and fields that checkpoints and SentencePiece models use."""

import struct

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

_VARINT, _BYTES, _FIXED32 = 0, 2, 5
_MAX_VARINT_BYTES = 10
# The messages of TensorFlow's checkpoints and SentencePiece's pieces have fewer than ten.
MAX_FIELDS = 100_000
_SIZES = {1: 8, 3: 0, 4: 0, _FIXED32: 4}  # of values without a length, by the type


def varint(number: int) -> bytes:
    r"""Encodes an integer with seven bits in each byte, the lowest first.

    Examples:
        >>> varint(300)
        b'\xac\x02'
    """
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Reads the integer at a position; returns it and the position after it.

    Raises:
        ValueError: the data ends inside it, or it takes more than 10 bytes.
    """
    number = 0
    for shift in range(0, 7 * _MAX_VARINT_BYTES, 7):
        if at >= len(data):
            raise ValueError("the data ends inside an integer")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
    raise ValueError("an integer takes more than 10 bytes")


def field(number: int, value: int | bytes) -> bytes:
    r"""Encodes a field of a message: an integer, or bytes, which may be a message themselves.

    Examples:
        >>> field(1, 3), field(2, b"ab")
        (b'\x08\x03', b'\x12\x02ab')
    """
    if isinstance(value, bytes):
        return varint(number << 3 | _BYTES) + varint(len(value)) + value
    return varint(number << 3 | _VARINT) + varint(value)


def fixed32_field(number: int, value: int) -> bytes:
    """Encodes a field with four bytes."""
    return varint(number << 3 | _FIXED32) + value.to_bytes(4, "little")


def float_field(number: int, value: float) -> bytes:
    """Encodes a field with a number in float32."""
    return fixed32_field(number, int.from_bytes(struct.pack("<f", value), "little"))


def read_fields(message: bytes, *, most: int = MAX_FIELDS) -> list[tuple[int, int | bytes]]:
    """Reads the fields of a message in their order: number and value.

    Args:
        message: the bytes.
        most: the largest number of fields.

    Raises:
        ValueError: the bytes are not a message, or hold more fields.

    Examples:
        >>> read_fields(field(1, 3) + field(2, b"ab"))
        [(1, 3), (2, b'ab')]
    """
    if len(message) > 2 * most and _has_more(message, most):  # a field takes at least two bytes
        raise ValueError(f"a message has more than {most} fields")
    try:
        fields = UnknownFieldSet(Empty.FromString(message))  # a message that knows no field keeps all as unknown
    except DecodeError as error:
        raise ValueError("a message is damaged") from error
    return [(entry.field_number, entry.data) for entry in fields]


def _has_more(message: bytes, most: int) -> bool:
    """Whether a message has more fields than `most`; an object of the library takes 200 bytes for each."""
    at = 0
    for _ in range(most):
        if at >= len(message):
            return False
        tag, at = read_varint(message, at)
        size = _SIZES.get(tag & 7)
        if size is None:
            value, at = read_varint(message, at)
            size = value if tag & 7 == _BYTES else 0
        at += size
    return at < len(message)
