"""SentencePiece normalization: replaces characters by the character map of a model, as `tokenizers` does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Strings, Tensor
from keras_bert_layers.preprocessing import tables
from keras_bert_layers.preprocessing.engines import engine
from keras_bert_layers.preprocessing.engines.character_table import character_table
from keras_bert_layers.preprocessing.tokens.markers import MARKER, WHITESPACE
from keras_bert_layers.preprocessing.tokens.tokens import joined, num_bytes, rows_of, rows_of_lengths

# `Precompiled` of the library `tokenizers` looks up clusters of characters of fewer bytes than this; longer ones
# character by character.
MAX_KEY_BYTES = 5
MAX_KEY_LENGTH = 3
_CODE_BITS = 21


class CharacterNormalizer:
    """Replaces characters and short clusters of characters, and marks where words begin.

    Whitespace becomes a space, and a marker of words that a text holds gets a space before it, so that words can be
    split at spaces. The engine replaces character by character. The library first looks for clusters of up to
    five bytes: a character with its combining marks. It replaces a whole cluster by what its first characters give. So
    texts in which a cluster could matter are normalized again, cluster by cluster.

    Args:
        character_map: characters, or clusters, -> replacement; empty if the tokenizer replaces none.
    """

    def __init__(self, character_map: Mapping[str, str]):
        single = {key: text for key, text in character_map.items() if len(key) == 1}
        self.spaced = {key: _spaced(single.get(key, key)) for key in {*single, *WHITESPACE, MARKER}}
        self._replacer = engine.text_engine().CharacterReplacer(character_table(self.spaced))
        self.classes = {name: np.array(ranges, np.int64) for name, ranges in tables.clusters().items()}
        self.care_pattern = _care_pattern(character_map, self.classes) if character_map else None
        keys = sorted((key for key in character_map if len(key) <= MAX_KEY_LENGTH), key=_key_number)
        outputs = [[ord(character) for character in character_map[key]] for key in keys]
        self._keys = np.array([_key_number(key) for key in keys], np.int64)
        self._output_splits = np.cumsum([0, *map(len, outputs)])
        self._outputs = np.array([code for output in outputs for code in output], np.int32)

    def normalize(self, texts: tf.Tensor) -> tuple[tf.Tensor, tf.RaggedTensor]:
        """Normalized texts `[B]`, and for each byte its position in the original, ragged int64 `[B, bytes + 1]`.

        The position is that of the same byte if it was copied, or of the character's first byte if the character was
        replaced. Wrong for texts that match `care_pattern`.
        """
        return self._replacer.replace_with_sources(texts)

    def normalize_clusters(self, texts: tf.Tensor) -> tuple[tf.Tensor, tf.RaggedTensor]:
        """As `normalize`, and right for all texts; positions from that of the first byte on."""
        if self.care_pattern is None:
            return self.normalize(texts)
        ragged, byte_starts = tf.strings.unicode_decode_with_offsets(texts, "UTF-8", errors="ignore")
        codes, rows = tf.cast(ragged.values, tf.int64), rows_of(ragged.row_splits)  # [N], N characters
        joins = self._joins(codes, rows)
        cluster = tf.cumsum(tf.cast(~joins, tf.int64)) - 1  # [N]
        first = tf.where(~joins)[:, 0]  # [K], K clusters
        replacement = self._cluster_replacement(codes, first)  # [K]
        is_replaced = tf.gather(replacement >= 0, cluster)  # [N]
        of_character = tf.where(is_replaced, tf.gather(replacement, cluster), self._find(codes))
        # A replaced cluster is one unit, any other character too.
        unit = tf.where(~joins | ~is_replaced)[:, 0]  # [U]
        end = tf.concat([unit[1:], tf.size(codes, tf.int64)[None]], 0)
        return self._written(texts, codes, rows, byte_starts.values, (unit, end, tf.gather(of_character, unit)))

    def _written(self, texts: Strings, codes: Tensor, rows: Tensor, byte_starts: Any, units: Any) -> Any:
        """Writes the replacements of units: index of the first character, index after the last, index of a key."""
        unit, end, key = units
        known = key >= 0
        safe = tf.maximum(key, 0)
        splits, outputs = tf.constant(self._output_splits, tf.int64), tf.constant([*self._outputs, 0], tf.int64)
        begin = tf.gather(splits, safe)
        count = tf.where(known, tf.gather(splits, safe + 1) - begin, 1)
        place = tf.ragged.range(count)
        of_unit, place = rows_of(place.row_splits), place.values  # [M], M characters of output
        written = tf.gather(outputs, tf.gather(begin, of_unit) + tf.where(tf.gather(known, of_unit), place, 0))
        written = tf.where(tf.gather(known, of_unit), written, tf.gather(codes, tf.gather(unit, of_unit)))
        # A character of output comes from the one at its place in the unit. More than the unit has come from its last;
        # and if characters after the unit are dropped, the very last comes from the first of these.
        unit_rows = tf.gather(rows, unit)
        is_dropped = (tf.concat([count[1:], [1]], 0) == 0) & (unit_rows == tf.concat([unit_rows[1:], [-1]], 0))
        takes_next = tf.gather(is_dropped, of_unit) & (place == tf.gather(count, of_unit) - 1)
        last = tf.gather(end, of_unit) - tf.where(takes_next, tf.zeros_like(place), tf.ones_like(place))
        source = tf.minimum(tf.gather(unit, of_unit) + place, last)
        # The library loses count of the characters that it drops at the very beginning of a text.
        source_rows = tf.gather(rows, source)
        num_rows = tf.size(texts, tf.int64)
        row_starts = tf.searchsorted(rows, tf.range(num_rows))
        dropped = tf.math.unsorted_segment_min(source, source_rows, num_rows) - tf.cast(row_starts, tf.int64)
        source -= tf.gather(dropped, source_rows)
        strings = tf.strings.unicode_encode(tf.cast(written, tf.int32)[:, None], "UTF-8")
        strings = tf.where(_in_ranges(written, np.array([[ord(c), ord(c)] for c in WHITESPACE])), " ", strings)
        strings = tf.where(written == ord(MARKER), f" {MARKER}", strings)
        sizes = tf.strings.length(strings)
        string = rows_of_lengths(sizes)
        positions = tf.gather(tf.gather(byte_starts, source), string)
        row_of_bytes = tf.gather(source_rows, string)
        ragged = tf.RaggedTensor.from_value_rowids(strings, source_rows, nrows=num_rows, validate=False)
        sources = tf.RaggedTensor.from_value_rowids(positions, row_of_bytes, nrows=num_rows, validate=False)
        return joined(strings, ragged.row_splits), sources

    def _joins(self, codes: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        """Whether a character belongs to the cluster of the one before it, bool `[N]`."""
        before = tf.concat([tf.constant([0], tf.int64), codes], 0)[:-1]
        in_row = rows == tf.concat([tf.constant([-1], tf.int64), rows], 0)[:-1]
        extend, control = (_in_ranges(codes, self.classes[name]) for name in ("extend", "control"))
        prepend, after_control = (_in_ranges(before, self.classes[name]) for name in ("prepend", "control"))
        line_end = (before == ord("\r")) & (codes == ord("\n"))
        return in_row & ((extend & ~after_control) | (prepend & ~control) | line_end)

    def _cluster_replacement(self, codes: tf.Tensor, first: tf.Tensor) -> tf.Tensor:
        """The index of the shortest key that begins each cluster of several characters, or -1; int64 `[K]`."""
        end = tf.concat([first[1:], tf.size(codes, tf.int64)[None]], 0)
        sizes = num_bytes(codes)
        total = tf.concat([tf.zeros([1], tf.int64), tf.cumsum(sizes)], 0)
        is_short = (end - first > 1) & (tf.gather(total, end) - tf.gather(total, first) <= MAX_KEY_BYTES)
        padded = tf.concat([codes, tf.zeros([MAX_KEY_LENGTH], tf.int64)], 0)
        found, numbers = -tf.ones_like(first), tf.zeros_like(first)
        for length in range(MAX_KEY_LENGTH):
            code = tf.gather(padded, first + length)
            numbers += tf.bitwise.left_shift(code, tf.constant(_CODE_BITS * (2 - length), tf.int64))
            key = tf.where(first + length < end, self._find_numbers(numbers), -1)
            found = tf.where(found >= 0, found, key)
        return tf.where(is_short, found, -1)

    def _find(self, codes: tf.Tensor) -> tf.Tensor:
        return self._find_numbers(tf.bitwise.left_shift(codes, tf.constant(2 * _CODE_BITS, tf.int64)))

    def _find_numbers(self, numbers: tf.Tensor) -> tf.Tensor:
        """The index of each key, or -1; int64."""
        keys = tf.constant(np.append(self._keys, np.iinfo(np.int64).max))
        index = tf.cast(tf.searchsorted(keys, numbers), tf.int64)
        return tf.where(tf.gather(keys, index) == numbers, index, -1)


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


def _in_ranges(codes: tf.Tensor, ranges: np.ndarray) -> tf.Tensor:
    """Whether codes are in sorted ranges `[R, 2]`, bool."""
    index = tf.searchsorted(tf.constant(ranges[:, 0], tf.int64), codes, side="right") - 1
    return (index >= 0) & (codes <= tf.gather(tf.constant(ranges[:, 1], tf.int64), tf.maximum(index, 0)))


def _spaced(text: str) -> str:
    return "".join(" " if c in WHITESPACE else f" {MARKER}" if c == MARKER else c for c in text)


def _key_number(key: str) -> int:
    codes = [*map(ord, key), 0, 0]
    return sum(codes[place] << _CODE_BITS * (2 - place) for place in range(3))


def _care_pattern(character_map: Mapping[str, str], classes: Mapping[str, np.ndarray]) -> str:
    """An RE2 pattern of what `normalize` gets wrong: clusters with a key, and dropped characters at the beginning."""
    firsts = {ord(key[0]) for key in character_map}
    extend = "".join(f"\\x{{{a:x}}}-\\x{{{b:x}}}" for a, b in classes["extend"])
    prepending = [code for code in firsts for a, b in classes["prepend"] if a <= code <= b]
    patterns = [f"[{re2_class(firsts)}][{extend}]"]
    patterns += [f"[{re2_class(prepending)}]"] if prepending else []
    line_end = character_map.get("\r", character_map.get("\r\n"))
    if line_end is not None and _spaced(line_end) != " ":
        patterns.append("\r\n")
    dropped = [ord(key) for key, text in character_map.items() if len(key) == 1 and not text]
    if dropped:
        longer = [ord(key) for key, text in character_map.items() if len(key) == 1 and len(text) > 1]
        patterns += [rf"\A[{re2_class(dropped)}]"]
        patterns += [f"[{re2_class(longer)}][{re2_class(dropped)}]"] if longer else []
    return "|".join(patterns)


def re2_class(codes: Iterable[int]) -> str:
    """Sorted codes as the inside of a character class, runs as ranges."""
    runs: list[list[int]] = []
    for code in sorted(codes):
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return "".join(f"\\x{{{a:x}}}-\\x{{{b:x}}}" for a, b in runs)
