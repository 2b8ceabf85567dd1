"""WordPiece segmentation of normalized text: the longest pieces first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.engines import engine
from keras_bert_layers.preprocessing.engines.spans import NOT_FORCED, cut, encode_spans
from keras_bert_layers.preprocessing.tables import SIGMA_MARKER, NormalizationTable
from keras_bert_layers.preprocessing.tokens.markers import SUFFIX
from keras_bert_layers.preprocessing.tokens.tokens import Tokens

# tensorflow/text, `fast_wordpiece_tokenizer_utils.h`: a token's length is stored in eight bits.
MAX_TOKEN_BYTES = 256
# Starts the substitute of a token that no text can match: both references drop this control character.
NEVER = "\x01"


class WordPieces:
    """Greedy longest-match-first over a vocabulary, with the reference's limit on word length.

    The references count the characters of a word, the op of tf.text counts its bytes. So whole texts are encoded with
    the limit in bytes. The result is right unless a word is longer than that; such a word is recognized, because the op
    turns it into one [UNK]. Texts with such a word are encoded again word by word, with a limit that the op never
    reaches. An engine that cannot split texts encodes all of them word by word.

    Args:
        vocabulary: the tokens.
        table: the reference's table.
        max_word_length: a word of more characters becomes [UNK].
        split_chinese: whether every Chinese character is a separate word.
        unknown: the token for words that the vocabulary cannot compose, in letters and punctuation of ASCII.
    """

    def __init__(
        self,
        vocabulary: Sequence[str],
        table: NormalizationTable,
        *,
        max_word_length: int,
        split_chinese: bool,
        unknown: str,
    ):
        tokens = list(matchable(vocabulary, table, max_word_length))
        self._model = engine.text_engine().WordPieceModel(
            tokens, max_word_length=max_word_length, unknown=unknown, splits_texts=split_chinese
        )
        self.unknown_id = tokens.index(unknown)
        self.splits_texts = self._model.splits_texts
        self._max_word_length = max_word_length
        self._boundaries = boundaries(table, split_chinese=split_chinese)

    def encode_texts(self, normalized: tf.Tensor) -> Tokens:
        """The tokens of whole texts `[B]`; wrong for texts for which `has_long_word` is true."""
        return self._model.encode_texts(normalized)

    def has_long_word(self, tokens: Tokens, num_texts: tf.Tensor) -> tf.Tensor:
        """Whether a text has a word of more bytes than the limit, bool `[B]`; `tokens` are from `encode_texts`."""
        long_tokens = tf.where(tokens.ends - tokens.starts > self._max_word_length)[:, 0]
        texts = tf.gather(tokens.texts_of(), long_tokens)
        return tf.math.unsorted_segment_sum(tf.ones_like(texts), texts, num_texts) > 0

    def encode_words(self, normalized: tf.Tensor) -> Tokens:
        """The tokens of texts `[B]`, right for all texts."""
        words = cut(normalized, *self._boundaries)
        is_long = tf.strings.length(words.texts, unit="UTF8_CHAR") > self._max_word_length
        words = words._replace(forced_ids=tf.where(is_long, self.unknown_id, NOT_FORCED))
        return encode_spans(words, self._model.encode_words)


def boundaries(table: NormalizationTable, *, split_chinese: bool) -> tuple[str, str]:
    """RE2 patterns of the boundaries between words of normalized text, and of the boundaries that are words."""
    kept = table.punctuation + (table.chinese if split_chinese else "")
    return f"[ {kept}]", f"[{kept}]"


def matchable(vocabulary: Sequence[str], table: NormalizationTable, max_word_length: int) -> Iterator[str]:
    """The vocabulary as the op needs it: with stand-ins, and with substitutes for tokens that no word can match.

    The op would match a token with whitespace across two words, reject a token that is too long, and match a token that
    contains a stand-in. Of equal tokens the last counts.
    """
    last = {token: index for index, token in enumerate(vocabulary)}
    impossible = re.compile(f"[\x00-\x20\x7f-\x9f{SIGMA_MARKER}{''.join(map(chr, table.stand_ins.values()))}]")
    for index, token in enumerate(vocabulary):
        if not token or last[token] != index:
            yield f"{NEVER}{index}"
            continue
        if token.isascii() and token.isprintable() and " " not in token and len(token) <= max_word_length:
            yield token  # most tokens, without the slower checks below
            continue
        piece = token.translate(table.stand_ins).removeprefix(SUFFIX)
        if impossible.search(token) or len(piece) > max_word_length:
            yield f"{NEVER}{index}"
        elif len(piece.encode()) > MAX_TOKEN_BYTES:
            rule = f"hold no token of more than {MAX_TOKEN_BYTES} bytes, {SUFFIX} not counted"
            cure = f"Token {index} is {token!r}; the WordPiece op of tensorflow-text cannot hold it."
            raise ValueError(checks.message("BertTokenizer", "vocabulary", rule, f"{len(vocabulary)} tokens", cure))
        else:
            yield token.translate(table.stand_ins)
    yield NEVER  # the op needs at least one token that is not punctuation
