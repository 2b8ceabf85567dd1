"""Writes a character table in the format of tf.text's FastBertNormalizer."""

from __future__ import annotations

import dartsclone
import flatbuffers
import numpy as np

from keras_bert_layers.preprocessing.engines.character_table import LENGTH_BITS, REPLACED, ill_formed_sequences

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
