"""Tables of character replacements, in the format of tf.text's `FastBertNormalizer`."""

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


def character_table(replacements: Mapping[str, str]) -> bytes:
    """The model of a `FastBertNormalizer` that replaces single characters, and drops bytes that are not UTF-8.

    Args:
        replacements: character -> replacement of at most 63 bytes. Other characters stay as they are, NUL too.

    Returns:
        The bytes of a `FastBertNormalizerModel`.

    References:
        tensorflow/text, `fast_bert_normalizer_model.fbs`.
    """
    import flatbuffers

    pool = bytearray()
    offsets: dict[bytes, int] = {}
    values = dict.fromkeys(ill_formed_sequences(), REPLACED)
    for character, replacement in replacements.items():
        text = replacement.encode()
        if text not in offsets:
            offsets[text] = len(pool)
            pool += text
        values[character.encode()] = REPLACED | offsets[text] << LENGTH_BITS | len(text)
    builder = flatbuffers.Builder(0)
    pool_position = builder.CreateNumpyVector(np.frombuffer(bytes(pool) or b"\0", np.uint8))
    trie_position = builder.CreateNumpyVector(_double_array(values))
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(1, trie_position, 0)
    builder.PrependUOffsetTRelativeSlot(3, pool_position, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def root_table(model: bytes) -> Any:
    """The root table of a flatbuffer, a `flatbuffers.table.Table`; `Offset(4 + 2 * i)` is where its field i is."""
    from flatbuffers.table import Table

    return Table(model, int.from_bytes(model[:4], "little"))


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
