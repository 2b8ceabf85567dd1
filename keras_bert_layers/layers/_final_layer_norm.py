"""The LayerNorm after the last block of an encoder whose blocks normalize first."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers.layers._layer_norm import LayerNorm
from keras_bert_layers.layers._packing import on_tokens


class FinalLayerNorm(LayerNorm):
    """A `LayerNorm` of hidden states `(batch, sequence, width)`, of the real tokens only where they are known."""

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Normalizes float `(..., width)`."""
        normalize = super().call
        return on_tokens(lambda tokens: normalize(tokens, training=training), inputs)

    def compute_output_spec(self, inputs: Any, training: bool | None = None) -> Any:
        """Shape and dtype of the output: the input's shape."""
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
