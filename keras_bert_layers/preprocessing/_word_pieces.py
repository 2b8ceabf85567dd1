"""WordPiece ids from normalized text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf, tf_text
from keras_bert_layers.preprocessing import _tf_text_internals
from keras_bert_layers.preprocessing._tokens import NOT_FORCED, Tokens, cut, encode_spans
from keras_bert_layers.preprocessing.tables import SIGMA_MARKER, NormalizationTable

SUFFIX = "##"
MAX_CHARACTER_BYTES = 4
# tensorflow/text, `fast_wordpiece_tokenizer_utils.h`: a token's length is stored in eight bits.
MAX_TOKEN_BYTES = 256
# tensorflow/text, `fast_wordpiece_tokenizer_model.fbs`: the index of the field `max_bytes_per_token`.
MAX_BYTES_FIELD = 4
# Starts the substitute of a token that no text can match: both references drop this control character.
NEVER = "\x01"


class WordPieces:
    """Greedy longest-match-first over a vocabulary, by an op of tf.text, with the reference's limit on word length.

    The references count the characters of a word, the op counts its bytes. So whole texts are encoded with the limit in
    bytes. The result is right unless a word is longer than that; such a word is recognized, because the op turns it
    into one [UNK]. Texts with such a word are encoded again word by word, with a limit that the op never reaches.

    Args:
        vocabulary: the tokens.
        table: the reference's table.
        max_word_length: a word of more characters becomes [UNK].
        split_chinese: whether every Chinese character is a word of its own.
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
        tokens = list(_matchable(vocabulary, table, max_word_length))
        max_bytes = max_word_length if split_chinese else MAX_CHARACTER_BYTES * max_word_length
        model = _build_model(tokens, max_bytes, unknown, split_texts=split_chinese)
        self.unknown_id = tokens.index(unknown)
        self.splits_texts = split_chinese
        self._max_word_length = max_word_length
        self._model = tf.constant(np.frombuffer(model, np.uint8))
        self._max_bytes_position = _field_position(model, MAX_BYTES_FIELD)
        boundaries = table.punctuation + (table.chinese if split_chinese else "")
        self._boundary, self._kept_boundary = f"[ {boundaries}]", f"[{boundaries}]"

    def encode_texts(self, normalized: tf.Tensor) -> Tokens:
        """The tokens of whole texts `[B]`; wrong for texts for which `has_long_word` is true."""
        return _encode(normalized, self._model)

    def has_long_word(self, tokens: Tokens, num_texts: tf.Tensor) -> tf.Tensor:
        """Whether a text has a word of more bytes than the limit, bool `[B]`; `tokens` are from `encode_texts`."""
        long_tokens = tf.where(tokens.ends - tokens.starts > self._max_word_length)[:, 0]
        texts = tf.gather(tokens.texts_of(), long_tokens)
        return tf.math.unsorted_segment_sum(tf.ones_like(texts), texts, num_texts) > 0

    def encode_words(self, normalized: tf.Tensor) -> Tokens:
        """The tokens of texts `[B]`, right for all texts."""
        words = cut(normalized, self._boundary, self._kept_boundary)
        is_long = tf.strings.length(words.texts, unit="UTF8_CHAR") > self._max_word_length
        words = words._replace(forced_ids=tf.where(is_long, self.unknown_id, NOT_FORCED))
        model = self._model
        if self.splits_texts:
            limit = np.array([MAX_CHARACTER_BYTES * self._max_word_length], "<i4").view(np.uint8)
            indices = np.arange(self._max_bytes_position, self._max_bytes_position + limit.size)
            model = tf.tensor_scatter_nd_update(model, indices[:, None], limit)
        return encode_spans(words, lambda texts: _encode(texts, model))


def _encode(texts: tf.Tensor, model: tf.Tensor) -> Tokens:
    tokenizer = tf_text.FastWordpieceTokenizer(model_buffer=model, token_out_type=tf.int32)
    ids, starts, ends = tokenizer.tokenize_with_offsets(texts)
    return Tokens(ids.values, ids.row_splits, starts.values, ends.values)


def _matchable(vocabulary: Sequence[str], table: NormalizationTable, max_word_length: int) -> Iterator[str]:
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


def _build_model(tokens: list[str], max_bytes: int, unknown: str, *, split_texts: bool) -> bytes:
    """The flatbuffer of the op's model, from the builder that `FastWordpieceTokenizer` uses."""
    build = _tf_text_internals.find(_tf_text_internals.BUILD_WORDPIECE_MODEL)
    return build(tokens, max_bytes, SUFFIX, unknown, not split_texts, False)


def _field_position(model: bytes, field: int) -> int:
    """The position of a scalar field of the root table in a flatbuffer.

    References:
        FlatBuffers, "Internals": the first four bytes are the root's position; a table starts with the distance back to
        its list of fields, whose entries after the first two are distances from the table, two bytes each.
    """
    root = int.from_bytes(model[:4], "little")
    fields = root - int.from_bytes(model[root : root + 4], "little", signed=True)
    entry = fields + 2 * (2 + field)
    return root + int.from_bytes(model[entry : entry + 2], "little")
