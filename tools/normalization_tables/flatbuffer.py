"""Writes a character table in the format of tf.text's FastBertNormalizer."""

from __future__ import annotations

from collections.abc import Iterator

import dartsclone
import flatbuffers
import numpy as np

# Layout of a trie value in tensorflow/text, `fast_bert_normalizer.h`: one bit for "replaced", the offset of the
# replacement in the pool of strings, and in the lowest six bits its length in bytes.
REPLACED = 1 << 30
LENGTH_BITS = 6

DROPPED = REPLACED


def normalizer_model(replacements: dict[str, str]) -> bytes:
    """The flatbuffer of a table from single characters to their replacements.

    Ill-formed UTF-8 is dropped, as `bytes.decode("utf-8", "ignore")` does.

    Args:
        replacements: character -> replacement of at most 63 bytes; NUL must be dropped. Other characters stay as they
            are.

    Returns:
        The bytes of a `FastBertNormalizerModel`.

    References:
        tensorflow/text, `fast_bert_normalizer_model.fbs`.
    """
    pool, offsets = _pool({text.encode() for text in replacements.values()})
    values = dict.fromkeys(ill_formed_sequences(), DROPPED)
    for character, text in replacements.items():
        if character != "\0":  # not in the trie, but in `data_for_codepoint_zero`
            replacement = text.encode()
            values[character.encode()] = REPLACED | offsets[replacement] << LENGTH_BITS | len(replacement)
    keys = sorted(values)
    trie = dartsclone.DoubleArray()
    trie.build(keys, values=[values[key] for key in keys])
    return _flatbuffer(bytes(trie.array()), pool)


def ill_formed_sequences() -> Iterator[bytes]:
    """Every maximal part of an ill-formed UTF-8 sequence, the unit in which ICU and Python skip bad bytes.

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


def _pool(texts: set[bytes]) -> tuple[bytes, dict[bytes, int]]:
    """One string that contains every text, and the offset of each; shorter texts share the bytes of longer ones."""
    pool, offsets = b"", {}
    for text in sorted(texts, key=lambda text: (-len(text), text)):
        offset = pool.find(text)
        if offset < 0:
            offset = len(pool)
            pool += text
        offsets[text] = offset
    return pool, offsets


def _flatbuffer(trie: bytes, pool: bytes) -> bytes:
    builder = flatbuffers.Builder(len(trie) + len(pool) + 256)
    pool_position = builder.CreateNumpyVector(np.frombuffer(pool, np.uint8))
    trie_position = builder.CreateNumpyVector(np.frombuffer(trie, "<u4"))
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(1, trie_position, 0)
    builder.PrependInt32Slot(2, DROPPED, 0)
    builder.PrependUOffsetTRelativeSlot(3, pool_position, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())
