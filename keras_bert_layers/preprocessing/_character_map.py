"""Reads the compiled character map of a SentencePiece model."""

from __future__ import annotations

import numpy as np

# `Precompiled` of the library `tokenizers` looks up clusters of characters of fewer bytes than this; longer ones
# character by character.
MAX_KEY_BYTES = 5


def read_character_map(data: bytes) -> dict[str, str]:
    """The keys of at most 5 bytes, and what replaces them.

    Args:
        data: `precompiled_charsmap` of a `NormalizerSpec`: the size of a trie in four bytes, the trie, and a pool of
            strings that end with NUL. Empty for a model that replaces nothing.

    Returns:
        Key, a character or several, -> replacement.

    Raises:
        ValueError: the data is damaged.

    References:
        google/sentencepiece, `normalizer.cc`, and darts-clone, `darts.h`.
    """
    if not data:
        return {}
    size = int.from_bytes(data[:4], "little")
    if size % 4 or not 4 <= size <= len(data) - 4 or (len(data) > size + 4 and data[-1] != 0):
        raise ValueError("the map is damaged")
    units, pool = np.frombuffer(data, "<u4", size // 4, 4).astype(np.int64), data[4 + size :]
    nodes, keys = np.array([0]), [b""]
    found: dict[str, str] = {}
    labels = np.arange(1, 256)
    for _ in range(MAX_KEY_BYTES + 1):
        # The children of a node are at `index ^ offset ^ label`; the offset's lowest digits may be left out.
        bases = nodes ^ (units[nodes] >> 10 << ((units[nodes] & 1 << 9) >> 6))
        for index in np.nonzero(units[nodes] >> 8 & 1)[0]:
            start = int(units[bases[index]] & 0x7FFFFFFF)
            found[keys[index].decode()] = pool[start : pool.index(b"\0", start)].decode()
        children = bases[:, None] ^ labels
        inside = children < units.size
        is_child = inside & ((units[np.where(inside, children, 0)] & 0x800000FF) == labels)
        parents, which = np.nonzero(is_child)
        keys = [keys[parent] + bytes([label + 1]) for parent, label in zip(parents, which, strict=True)]
        nodes = children[is_child]
    return found
