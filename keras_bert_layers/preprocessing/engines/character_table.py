"""Tables of character replacements, in the format of tf.text's `FastBertNormalizer`."""

import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

# tensorflow/text, `fast_bert_normalizer.h`: one bit for "replaced", the offset of the replacement in the pool of
# strings, and in the lowest six bits its length in bytes.
REPLACED = 1 << 30
LENGTH_BITS = 6
MAX_REPLACEMENT_BYTES = (1 << LENGTH_BITS) - 1

# darts-clone, `darts.h`: a unit is a value (highest bit), or an offset, a bit for "has a value", and a label.
_VALUE = 1 << 31
_HAS_VALUE = 1 << 8
_OFFSET_BITS = 10
_BLOCK = 256

# tensorflow/text, `fast_bert_normalizer_model.fbs`: the fields of a table.
TRIE_FIELD = 1
NUL_FIELD = 2
POOL_FIELD = 3


def character_table(replacements: Mapping[str, str]) -> bytes:
    """The model of a `FastBertNormalizer` that replaces single characters, and drops bytes that are not UTF-8.

    Args:
        replacements: character -> replacement of at most 63 bytes. Other characters stay as they are, NUL too.

    Returns:
        The bytes of a `FastBertNormalizerModel`.

    References:
        tensorflow/text, `fast_bert_normalizer_model.fbs`; https://flatbuffers.dev/internals/.
    """
    pool = bytearray()
    offsets: dict[bytes, int] = {}
    values = dict.fromkeys(ill_formed_sequences(), REPLACED)
    for character, replacement in replacements.items():
        text = replacement.encode()
        if text not in offsets:
            offsets[text] = len(pool)
            pool += text
        values[character.encode()] = REPLACED | offsets[text] << LENGTH_BITS | len(text)
    units, strings = _double_array(values), bytes(pool) or b"\0"
    # Where the table begins; the list of its fields: its size, the table's, and where in the table each field is; the
    # table: how far behind the list it is, and how far behind each field its vector. A vector begins with its length.
    start = struct.pack("<I6H3I", 16, 12, 12, 0, 4, 0, 8, 12, 8, 8 + units.nbytes)
    trie = struct.pack("<I", len(units)) + units.astype("<u4").tobytes()
    return start + trie + struct.pack("<I", len(strings)) + strings


def place_of_field(model: bytes, field: int) -> int:
    """Where a field of the root table of a flatbuffer is; 0 if the table does not have it.

    References:
        https://flatbuffers.dev/internals/.
    """
    (table,) = struct.unpack_from("<I", model)
    fields = table - struct.unpack_from("<i", model, table)[0]
    (size,) = struct.unpack_from("<H", model, fields)
    entry = 4 + 2 * field
    (offset,) = struct.unpack_from("<H", model, fields + entry) if entry < size else (0,)
    return table + offset if offset else 0


def vector_of_field(model: bytes, field: int, dtype: str) -> np.ndarray:
    """The numbers in a vector of the root table of a flatbuffer."""
    place = place_of_field(model, field)
    place += struct.unpack_from("<I", model, place)[0]
    return np.frombuffer(model, dtype, struct.unpack_from("<I", model, place)[0], place + 4)


def _double_array(values_by_key: Mapping[bytes, int]) -> np.ndarray:
    """A trie in the format of darts-clone: a unit for each value, and a block of units for each node with children.

    Equal subtrees share a block. The root's own unit is the first, and the values follow it.
    """
    root: dict[int, Any] = {}
    for key, value in values_by_key.items():
        node = root
        for byte in key:
            node = node.setdefault(byte, {})
        node[0] = value  # no key contains the label 0
    values = sorted(set(values_by_key.values()))
    first = -(-(1 + len(values)) // _BLOCK)  # the blocks that hold the values
    places = {value: 1 + index for index, value in enumerate(values)}
    blocks: list[np.ndarray] = []
    known: dict[tuple[Any, ...], int] = {}

    def place(node: dict[int, Any]) -> int:
        """The index from which the children of a node are counted."""
        if set(node) == {0}:
            return places[node[0]]
        below = {label: place(child) for label, child in node.items() if label}
        key = (node.get(0), *sorted((label, base, 0 in node[label]) for label, base in below.items()))
        if key not in known:
            base = known[key] = _BLOCK * (first + len(blocks))
            blocks.append(np.full(_BLOCK, _VALUE, np.uint32))  # units that no label matches
            if 0 in node:
                blocks[-1][0] = _VALUE | node[0]
            units = blocks[-1]
            for label, child in below.items():
                units[label] = _unit(base + label, child, has_value=0 in node[label]) | label
        return known[key]

    head = np.full(_BLOCK * first, _VALUE, np.uint32)
    head[0] = _unit(0, place(root), has_value=False)
    head[1 : 1 + len(values)] = [_VALUE | value for value in values]
    return np.concatenate([head, *blocks])


def _unit(index: int, base: int, *, has_value: bool) -> int:
    return (index ^ base) << _OFFSET_BITS | _HAS_VALUE * has_value


def ill_formed_sequences() -> Iterator[bytes]:
    """Every maximal part of an ill-formed UTF-8 sequence, the unit in which Python skips bad bytes.

    References:
        The Unicode Standard, section 3.9, table 3-7 and "U+FFFD Substitution of Maximal Subparts".
    """
    for byte in range(0x80, 0x100):
        yield bytes([byte])
    for lead in range(0xE0, 0xF5):
        first = {0xE0: 0xA0, 0xF0: 0x90}.get(lead, 0x80)
        last = {0xED: 0x9F, 0xF4: 0x8F}.get(lead, 0xBF)
        for second in range(first, last + 1):
            yield bytes([lead, second])
            if lead >= 0xF0:
                yield from (bytes([lead, second, third]) for third in range(0x80, 0xC0))
