"""What the preprocessing layers have in common: a tokenizer, and inputs that Keras must leave alone."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers.preprocessing.sentence_piece.sentence_piece_tokenizer import SentencePieceTokenizer
from keras_bert_layers.preprocessing.word_piece.bert_tokenizer import BertTokenizer

Tokenizer = BertTokenizer | SentencePieceTokenizer


class TextLayer(keras.layers.Layer):
    """A Keras layer without weights that takes strings, or token ids, as TensorFlow tensors.

    Args:
        tokenizer: a `BertTokenizer` or a `SentencePieceTokenizer`; it is saved with the layer, vocabulary included.
        **kwargs: arguments of `keras.layers.Layer`.
    """

    def __init__(self, tokenizer: Tokenizer, **kwargs: Any):
        super().__init__(**kwargs)
        check_is_tokenizer(type(self).__name__, tokenizer)
        self.tokenizer = tokenizer
        # Strings stay TensorFlow strings: no other backend has them, and Keras must not convert them.
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        self.built = True

    def get_config(self) -> dict[str, Any]:
        """The tokenizer, and what `keras.layers.Layer` stores."""
        return {**super().get_config(), "tokenizer": keras.saving.serialize_keras_object(self.tokenizer)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """A new layer from a `get_config` dictionary."""
        return cls(**{**config, "tokenizer": keras.saving.deserialize_keras_object(config["tokenizer"])})


def check_is_tokenizer(owner: str, tokenizer: Any) -> None:
    """Raises TypeError if `tokenizer` is no tokenizer of this package."""
    cure = "Make one with `BertTokenizer(vocabulary)` or `load_tokenizer(source)`."
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(checks.message(owner, "tokenizer", "be a BertTokenizer", tokenizer, cure))
