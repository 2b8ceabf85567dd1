"""The words of a text as a `BertTokenizer` sees them, before it matches them with its vocabulary."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import _engine, tables
from keras_bert_layers.preprocessing._normalizer import Normalizer
from keras_bert_layers.preprocessing._word_pieces import boundaries
from keras_bert_layers.preprocessing.bert_tokenizer import MAX_WORD_LENGTH, BertTokenizer
from keras_bert_layers.preprocessing.vocabulary import SPECIAL_TOKENS


class TextWords:
    """Normalizes texts and splits them into words, by the tables and patterns of `BertTokenizer`.

    Special tokens that the reference reads in a text are no words.

    Args:
        lowercase: as for `BertTokenizer`.
        strip_accents: as for `BertTokenizer`.
        split_chinese: as for `BertTokenizer`.
        reference: as for `BertTokenizer`.
        special_tokens: the special tokens.

    Attributes:
        max_word_length: a word of more characters is `[UNK]`.
    """

    def __init__(
        self,
        *,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        split_chinese: bool = True,
        reference: str = "google",
        special_tokens: Collection[str] = SPECIAL_TOKENS,
    ):
        table = tables.load(reference, lowercase, lowercase if strip_accents is None else strip_accents)
        with tf.init_scope(), tf.device("CPU:0"):
            self._normalizer = Normalizer(table)
        self._boundaries = boundaries(table, split_chinese=split_chinese)
        self._letters = {stand_in: letter for letter, stand_in in table.stand_ins.items()}
        self._special = None
        if reference == "huggingface":
            self._special = re.compile("|".join(map(re.escape, special_tokens)))
        self.max_word_length = MAX_WORD_LENGTH[reference]

    @classmethod
    def of(cls, tokenizer: BertTokenizer) -> TextWords:
        """The words that a tokenizer sees."""
        return cls(
            lowercase=tokenizer.lowercase,
            strip_accents=tokenizer.strip_accents,
            split_chinese=tokenizer.split_chinese,
            reference=tokenizer.reference,
            special_tokens=tokenizer.special_tokens.values(),
        )

    def words(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of each text, normalized."""
        parts = [[text] if self._special is None else self._special.split(text) for text in texts]
        flat = tf.constant([part.encode() for part in itertools.chain.from_iterable(parts)], tf.string)
        with tf.device("CPU:0"):
            normalized = self._normalizer.lower_sigmas(self._normalizer.normalize(flat))
            spans, _, _, row_splits = _engine.text_engine().split(normalized, *self._boundaries)
        words = [span.decode().translate(self._letters) for span in spans.numpy().tolist()]
        ends = row_splits.numpy()[np.cumsum([0, *map(len, parts)])]
        return [words[start:end] for start, end in itertools.pairwise(ends)]
