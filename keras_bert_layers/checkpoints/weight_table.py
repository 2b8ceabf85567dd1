"""The table of weight names: one row a stored weight, one column a layout.

A reader walks the rows and moves a column's tensors into our weights; a writer walks the same rows the other way.
Legend of shapes: H hidden, E embedding, I intermediate, V vocabulary, P positions, T segments, C classes.
"""

from __future__ import annotations

import dataclasses
import enum

import numpy as np

from keras_bert_layers.config import BertConfig


class Transform(enum.Enum):
    """How a layout stores a weight, seen from ours; each one is its own inverse."""

    COPY = "copy"
    TRANSPOSE = "transpose"

    def apply(self, array: np.ndarray) -> np.ndarray:
        """The array as the other side has it; a view, never a copy."""
        return array.T if self is Transform.TRANSPOSE else array

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape as the other side has it."""
        return shape[::-1] if self is Transform.TRANSPOSE else shape


@dataclasses.dataclass(frozen=True)
class StoredWeight:
    """A cell of the table: what a layout calls a weight and how it lays it out.

    Args:
        name: the tensor's name in the layout.
        transform: from the layout to ours, and back.
    """

    name: str
    transform: Transform = Transform.COPY


@dataclasses.dataclass(frozen=True)
class WeightRow:
    """A row of the table: one tensor of a checkpoint and the place in our model that it fills.

    Args:
        ours: the end of the weight's `path` in our model.
        huggingface: the tensor in the layout of HuggingFace transformers, without the `bert.` prefix.
        third: which third of our weight's last axis the tensor fills (0 query, 1 key, 2 value); None for all of it.

    Examples:
        >>> row = WeightRow("attention/query_key_value/bias", StoredWeight("attention.self.key.bias"), third=1)
        >>> row.part(np.arange(6))
        array([2, 3])
        >>> row.part_shape((6,))
        (2,)
    """

    ours: str
    huggingface: StoredWeight
    third: int | None = None

    def part(self, array: np.ndarray) -> np.ndarray:
        """The part of our weight that this row stands for; a view."""
        if self.third is None:
            return array
        width = array.shape[-1] // 3
        return array[..., self.third * width : (self.third + 1) * width]

    def part_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of `part` for a weight of this shape."""
        return shape if self.third is None else (*shape[:-1], shape[-1] // 3)

    def in_layer(self, index: int) -> WeightRow:
        """The row for one encoder block: `{layer}` in both names is replaced."""
        stored = dataclasses.replace(self.huggingface, name=self.huggingface.name.format(layer=index))
        return dataclasses.replace(self, ours=self.ours.format(layer=index), huggingface=stored)


def _copy(ours: str, huggingface: str) -> WeightRow:
    return WeightRow(ours, StoredWeight(huggingface))


def _dense(ours: str, huggingface: str, third: int | None = None) -> tuple[WeightRow, WeightRow]:
    """Kernel and bias: torch stores a kernel as (outputs, inputs), Keras as (inputs, outputs)."""
    return (
        WeightRow(f"{ours}/kernel", StoredWeight(f"{huggingface}.weight", Transform.TRANSPOSE), third),
        WeightRow(f"{ours}/bias", StoredWeight(f"{huggingface}.bias"), third),
    )


def _layer_norm(ours: str, huggingface: str) -> tuple[WeightRow, WeightRow]:
    return _copy(f"{ours}/gamma", f"{huggingface}.weight"), _copy(f"{ours}/beta", f"{huggingface}.bias")


# The HuggingFace names are those of transformers, models/bert/modeling_bert.py.
EMBEDDING_ROWS = (
    _copy("embedding/token_embedding", "embeddings.word_embeddings.weight"),  # [V, E]
    _copy("embedding/segment_embedding", "embeddings.token_type_embeddings.weight"),  # [T, E]
    _copy("embedding/position_embedding", "embeddings.position_embeddings.weight"),  # [P, E]
    *_layer_norm("embedding/layer_norm", "embeddings.LayerNorm"),  # [E]
)

# transformers' BERT has no narrower embedding; its ELECTRA, the same encoder with one, calls the projection so.
PROJECTION_ROWS = _dense("embedding/projection", "embeddings_project")  # [E, H] [H]

BLOCK_ROWS = (
    *_dense("encoder_block_{layer}/attention/query_key_value", "encoder.layer.{layer}.attention.self.query", third=0),
    *_dense("encoder_block_{layer}/attention/query_key_value", "encoder.layer.{layer}.attention.self.key", third=1),
    *_dense("encoder_block_{layer}/attention/query_key_value", "encoder.layer.{layer}.attention.self.value", third=2),
    *_dense("encoder_block_{layer}/attention/output", "encoder.layer.{layer}.attention.output.dense"),  # [H, H] [H]
    *_layer_norm("encoder_block_{layer}/attention_layer_norm", "encoder.layer.{layer}.attention.output.LayerNorm"),
    *_dense("encoder_block_{layer}/feed_forward/intermediate", "encoder.layer.{layer}.intermediate.dense"),  # [H, I]
    *_dense("encoder_block_{layer}/feed_forward/output", "encoder.layer.{layer}.output.dense"),  # [I, H] [H]
    *_layer_norm("encoder_block_{layer}/feed_forward_layer_norm", "encoder.layer.{layer}.output.LayerNorm"),
)

CLASSIFIER_ROWS = _dense("classification_head/dense", "classifier")  # [H, C] [C]

POOLER_ROWS = _dense("pooler/dense", "pooler.dense")  # [H, H] [H]


def backbone_rows(config: BertConfig) -> tuple[WeightRow, ...]:
    """The rows of every weight of `BertBackbone(config)`, from the ids to the pooler.

    Args:
        config: the backbone's config; its number of layers and its `embedding_dim` decide which rows there are.

    Returns:
        5 rows of the embedding, 2 more with a narrower embedding, 16 of each block, and 2 of the pooler.

    Examples:
        >>> config = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=2, num_heads=2, intermediate_dim=7)
        >>> len(backbone_rows(config))
        39
        >>> backbone_rows(config)[5].huggingface.name
        'encoder.layer.0.attention.self.query.weight'
    """
    projection = () if config.embedding_dim is None else PROJECTION_ROWS
    blocks = [row.in_layer(index) for index in range(config.num_layers) for row in BLOCK_ROWS]
    return (*EMBEDDING_ROWS, *projection, *blocks, *POOLER_ROWS)
