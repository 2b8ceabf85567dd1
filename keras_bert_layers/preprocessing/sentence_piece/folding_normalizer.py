"""`FoldingNormalizer`: ALBERT's normalization, which folds characters before a model's map replaces them."""

from __future__ import annotations

from collections.abc import Mapping

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import tables
from keras_bert_layers.preprocessing.engines import engine
from keras_bert_layers.preprocessing.engines.character_table import character_table
from keras_bert_layers.preprocessing.sentence_piece.normalizer import CharacterNormalizer, re2_class
from keras_bert_layers.preprocessing.tokens.tokens import rows_of

# Two of these are one double quote, which comes from the second. The byte before it is not UTF-8, so that the table of
# the next step drops it, and every other byte keeps its place.
_QUOTES, _QUOTE = "``|''", b'\xff"'


class FoldingNormalizer:
    """Makes double quotes of two single ones, folds characters, and replaces them as a `CharacterNormalizer`.

    Args:
        character_map: as of a `CharacterNormalizer`.
        lowercase: whether letters become small.
        strip_accents: whether characters become their parts (NFKD), of which marks are dropped.
    """

    def __init__(self, character_map: Mapping[str, str], *, lowercase: bool, strip_accents: bool):
        folding = tables.folding(lowercase=lowercase, strip_accents=strip_accents)
        self._mapped = CharacterNormalizer(character_map)
        spaced = self._mapped.spaced
        both = {c: "".join(spaced.get(part, part) for part in folding.get(c, c)) for c in {*folding, *spaced}}
        new_replacer = engine.text_engine().CharacterReplacer
        self._replacer, self._folder = new_replacer(character_table(both)), new_replacer(character_table(folding))
        self.care_pattern = self._of_risky(character_map, folding) if character_map else None

    def _of_risky(self, character_map: Mapping[str, str], folding: Mapping[str, str]) -> str:
        """An RE2 pattern of characters that become others which may form clusters, or which the map drops."""
        ranges = [range(a, b + 1) for name in ("extend", "prepend") for a, b in self._mapped.classes[name].tolist()]
        risky = {chr(code) for codes in ranges for code in codes} | {c for c, text in character_map.items() if not text}
        found = {c for c, text in folding.items() if risky & {*text}} | (risky - {*folding})
        line_end = "|\r\n" if "\r\n" in str(self._mapped.care_pattern) else ""
        return f"[{re2_class(map(ord, found))}]{line_end}"

    def normalize(self, texts: tf.Tensor) -> tuple[tf.Tensor, tf.RaggedTensor]:
        """See `CharacterNormalizer`; both steps at once."""
        return self._replacer.replace_with_sources(_with_double_quotes(texts))

    def normalize_clusters(self, texts: tf.Tensor) -> tuple[tf.Tensor, tf.RaggedTensor]:
        """See `CharacterNormalizer`."""
        folded, origins = self._folder.replace_with_sources(_with_double_quotes(texts))
        replaced, sources = self._mapped.normalize_clusters(folded)
        first = tf.gather(origins.row_splits, rows_of(sources.row_splits))
        return replaced, sources.with_values(tf.gather(origins.values, first + sources.values))


def _with_double_quotes(texts: tf.Tensor) -> tf.Tensor:
    return tf.strings.regex_replace(texts, _QUOTES, _QUOTE)
