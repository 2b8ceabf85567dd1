"""`TextLayer`: the base of the preprocessing layers, with a tokenizer and inputs that Keras must not convert."""

from typing import Any

import keras

from keras_bert_layers.preprocessing.tokenizer import Tokenizer, check_is_tokenizer


class TextLayer(keras.layers.Layer):
    """A Keras layer without weights that takes strings, or token ids, as TensorFlow tensors.

    Args:
        tokenizer: a `Tokenizer` of this package; it is saved with the layer, vocabulary included.
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
