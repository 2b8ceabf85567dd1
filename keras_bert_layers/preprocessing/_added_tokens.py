"""Added tokens written in raw text: special tokens, markers, and words that a user added to a vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing._characters import SPACE, Characters
from keras_bert_layers.preprocessing._patterns import any_of, contains
from keras_bert_layers.preprocessing._token_matcher import TokenMatcher
from keras_bert_layers.preprocessing._tokens import Tokens, encode_spans
from keras_bert_layers.preprocessing.added_token import AddedToken
from keras_bert_layers.preprocessing.tables import NormalizationTable

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
        traces: characters of which one is a token of its own, or part of an unknown word, wherever an added token is
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
        literal = [token for token in tokens if not token.normalized]
        words = [token for token in tokens if token.normalized]
        self._literal: TokenMatcher | None = None
        if literal:
            self._literal = TokenMatcher(literal, ids, [token.content for token in literal], table.word)
        self._words: TokenMatcher | None = None
        self._candidates = ""
        if words:
            self._characters = Characters(table, normalize, split_chinese=split_chinese)
            self._set_words(words, ids, table, normalize)
        marks = [next((mark for mark in PUNCTUATION if mark in token.content), "") for token in literal]
        self.traces = set(marks) if self._words is None and all(marks) else set()

    def _set_words(
        self,
        words: list[AddedToken],
        ids: Callable[[str], int],
        table: NormalizationTable,
        normalize: Callable[[tf.Tensor], tf.Tensor],
    ) -> None:
        contents = tf.constant([token.content for token in words])
        texts = [text.decode() for text in self._characters.normalize(contents)[0].numpy()]
        # Nothing is left of an accent alone, for example, and no text holds it.
        found = [(token, text) for token, text in zip(words, texts, strict=True) if text]
        if not found:
            return
        letters = [chr(letter) for letter in table.stand_ins]
        is_word = tf.strings.regex_full_match(letters, f"[{table.word}]").numpy()
        stand_ins = "".join(chr(c) for c, is_letter in zip(table.stand_ins.values(), is_word, strict=True) if is_letter)
        words = [token for token, _ in found]
        self._words = TokenMatcher(words, ids, [text for _, text in found], table.word + stand_ins)
        # `normalize` and `Characters` put spaces at other places, but in a content as in a text, except at its ends. A
        # content of nothing but spaces can be anywhere.
        plain = {
            text.decode().strip(SPACE) for text in normalize(tf.constant([token.content for token in words])).numpy()
        }
        self._candidates = any_of(plain)

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
                normalized, origins = self._characters.normalize(rest)
                return origins.in_original(encode_spans(words.cut(normalized), encode_normalized))

        return encode(texts) if self._literal is None else encode_spans(self._literal.cut(texts), encode)
