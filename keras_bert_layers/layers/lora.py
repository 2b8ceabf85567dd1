"""LoRA (low-rank adaptation) on dense layers, by Keras's own `enable_lora`."""

from functools import partial

import keras
import numpy as np

from keras_bert_layers._internal.keras_models import all_layers
from keras_bert_layers.layers.transformer_encoder_block import TransformerEncoderBlock


def enable_lora(block: TransformerEncoderBlock, rank: int, alpha: float | None) -> None:
    """Enables LoRA on the dense layers of attention and feed-forward of one block; not on those of shared positions.

    Keras writes a dense layer with LoRA as one merged kernel, and reads zeros as both of its matrices, so that training
    cannot continue. These layers write and read all of their weights.
    """
    shared = [] if block.positions is None else all_layers(block.positions)
    within = [*all_layers(block.attention), *all_layers(block.feed_forward)]
    for dense in within:
        if not isinstance(dense, keras.layers.Dense) or dense in shared:
            continue
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
