"""BERT's WordPiece tokenizer, in graph."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf, tf_text
from keras_bert_layers._internal.registration import register
from keras_bert_layers.preprocessing import tables, vocabulary as vocabularies

REFERENCES = ("google", "huggingface")
MAX_WORD_LENGTH = {"google": 200, "huggingface": 100}


@register
class BertTokenizer:
    """Turns text into WordPiece ids.

    First working version: the interface is final, the exactness work is under way.
    """

    def __init__(
        self,
        vocabulary: str | os.PathLike[str] | Sequence[str],
        lowercase: bool = True,
        *,
        strip_accents: bool | None = None,
        split_chinese: bool = True,
        reference: str = "google",
    ):
        self.reference = checks.one_of("BertTokenizer", "reference", reference, REFERENCES)
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.split_chinese = split_chinese
        self._vocabulary = vocabularies.load_vocabulary(vocabulary)
        self._ids = {token: index for index, token in enumerate(self._vocabulary)}
        table = tables.load(reference, lowercase, lowercase if strip_accents is None else strip_accents)
        with tf.init_scope():
            self._normalizer = tf_text.FastBertNormalizer(model_buffer=tf.constant(np.frombuffer(table.model, np.uint8)))
            translated = [token.translate(table.stand_ins) for token in self._vocabulary]
            from tensorflow_text.core.pybinds import pywrap_fast_wordpiece_tokenizer_model_builder as builder

            model = builder.build_fast_wordpiece_model(translated, 4 * MAX_WORD_LENGTH[reference], "##", "[UNK]", False, False)
            self._word_pieces = tf_text.FastWordpieceTokenizer(
                model_buffer=tf.constant(np.frombuffer(model, np.uint8)), token_out_type=tf.int32
            )

    def tokenize(self, text: Any) -> Any:
        """Ragged int32 ids."""
        if not isinstance(text, tf.RaggedTensor):
            text = tf.convert_to_tensor(text)
        if text.shape.rank == 0:
            return self.tokenize(text[None])[0]
        return self._word_pieces.tokenize(self._normalizer.normalize(text))

    __call__ = tokenize

    def tokenize_with_offsets(self, text: Any) -> Any:
        """Ids, starts, ends."""
        text = tf.convert_to_tensor(text)
        if text.shape.rank == 0:
            ids, starts, ends = self.tokenize_with_offsets(text[None])
            return ids[0], starts[0], ends[0]
        normalized, sources = self._normalizer.normalize_with_offsets(text)
        ids, starts, ends = self._word_pieces.tokenize_with_offsets(normalized)
        sources = tf.cast(sources, tf.int32)
        return (
            ids,
            tf.gather(sources, starts, batch_dims=1),
            tf.gather(sources, ends - 1, batch_dims=1) + 1,
        )

    def detokenize(self, ids: Any) -> Any:
        """Strings."""
        tokens = tf.gather(tf.constant(self._vocabulary), ids)
        return tf.strings.regex_replace(tf.strings.reduce_join(tokens, axis=-1, separator=" "), " ##", "")

    def id_to_token(self, id: int) -> str:  # noqa: A002
        """The token of an id."""
        return self._vocabulary[id]

    def token_to_id(self, token: str) -> int:
        """The id of a token."""
        return self._ids[token]

    def vocabulary_size(self) -> int:
        """How many tokens."""
        return len(self._vocabulary)

    @property
    def pad_id(self) -> int:
        """Id of `[PAD]`."""
        return self._ids[vocabularies.PAD]

    @property
    def unknown_id(self) -> int:
        """Id of `[UNK]`."""
        return self._ids[vocabularies.UNKNOWN]

    @property
    def start_id(self) -> int:
        """Id of `[CLS]`."""
        return self._ids[vocabularies.START]

    @property
    def separator_id(self) -> int:
        """Id of `[SEP]`."""
        return self._ids[vocabularies.SEPARATOR]

    @property
    def mask_id(self) -> int:
        """Id of `[MASK]`."""
        return self._ids[vocabularies.MASK]

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, the vocabulary as a list."""
        return {
            "vocabulary": list(self._vocabulary),
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "split_chinese": self.split_chinese,
            "reference": self.reference,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> BertTokenizer:
        """A tokenizer from `get_config`."""
        return cls(**config)
