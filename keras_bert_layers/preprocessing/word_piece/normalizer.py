"""Normalization of text: lower case, accents, whitespace and control characters, as the reference has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.engines import engine
from keras_bert_layers.preprocessing.tables import SIGMA_MARKER, NormalizationTable
from keras_bert_layers.preprocessing.tokens.tokens import Tokens, joined, num_bytes, rows_of_lengths

CAPITAL_SIGMA = "Σ"
SMALL_SIGMA = "σ"
FINAL_SIGMA = "ς"
SPACE = " "


class Normalizer:
    """Replaces every character as the reference does: drops it, makes it a space or lower case, or strips its marks.

    Args:
        table: the reference's table.
    """

    def __init__(self, table: NormalizationTable):
        self._replacer = engine.text_engine().CharacterReplacer(table.model)
        self._final_sigma = table.final_sigma
        self.marks_sigmas = table.final_sigma is not None

    def normalize(self, texts: tf.Tensor) -> tf.Tensor:
        """Normalized texts `[B]`, capital sigmas still marked."""
        return self._replacer.replace(texts)

    def normalize_with_sources(self, texts: tf.Tensor) -> tuple[tf.Tensor, tf.RaggedTensor]:
        """Normalized texts `[B]`, capital sigmas still marked, and the origins of their bytes.

        Returns:
            The texts, and for each byte of each of them, and for its end, a position in the original, ragged int64
            `[B, bytes + 1]`: that of the same byte if it was copied, or of the character's first byte if the character
            was replaced.
        """
        return self._replacer.replace_with_sources(texts)

    def has_sigma(self, texts: tf.Tensor) -> tf.Tensor:
        """Whether an original text contains a capital sigma, which normalization marks; bool `[B]`."""
        return tf.strings.regex_full_match(texts, rf"\C*{CAPITAL_SIGMA}\C*")

    def lower_sigmas(self, normalized: tf.Tensor) -> tf.Tensor:
        """Replaces each marked sigma by the right small one; all bytes keep their positions."""
        if self._final_sigma is None:
            return normalized
        final = tf.strings.regex_replace(normalized, self._final_sigma, rf"\1{FINAL_SIGMA}\2")
        return tf.strings.regex_replace(final, SIGMA_MARKER, SMALL_SIGMA)


class Origins(NamedTuple):
    """Where the bytes of B normalized texts come from.

    Attributes:
        row_starts: int64 `[B]`, the index of each text's first byte among the bytes of all.
        starts: int64, for each byte of all texts, the byte of its text at which its character starts.
        ends: int64, the byte after that character.
    """

    row_starts: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor

    def in_original(self, tokens: Tokens) -> Tokens:
        """The tokens of normalized texts, with offsets in the original texts."""
        first = tf.gather(self.row_starts, tokens.texts_of())
        starts, last = first + tokens.starts, first + tokens.ends - 1
        return tokens._replace(starts=tf.gather(self.starts, starts), ends=tf.gather(self.ends, last))


class ExactNormalizer:
    """Normalizes text as the reference does, without the changes that the ops of tf.text need.

    `Normalizer` also puts spaces around characters that the reference splits off and tf.text does not, and leaves out
    the reference's spaces around Chinese characters. Where added tokens are looked for, spaces count.

    Args:
        table: the reference's table.
        normalize: normalizes strings with this table.
        split_chinese: whether the reference puts Chinese characters between spaces.
    """

    def __init__(self, table: NormalizationTable, normalize: Callable[[tf.Tensor], tf.Tensor], *, split_chinese: bool):
        self._normalize = normalize
        self._chinese = f"[{table.chinese}]" if split_chinese else None

    def normalize(self, texts: tf.Tensor) -> tuple[tf.Tensor, Origins]:
        """Normalized texts `[B]`, letters with stand-ins replaced by these, and the origins of their bytes."""
        codes, starts = tf.strings.unicode_decode_with_offsets(texts, "UTF-8", errors="ignore")
        kinds, kind_of = tf.unique(codes.values)
        replacements = tf.gather(self._replacements(tf.strings.unicode_encode(kinds[:, None], "UTF-8")), kind_of)
        normalized = joined(replacements, codes.row_splits)
        lengths = tf.cast(tf.strings.length(normalized), tf.int64)
        character = rows_of_lengths(tf.strings.length(replacements))
        ends = starts.values + num_bytes(codes.values)
        origins = (tf.gather(positions, character) for positions in (starts.values, ends))
        return normalized, Origins(tf.cumsum(lengths, exclusive=True), *origins)

    def _replacements(self, characters: tf.Tensor) -> tf.Tensor:
        """What the reference replaces each character by, without the spaces around it that are for tf.text only."""
        found = self._normalize(characters)
        plain = tf.where(found == SPACE, SPACE, tf.strings.regex_replace(found, SPACE, ""))
        if self._chinese is None:
            return plain
        # A letter with a stand-in is not Chinese to the reference.
        return tf.where(tf.strings.regex_full_match(plain, self._chinese), SPACE + plain + SPACE, plain)
