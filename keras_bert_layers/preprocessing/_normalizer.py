"""Text to normalised text, and positions in the one back to positions in the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keras_bert_layers._internal.lazy import tf, tf_text
from keras_bert_layers.preprocessing.tables import SIGMA_MARKER, NormalizationTable

CAPITAL_SIGMA = "Σ"
SMALL_SIGMA = "σ"
FINAL_SIGMA = "ς"


class Sources(NamedTuple):
    """Where the bytes of B normalised texts come from.

    Attributes:
        positions: int64 `[.]`, for each byte of each normalised text, and once after its last, a byte of the original:
            its own place if it was copied, the first byte of the character if that was replaced.
        row_splits: int64 `[B + 1]`.
    """

    positions: tf.Tensor
    row_splits: tf.Tensor


class Normalizer:
    """Replaces every character as the reference does: dropped, a blank, lower case, without marks.

    Args:
        table: the reference's table.
    """

    def __init__(self, table: NormalizationTable):
        self.model = tf.constant(np.frombuffer(table.model, np.uint8))
        self._normalizer = tf_text.FastBertNormalizer(model_buffer=self.model)
        self._final_sigma = table.final_sigma
        self.marks_sigmas = table.final_sigma is not None

    def normalize(self, texts: tf.Tensor) -> tf.Tensor:
        """Normalised texts `[B]`, capital sigmas still marked."""
        return self._normalizer.normalize(texts)

    def normalize_with_sources(self, texts: tf.Tensor) -> tuple[tf.Tensor, Sources]:
        """Normalised texts `[B]`, capital sigmas still marked, and where their bytes come from."""
        normalized, positions = self._normalizer.normalize_with_offsets(texts)
        return normalized, Sources(positions.values, positions.row_splits)

    def has_sigma(self, texts: tf.Tensor) -> tf.Tensor:
        """Which of the original texts `[B]` hold a capital sigma, which normalisation marks."""
        return tf.strings.regex_full_match(texts, rf"\C*{CAPITAL_SIGMA}\C*")

    def lower_sigmas(self, normalized: tf.Tensor) -> tf.Tensor:
        """Puts the right small sigma for each marked one; every byte keeps its place."""
        if self._final_sigma is None:
            return normalized
        final = tf.strings.regex_replace(normalized, self._final_sigma, rf"\1{FINAL_SIGMA}\2")
        return tf.strings.regex_replace(final, SIGMA_MARKER, SMALL_SIGMA)


def original_offsets(
    texts: tf.Tensor, sources: Sources, text_of: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Offsets of tokens in the normalised texts -> offsets in the original ones.

    A token ends behind the character that its last byte comes from: one byte on where that byte was copied, the
    character's length on where the character was replaced, since then the position is that of its first byte. So a
    mark that was dropped behind a token is not part of it, and both halves of a taken-apart character cover it.

    Args:
        texts: the original texts, string `[B]`.
        sources: where the bytes of the normalised texts come from.
        text_of: int64 `[T]`, the text of each token.
        starts: int64 `[T]`.
        ends: int64 `[T]`, greater than `starts`.

    Returns:
        Starts and ends, int64 `[T]`.
    """
    first = tf.gather(sources.row_splits, text_of)
    last_positions = tf.gather(sources.positions, first + ends - 1)
    text_starts = tf.cumsum(tf.cast(tf.strings.length(texts), tf.int64), exclusive=True)
    text_bytes = tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8)
    last_bytes = tf.gather(text_bytes, tf.gather(text_starts, text_of) + last_positions)
    return tf.gather(sources.positions, first + starts), last_positions + _steps(last_bytes)


def _steps(byte: tf.Tensor) -> tf.Tensor:
    """How far the end of a character is from one of its bytes: its length from a lead byte, else 1; int64."""
    leads = [tf.cast(byte >= lead, tf.int64) for lead in (0xC0, 0xE0, 0xF0)]
    return 1 + leads[0] + leads[1] + leads[2]
