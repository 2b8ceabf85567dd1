"""LoRA (low-rank adaptation) on dense layers, by Keras's own `enable_lora`."""

from functools import partial

import keras
import numpy as np

from keras_bert_layers._internal.keras_models import all_layers
from keras_bert_layers.layers.transformer_encoder_block import TransformerEncoderBlock


def enable_lora(block: TransformerEncoderBlock, rank: int, alpha: float | None) -> None:
    """Enables LoRA on the dense layers of attention and feed-forward of one block.

    Keras writes a dense layer with LoRA as one merged kernel, and reads zeros as both of its matrices, so that training
    cannot continue. These layers write and read all of their weights.
    """
    attention, feed_forward = block.attention, block.feed_forward
    within = [layer for layer in all_layers(feed_forward) if isinstance(layer, keras.layers.Dense)]
    for dense in (attention.query_key_value, attention.output_projection, *within):
        dense.enable_lora(rank, lora_alpha=alpha)
        dense.save_own_variables = partial(keras.layers.Layer.save_own_variables, dense)
        dense.load_own_variables = partial(keras.layers.Layer.load_own_variables, dense)


def is_lora(weight: keras.Variable) -> bool:
    """Whether a weight is one of the two matrices of LoRA."""
    return weight.name.startswith("lora_kernel_")


def has_lora(layer: keras.layers.Layer) -> bool:
    """Whether a layer is a dense one with LoRA."""
    return isinstance(layer, keras.layers.Dense) and layer.lora_enabled


def lora_product(layer: keras.layers.Layer) -> np.ndarray:
    """The product of LoRA's matrices, which adds to the kernel of a dense layer; float32 `(inputs, units)`."""
    first, second = map(keras.ops.convert_to_numpy, (layer.lora_kernel_a, layer.lora_kernel_b))
    return layer.lora_alpha / layer.lora_rank * (first @ second)
