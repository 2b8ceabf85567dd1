"""`BytePairTokenizer`: the byte-level BPE of RoBERTa and ModernBERT, in TensorFlow graph."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers.preprocessing.byte_level.merges import ByteMerges, byte_characters
from keras_bert_layers.preprocessing.byte_level.text_encoder import BytePairTextEncoder
from keras_bert_layers.preprocessing.engines.composition import Composer
from keras_bert_layers.preprocessing.engines.spans import SpecialTokens
from keras_bert_layers.preprocessing.tokenizer import WORD_BOUNDARIES, Tokenizer
from keras_bert_layers.preprocessing.tokens.token_ids import (
    TokenIds,
    checked_special_tokens,
    checked_vocabulary,
)
from keras_bert_layers.preprocessing.tokens.tokens import joined_on_last_axis

OWNER = "BytePairTokenizer"
_SPACE = byte_characters()[ord(" ")]
_BYTES = {character: byte for byte, character in byte_characters().items()}
_BYTES_OF_CODES = {ord(character): byte for character, byte in _BYTES.items()}
_IS_OF_BYTES = re.compile(f"[{re.escape(''.join(_BYTES))}]+").fullmatch
# All characters of bytes are less.
_FEW = 512


@register
class BytePairTokenizer(Tokenizer):
    """Turns text into ids of byte-level BPE, exactly as transformers' tokenizers of RoBERTa and ModernBERT.

    The tokenizer finds special tokens in the text, splits the rest into words by GPT-2's pattern, and merges the bytes
    of each word in the order of the merges. With `normalizer="nfc"`, characters are composed before. It runs eagerly,
    in `tf.data.Dataset.map`, inside a `tf.function` and in an exported SavedModel, by TensorFlow's own operations, also
    where tensorflow-text is missing.
    It needs TensorFlow under every Keras backend.

    Every text has tokens, none of them unknown. An empty text has none; bytes that are not UTF-8 are skipped. A pair of
    texts is `<s> first </s></s> second </s>`, and all segments are 0.

    Args:
        vocabulary: the tokens in the order of their ids, special tokens included. A byte is written as one character, a
            space as `Ġ`, as in `vocab.json`.
        merges: the pairs of tokens that are merged, in the order of their ranks, as in `merges.txt`: `"Ġ t"`, or
            `("Ġ", "t")`.
        add_prefix_space: whether a text that does not begin with a space gets one, so that its first word has
            the tokens that it has inside a text.
        trim_offsets: whether the offsets of a token leave out its spaces.
        num_pair_separators: how many separators stand between the texts of a pair, 1 or 2.
        special_tokens: the tokens that are found in raw text. None for the five that follow.
        stripping_tokens: those of them that take the whitespace before them, such as `<mask>`.
        added_tokens: other tokens that are found as they are written, between special ones and after `normalizer`.
        normalizer: `"nfc"` composes characters first, to Unicode's normal form C; None leaves texts as they are.
        start_token: the first token of an input.
        separator_token: the token after each text.
        pad_token: the token that fills rows up.
        unknown_token: the token of an id that is not in the vocabulary; no text has it.
        mask_token: the token that hides another; None for a vocabulary without.
        word_boundaries: where words of texts end, for tags, entities, features and attributions: `"punctuation"`, at
            whitespace, punctuation and Chinese characters; or `"spaces"`, as in models that were saved without it.

    Attributes:
        pad_id: the id of `<pad>`.
        unknown_id: the id of `<unk>`.
        start_id: the id of `<s>`.
        separator_id: the id of `</s>`.

    Raises:
        TypeError: an argument of the wrong type.
        ValueError: a byte, a special token, a part or a result of a merge that is not in the vocabulary; a normalizer
            with `trim_offsets`.

    Examples:
        >>> special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        >>> vocabulary = [*special, *byte_characters().values(), "Ġn", "ig", "ht", "ight", "Ġnight"]
        >>> tokenizer = BytePairTokenizer(vocabulary, ["Ġ n", "i g", "h t", "ig ht", "Ġn ight"])
        >>> ids, starts, ends = tokenizer.tokenize_with_offsets("a night")
        >>> [tokenizer.id_to_token(index) for index in ids.numpy()]
        ['a', 'Ġnight']
        >>> starts.numpy().tolist(), ends.numpy().tolist()
        ([0, 2], [1, 7])
        >>> tokenizer.detokenize(ids).numpy()
        b'a night'

    References:
        Radford et al. 2019, section 2.2 (GPT-2); Liu et al. 2019, https://arxiv.org/abs/1907.11692 (RoBERTa); Warner
        et al. 2024, https://arxiv.org/abs/2412.13663 (ModernBERT).
    """

    reference = "huggingface"
    word_boundaries = WORD_BOUNDARIES[0]
    second_segment = 0

    def __init__(
        self,
        vocabulary: Sequence[str],
        merges: Sequence[str | Sequence[str]],
        *,
        add_prefix_space: bool = False,
        trim_offsets: bool = True,
        num_pair_separators: int = 2,
        special_tokens: Sequence[str] | None = None,
        stripping_tokens: Sequence[str] = (),
        added_tokens: Sequence[str] = (),
        normalizer: str | None = None,
        start_token: str = "<s>",
        separator_token: str = "</s>",
        pad_token: str = "<pad>",
        unknown_token: str = "<unk>",
        mask_token: str | None = "<mask>",
        word_boundaries: str = "punctuation",
    ):
        self._vocabulary = checked_vocabulary(OWNER, vocabulary, kind="token")
        # Two lists of strings: Python's collector of garbage looks through 50,000 pairs again and again.
        self._merges = _checked_merges(merges)
        self.add_prefix_space = checks.boolean(OWNER, "add_prefix_space", add_prefix_space)
        self.takes_words = self.add_prefix_space
        self.word_boundaries = checks.one_of(OWNER, "word_boundaries", word_boundaries, WORD_BOUNDARIES)
        self.trim_offsets = checks.boolean(OWNER, "trim_offsets", trim_offsets)
        self.normalizer = checks.one_of(OWNER, "normalizer", normalizer, (None, "nfc"))
        if normalizer and trim_offsets:
            raise ValueError(checks.message(OWNER, "trim_offsets", "be False with a normalizer", trim_offsets))
        self.num_pair_separators = checks.one_of(OWNER, "num_pair_separators", num_pair_separators, (1, 2))
        ids = TokenIds(self._vocabulary, owner=OWNER)
        roles = {"start": start_token, "separator": separator_token, "pad": pad_token, "unknown": unknown_token}
        if mask_token is not None:
            roles["mask"] = mask_token
        self.special_tokens, self.stripping_tokens = checked_special_tokens(
            OWNER, ids, roles, special_tokens, stripping_tokens
        )
        self.added_tokens = tuple(added_tokens)
        index = {token: place for place, token in enumerate(self._vocabulary)}
        self._check_tokens(index)
        super().__init__(ids, roles)
        self.space_id = ids.id_of(_SPACE)
        # The tables are eager tensors even while a graph is built, so that all graphs share one copy.
        with tf.init_scope(), tf.device("CPU:0"):
            self._encoder = self._text_encoder(index)

    def _check_tokens(self, index: Mapping[str, int]) -> None:
        """Refuses added tokens, bytes and parts of merges that are not in the vocabulary; ValueError."""
        firsts, seconds = self._merges
        needed: tuple[tuple[str, str, Iterable[str]], ...] = (
            ("added_tokens", "be in the vocabulary", self.added_tokens),
            ("vocabulary", "hold each byte", _BYTES),
            ("merges", "be in the vocabulary", itertools.chain(firsts, seconds, map(operator.add, firsts, seconds))),
        )
        for argument, rule, tokens in needed:
            lacking = next(itertools.filterfalse(index.__contains__, tokens), None)
            if lacking is not None:
                raise ValueError(checks.message(OWNER, argument, rule, lacking))

    def _text_encoder(self, index: Mapping[str, int]) -> BytePairTextEncoder:
        """What encodes texts by the vocabulary and the merges."""

        def found(tokens: Iterable[str]) -> SpecialTokens:
            options: dict[str, Any] = {"trims": self.trim_offsets, "keeps_one": self.add_prefix_space}
            return SpecialTokens({token: index[token] for token in tokens}, self.stripping_tokens, **options)

        def places(tokens: Iterable[str]) -> np.ndarray:
            return np.fromiter(map(index.__getitem__, tokens), np.int64)

        firsts, seconds = self._merges
        merges = ByteMerges(
            places(character for _, character in sorted(byte_characters().items())),
            np.stack([places(firsts), places(seconds)], 1),
            places(map(operator.add, firsts, seconds)),
            {_bytes(token): place for token, place in index.items() if _IS_OF_BYTES(token)},
        )
        return BytePairTextEncoder(
            merges,
            found(self.special_tokens),
            added=found(self.added_tokens),
            composer=None if self.normalizer is None else Composer(),
            add_prefix_space=self.add_prefix_space,
            spaces=self._spaces() if self.trim_offsets else None,
        )

    def _spaces(self) -> np.ndarray:
        """How many spaces each token begins and ends with, int64 `[V, 2]`."""
        tokens = self._vocabulary
        before = [len(token) - len(token.lstrip(_SPACE)) if _SPACE in token else 0 for token in tokens]
        after = [len(token) - len(token.rstrip(_SPACE)) if _SPACE in token else 0 for token in tokens]
        return np.stack([before, after], 1)

    def _joined(self, tokens: tf.RaggedTensor) -> tf.Tensor | tf.RaggedTensor:
        text = joined_on_last_axis(tokens)
        flat = text.flat_values if isinstance(text, tf.RaggedTensor) else tf.reshape(text, [-1])
        codes = tf.strings.unicode_decode(flat, "UTF-8")
        # Of tokens that are not of bytes, such as special ones, characters stay.
        few = [_bytes(character) if character in _BYTES else character.encode() for character in map(chr, range(_FEW))]
        characters = tf.strings.unicode_encode(codes[..., None], "UTF-8")
        parts = tf.where(codes < _FEW, tf.gather(tf.constant(few), codes % _FEW), characters)
        written = joined_on_last_axis(parts)
        written = tf.strings.unicode_transcode(written, "UTF-8", "UTF-8", errors="replace")
        return text.with_flat_values(written) if isinstance(text, tf.RaggedTensor) else tf.reshape(written, text.shape)

    def continues_word(self) -> list[bool]:
        """For each token, whether it continues the word of the token before it: it does not begin with a space."""
        special = {*self.special_tokens, *self.added_tokens}
        return [not token.startswith(_SPACE) and token not in special for token in self._vocabulary]

    def readable(self, token: str) -> str:
        """A token as the text of its bytes, a space included; `�` for a part of a character."""
        return _bytes(token).decode(errors="replace") if _IS_OF_BYTES(token) else token

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, the vocabulary as a list of tokens."""
        return {
            "vocabulary": list(self._vocabulary),
            "merges": [list(pair) for pair in zip(*self._merges, strict=True)],
            "add_prefix_space": self.add_prefix_space,
            "trim_offsets": self.trim_offsets,
            "num_pair_separators": self.num_pair_separators,
            "special_tokens": list(self.special_tokens),
            "stripping_tokens": list(self.stripping_tokens),
            "added_tokens": list(self.added_tokens),
            "normalizer": self.normalizer,
            "word_boundaries": self.word_boundaries,
            "mask_token": None,
            **{f"{role}_token": token for role, token in self._roles.items()},
        }


def _bytes(token: str) -> bytes:
    return token.translate(_BYTES_OF_CODES).encode("latin-1")


def _checked_merges(merges: Any) -> tuple[list[str], list[str]]:
    """The first tokens of the pairs, and the second ones."""
    firsts: list[str] = []
    seconds: list[str] = []
    for merge in merges:
        pair = merge.split(" ") if isinstance(merge, str) else list(merge) if isinstance(merge, Iterable) else []
        if len(pair) != 2 or not (pair[0] and isinstance(pair[0], str) and pair[1] and isinstance(pair[1], str)):
            raise ValueError(checks.message(OWNER, "merges", "hold pairs of tokens", merge))
        firsts.append(pair[0])
        seconds.append(pair[1])
    return firsts, seconds
