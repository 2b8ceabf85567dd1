"""Normalizes text, and maps positions in normalized text back to the original."""

from __future__ import annotations

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.engines import engine
from keras_bert_layers.preprocessing.tables import SIGMA_MARKER, NormalizationTable

CAPITAL_SIGMA = "Σ"
SMALL_SIGMA = "σ"
FINAL_SIGMA = "ς"


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
