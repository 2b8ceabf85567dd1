"""Finds added tokens in raw text: special tokens, markers, and words that a user added to a vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.engines.spans import NOT_FORCED, Spans, cut, encode_spans
from keras_bert_layers.preprocessing.tables import NormalizationTable
from keras_bert_layers.preprocessing.tokens.markers import WHITESPACE, any_of, contains
from keras_bert_layers.preprocessing.tokens.token_ids import AddedToken
from keras_bert_layers.preprocessing.tokens.tokens import Tokens
from keras_bert_layers.preprocessing.word_piece.normalizer import SPACE, ExactNormalizer

NUM_BUCKETS = 2**62
# ASCII punctuation, what is rare in texts first.
PUNCTUATION = "[]<>{}|~^`\\=@_#*&+%$/!?;:()\"'-,."
Encode: TypeAlias = "Callable[[tf.Tensor], Tokens]"


class AddedTokens:
    """Finds added tokens: some in the text as it is written, the others in what is left of it after normalization.

    transformers' fast BertTokenizer does so; its special tokens, such as "[SEP]", are of the first kind.

    Args:
        tokens: at least one token.
        ids: from a token's content to its id.
        table: the reference's table.
        normalize: normalizes strings with this table.
        split_chinese: whether Chinese characters are put between spaces.

    Attributes:
        traces: characters of which one is a separate token, or part of an unknown word, wherever an added token is
            written; empty if an added token leaves no trace, so that texts must be searched.
    """

    def __init__(
        self,
        tokens: Sequence[AddedToken],
        ids: Callable[[str], int],
        table: NormalizationTable,
        normalize: Callable[[tf.Tensor], tf.Tensor],
        *,
        split_chinese: bool,
    ):
        # Of tokens that normalization makes equal, the library takes the first special one, or else the first.
        tokens = sorted(tokens, key=lambda token: not token.special)
        literal = [token.content for token in tokens if not token.normalized]
        normalized = [token for token in tokens if token.normalized]
        self._literal = self._words = None
        if literal:
            self._literal = TokenMatcher([token for token in tokens if not token.normalized], ids, literal, table.word)
        if normalized:
            self._exact = ExactNormalizer(table, normalize, split_chinese=split_chinese)
            contents = self._exact.normalize(tf.constant([token.content for token in normalized]))[0].numpy()
            # Nothing is left of an accent alone, for example, and no text holds it.
            found = {token: text.decode() for token, text in zip(normalized, contents, strict=True) if text}
            if found:
                word = table.word + _stand_ins_of_letters(table)
                self._words = TokenMatcher(list(found), ids, list(found.values()), word)
                # `normalize` and the exact normalizer put spaces at other places, but in a content as in a text, except
                # at its ends. A content of nothing but spaces can be anywhere.
                plain = normalize(tf.constant([token.content for token in found])).numpy()
                self._candidates = any_of({text.decode().strip(SPACE) for text in plain})
        marks = [next((mark for mark in PUNCTUATION if mark in content), "") for content in literal]
        self.traces = set(marks) if self._words is None and all(marks) else set()

    def may_have(self, texts: tf.Tensor, normalized: tf.Tensor) -> tf.Tensor:
        """Whether a text may contain an added token, bool `[B]`; `normalized` is what `normalize` makes of it."""
        found = [] if self._literal is None else [self._literal.has_any(texts)]
        if self._words is not None:
            found.append(contains(normalized, self._candidates))
        return tf.reduce_any(tf.stack(found), 0) if found else tf.zeros_like(texts, tf.bool)

    def encode(self, texts: tf.Tensor, encode_text: Encode, encode_normalized: Encode) -> Tokens:
        """The tokens of texts `[B]`.

        Args:
            texts: the texts.
            encode_text: encodes text without added tokens.
            encode_normalized: encodes normalized text without added tokens.
        """
        encode, words = encode_text, self._words
        if words is not None:

            def encode(rest: tf.Tensor) -> Tokens:
                normalized, origins = self._exact.normalize(rest)
                return origins.in_original(encode_spans(words.cut(normalized), encode_normalized))

        return encode(texts) if self._literal is None else encode_spans(self._literal.cut(texts), encode)


class TokenMatcher:
    """Cuts texts at tokens.

    Args:
        tokens: the tokens.
        ids: from a token's content to its id.
        contents: the text to look for, per token; of equal ones the first counts.
        word: the characters that may not be next to a token with `single_word`, for an RE2 character class.

    Raises:
        ValueError: a token with `rstrip` could take the whitespace with which another token begins.

    References:
        `added_vocabulary.rs` in huggingface/tokenizers.
    """

    def __init__(self, tokens: Sequence[AddedToken], ids: Callable[[str], int], contents: Sequence[str], word: str):
        by_content: dict[str, AddedToken] = {}
        for token, content in zip(tokens, contents, strict=True):
            by_content.setdefault(content, token)
        leading = [token.content for content, token in by_content.items() if content[0].isspace()]
        if leading and any(token.rstrip for token in by_content.values()):
            rule = "hold no token that begins with whitespace (or, after normalization, with a Chinese character)"
            cure = "Beside a token with rstrip=True it is undefined which of them takes the whitespace."
            raise ValueError(checks.message("BertTokenizer", "added_tokens", rule, leading[:5], cure))
        self.pattern = any_of(by_content)
        self._word = word

        hashes = tf.strings.to_hash_bucket_fast(list(by_content), NUM_BUCKETS).numpy()
        order = np.argsort(hashes)
        self._hashes = hashes[order]
        self._longest = max(len(content.encode()) for content in by_content)
        self._contents = np.array(list(by_content), object)[order]
        found = [list(by_content.values())[index] for index in order]
        self._ids = np.array([ids(token.content) for token in found], np.int32)
        self._single_word, self._lstrip, self._rstrip = (
            np.array([getattr(token, flag) for token in found], bool) for flag in ("single_word", "lstrip", "rstrip")
        )

    def has_any(self, texts: tf.Tensor) -> tf.Tensor:
        """Whether a text contains a token, bool `[B]`."""
        return contains(texts, self.pattern)

    def cut(self, texts: tf.Tensor) -> Spans:
        """Splits texts `[B]` into spans: tokens with their ids, and the text between them."""
        # "Start of heading" is dropped as NUL is, and is one byte too.
        texts = tf.strings.regex_replace(texts, r"\x00", "\x01")
        spans, tokens = self._identified(cut(texts, self.pattern, self.pattern))
        if self._single_word.any():
            spans, tokens = self._single_words(spans, tokens)
        if self._lstrip.any() or self._rstrip.any():
            spans = self._with_whitespace(spans, tokens)
        return spans

    def _identified(self, spans: Spans) -> tuple[Spans, tf.Tensor]:
        """The spans with the ids of tokens, and the index of each span's token (any for other spans)."""
        # Of a longer text, which is no token, no more than shows that it is none.
        beginnings = tf.strings.substr(spans.texts, 0, self._longest + 1)
        hashes = tf.strings.to_hash_bucket_fast(beginnings, NUM_BUCKETS)
        tokens = tf.minimum(tf.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        is_token = tf.gather(self._contents, tokens) == spans.texts
        return spans._replace(forced_ids=tf.where(is_token, tf.gather(self._ids, tokens), NOT_FORCED)), tokens

    def _single_words(self, spans: Spans, tokens: tf.Tensor) -> tuple[Spans, tf.Tensor]:
        """Joins tokens that must be single words, and are not, with the text around them."""
        is_token = spans.forced_ids != NOT_FORCED
        before = tf.strings.regex_full_match(spans.texts, rf"\C*[{self._word}]")
        after = tf.strings.regex_full_match(spans.texts, rf"[{self._word}]\C*")
        beside = _after(before, spans) | _before(after, spans)
        is_token &= ~(tf.gather(self._single_word, tokens) & beside)
        begins = is_token | _after(is_token, spans) | _is_first(spans)
        index = tf.cumsum(tf.cast(begins, tf.int32)) - 1
        num_spans = tf.reduce_sum(tf.cast(begins, tf.int32))
        row_splits = tf.gather(tf.concat([[0], index + 1], 0), spans.row_splits)
        joined = Spans(
            texts=tf.strings.unsorted_segment_join(spans.texts, index, num_spans),
            row_splits=tf.cast(row_splits, tf.int64),
            starts=tf.boolean_mask(spans.starts, begins),
            ends=tf.math.segment_max(spans.ends, index),
            forced_ids=tf.math.segment_max(tf.where(is_token, spans.forced_ids, NOT_FORCED), index),
        )
        return joined, tf.boolean_mask(tokens, begins)

    def _with_whitespace(self, spans: Spans, tokens: tf.Tensor) -> Spans:
        """Moves whitespace from the text beside tokens with `lstrip` or `rstrip` to these."""
        is_token = spans.forced_ids != NOT_FORCED
        leading = _after(is_token & tf.gather(self._rstrip, tokens), spans) & ~is_token
        trailing = _before(is_token & tf.gather(self._lstrip, tokens), spans) & ~is_token
        texts = tf.where(leading, tf.strings.regex_replace(spans.texts, f"^[{WHITESPACE}]+", ""), spans.texts)
        num_leading = _num_bytes(spans.texts) - _num_bytes(texts)
        rest = tf.where(trailing, tf.strings.regex_replace(texts, f"[{WHITESPACE}]+$", ""), texts)
        num_trailing = _num_bytes(texts) - _num_bytes(rest)
        starts = spans.starts + num_leading - _after(num_trailing, spans)
        ends = spans.ends - num_trailing + _before(num_leading, spans)
        stays = starts < ends
        num_before = tf.concat([[0], tf.cumsum(tf.cast(stays, tf.int64))], 0)
        kept = [tf.boolean_mask(part, stays) for part in (rest, starts, ends, spans.forced_ids)]
        return Spans(kept[0], tf.gather(num_before, spans.row_splits), *kept[1:])


def _num_bytes(texts: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.strings.length(texts), tf.int64)


def _is_first(spans: Spans) -> tf.Tensor:
    """Whether a span is the first of its text, bool `[P]`."""
    num_spans = tf.size(spans.texts, tf.int64)
    # Texts without spans at the end would begin after the last span.
    counts = tf.math.bincount(tf.cast(spans.row_splits[:-1], tf.int32), minlength=tf.cast(num_spans, tf.int32) + 1)
    return counts[: tf.cast(num_spans, tf.int32)] > 0


def _after(values: tf.Tensor, spans: Spans) -> tf.Tensor:
    """For each span the value of the one before it in its text, or zero."""
    shifted = tf.concat([tf.zeros_like(values[:1]), values[:-1]], 0)
    return tf.where(_is_first(spans), tf.zeros_like(values), shifted)


def _before(values: tf.Tensor, spans: Spans) -> tf.Tensor:
    """For each span the value of the one after it in its text, or zero."""
    is_last = tf.concat([_is_first(spans)[1:], tf.ones_like(values[:1], tf.bool)], 0)
    shifted = tf.concat([values[1:], tf.zeros_like(values[:1])], 0)
    return tf.where(is_last, tf.zeros_like(values), shifted)


def _stand_ins_of_letters(table: NormalizationTable) -> str:
    """What stands for letters, digits, marks and underscores that tf.text treats as punctuation."""
    is_word = tf.strings.regex_full_match([chr(letter) for letter in table.stand_ins], f"[{table.word}]").numpy()
    return "".join(chr(c) for c, is_letter in zip(table.stand_ins.values(), is_word, strict=True) if is_letter)
