"""The table of weight names: a row per stored weight, a column per dialect.

Readers and writers of every dialect use the same rows, in opposite directions.
Legend of shapes: H hidden, E embedding, I intermediate, V vocabulary, P positions, T segments, C classes; N heads of
width D.

References:
    The column `google`: google-research/bert, modeling.py and run_pretraining.py, run_classifier.py, run_squad.py.
    The column `huggingface`: transformers, models/bert/modeling_bert.py.
    The column `kerashub`: keras_hub, models/bert/bert_backbone.py, layers/modeling/transformer_encoder.py.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from keras_bert_layers.config import BertConfig

if TYPE_CHECKING:
    from keras_bert_layers.layers.encoder_parts import EncoderParts


class Layout(enum.Enum):
    """The dialect of a checkpoint; a column of the table of weight names."""

    GOOGLE = "google"
    HUGGINGFACE = "huggingface"
    KERASHUB = "kerashub"


class Transform(enum.Enum):
    """The difference between a weight of our model and the stored tensor.

    `SPLIT_LAST` and `SPLIT_FIRST` split the last or first axis H into heads: N, D.
    """

    COPY = "copy"
    TRANSPOSE = "transpose"
    SPLIT_LAST = "split_last"
    SPLIT_FIRST = "split_first"

    def stored_shape(self, shape: tuple[int, ...], num_heads: int) -> tuple[int, ...]:
        """The stored shape of a weight with this shape in our model."""
        match self:
            case Transform.TRANSPOSE:
                return shape[::-1]
            case Transform.SPLIT_LAST:
                return (*shape[:-1], num_heads, shape[-1] // num_heads)
            case Transform.SPLIT_FIRST:
                return (num_heads, shape[0] // num_heads, *shape[1:])
        return shape

    def to_stored(self, array: np.ndarray, num_heads: int) -> np.ndarray:
        """Converts our array to the layout; a view if NumPy can."""
        return array.T if self is Transform.TRANSPOSE else array.reshape(self.stored_shape(array.shape, num_heads))

    def to_ours(self, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Converts a stored array to our shape; a view if NumPy can."""
        return array.T if self is Transform.TRANSPOSE else array.reshape(shape)


@dataclasses.dataclass(frozen=True)
class StoredWeight:
    """A cell of the table: the name of a weight in a layout, and its transform.

    Args:
        name: the tensor's name in the layout.
        transform: from our model to the layout.
        alias: another name under which files of the layout may hold the same tensor, again or instead.
    """

    name: str
    transform: Transform = Transform.COPY
    alias: str | None = None


PART_NAMES = {2: ("gate", "up"), 3: ("query", "key", "value")}
"""The parts of a kernel that does several products at once, by their number."""


@dataclasses.dataclass(frozen=True)
class WeightRow:
    """A row of the table: a stored tensor, and the weight of our model that it is a part or all of.

    Args:
        ours: the end of the weight's `path` in our model.
        google: the tensor in checkpoints of google-research/bert; None if they have no such weight.
        huggingface: the tensor in the layout of HuggingFace transformers, without the prefix `bert.`.
        kerashub: the weight's `path` in KerasHub's model.
        part_index: which part of our weight's last axis the tensor is, as 0 query, 1 key, 2 value; None for all of it.
        num_parts: how many parts of equal width the axis has.

    Examples:
        >>> row = WeightRow("attention/query_key_value/bias", part_index=1)
        >>> row.part(np.arange(6))
        array([2, 3])
        >>> row.part_shape((6,))
        (2,)
    """

    ours: str
    google: StoredWeight | None = None
    huggingface: StoredWeight | None = None
    kerashub: StoredWeight | None = None
    part_index: int | None = None
    num_parts: int = 3

    def stored(self, layout: Layout) -> StoredWeight | None:
        """The cell of a layout; None if it has no such weight."""
        return getattr(self, layout.value)

    def part(self, array: np.ndarray) -> np.ndarray:
        """The part of our weight that this row describes; a view."""
        if self.part_index is None:
            return array
        width = array.shape[-1] // self.num_parts
        return array[..., self.part_index * width : (self.part_index + 1) * width]

    def part_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of `part` for a weight of this shape."""
        return shape if self.part_index is None else (*shape[:-1], shape[-1] // self.num_parts)


# Our weight of a layer -> the end of its name in each dialect, and its transform. torch stores a kernel as (outputs,
# inputs), Keras and Google as (inputs, outputs).
_Ends = dict[str, tuple[StoredWeight, StoredWeight, StoredWeight]]


def _dense(
    google: tuple[str, str] = ("/kernel", "/bias"),
    stored: Transform = Transform.COPY,
    heads: tuple[Transform, Transform] = (Transform.COPY, Transform.COPY),
) -> _Ends:
    """The ends of a dense layer, by Google's names, Google's kernel, and KerasHub's axes for the heads."""
    kernel = StoredWeight(google[0], stored), StoredWeight(".weight", Transform.TRANSPOSE)
    bias = StoredWeight(google[1]), StoredWeight(".bias")
    return {"kernel": (*kernel, StoredWeight("/kernel", heads[0])), "bias": (*bias, StoredWeight("/bias", heads[1]))}


_DENSE = _dense()
# Query, key or value: KerasHub gives the heads an axis, [H, N, D] and [N, D].
_HEADS_OUT = _dense(heads=(Transform.SPLIT_LAST, Transform.SPLIT_LAST))
# The attention's output: [N, D, H] in KerasHub.
_HEADS_IN = _dense(heads=(Transform.SPLIT_FIRST, Transform.COPY))
# A head that Google stores as bare variables, the kernel as (outputs, inputs).
_OUTPUT = _dense(("output_weights", "output_bias"), Transform.TRANSPOSE)
_NORM: _Ends = {
    "gamma": (StoredWeight("/gamma"), StoredWeight(".weight"), StoredWeight("/gamma")),
    "beta": (StoredWeight("/beta"), StoredWeight(".bias"), StoredWeight("/beta")),
}


def _layer(
    weights: _Ends, ours: str, google: str | None, kerashub: str | None, huggingface: str = ""
) -> tuple[WeightRow, ...]:
    """The rows of a layer, by its names here and in each dialect; HuggingFace's follows from Google's by default."""
    huggingface = huggingface or _huggingface_name(str(google))
    return tuple(
        WeightRow(f"{ours}/{weight}", _cell(google, ends[0]), _cell(huggingface, ends[1]), _cell(kerashub, ends[2]))
        for weight, ends in weights.items()
    )


def _cell(layer: str | None, end: StoredWeight) -> StoredWeight | None:
    return None if layer is None else dataclasses.replace(end, name=layer + end.name)


def _huggingface_name(google: str) -> str:
    """Google's name without its first part, with dots in place of slashes; blocks are `layer.0`, not `layer_0`."""
    return google.removeprefix("bert/").rstrip("/").replace("encoder/layer_", "encoder/layer/").replace("/", ".")


def _embedding(ours: str, name: str, kerashub: str, alias: str | None = None) -> WeightRow:
    """The row of an embedding matrix, the only weight of its layer."""
    google, huggingface = f"bert/embeddings/{name}", StoredWeight(f"embeddings.{name}.weight", alias=alias)
    return WeightRow(f"embedding/{ours}", StoredWeight(google), huggingface, StoredWeight(f"{kerashub}/embeddings"))


EMBEDDING_ROWS = (
    _embedding("token_embedding", "word_embeddings", "token_embedding", "cls.predictions.decoder.weight"),  # [V, E]
    _embedding("segment_embedding", "token_type_embeddings", "segment_embedding"),  # [T, E]
    _embedding("position_embedding", "position_embeddings", "position_embedding"),  # [P, E]
    *_layer(_NORM, "embedding/layer_norm", "bert/embeddings/LayerNorm", "embeddings_layer_norm"),  # [E] [E]
)

# Neither Google's BERT nor transformers' has a narrower embedding. These are the names of its projection in SimBERT, in
# Google's layout, and in ELECTRA, the same encoder in transformers. KerasHub has no projection.
_SIMBERT = "bert/encoder/embedding_hidden_mapping_in"
PROJECTION_ROWS = _layer(_DENSE, "embedding/projection", _SIMBERT, None, "embeddings_project")  # [E, H] [H]

# MPNet's bias of each distance and head, [buckets, N]; no other dialect has one.
RELATIVE_POSITION_ROWS = (
    WeightRow("positions/bucket_bias", huggingface=StoredWeight("encoder.relative_attention_bias.weight")),
)

# DeBERTa's vectors of distances, [rows, H], with a LayerNorm; and the products with them in each block.
RELATIVE_VECTOR_ROWS = (WeightRow("positions/vectors", huggingface=StoredWeight("encoder.rel_embeddings.weight")),)
RELATIVE_NORM_ROWS = _layer(_NORM, "positions/layer_norm", None, None, "encoder.LayerNorm")  # [H] [H]
# DeBERTa-v2's convolution, [kernel size, H, H] and [H], with a LayerNorm.
CONVOLUTION_ROWS = (
    *_layer(_DENSE, "encoder_block_0/convolution", None, None, "encoder.conv.conv"),
    *_layer(_NORM, "encoder_block_0/convolution/layer_norm", None, None, "encoder.conv.LayerNorm"),
)
_POSITION_NAMES = {"position_key": "pos_key_proj", "position_query": "pos_query_proj"}

# ModernBERT's LayerNorm after its last block.
FINAL_NORM_ROWS = _layer(_NORM, "final_layer_norm", None, None, "encoder.final_layer_norm")  # [H] [H]

POOLER_ROWS = _layer(_DENSE, "pooler/dense", "bert/pooler/dense", "pooled_dense")  # [H, H] [H]

_MASKED_LM = "cls.predictions.transform."
# ModernBERT's pooler has a LayerNorm, and its heads on tokens have such a layer too.
# Like transformers, a new one begins with what the masked language model's head has learnt.
_NORMALIZED_POOLER_ROWS = tuple(
    WeightRow(row.ours, huggingface=dataclasses.replace(row.huggingface, alias=_MASKED_LM + row.huggingface.name[7:]))
    for row in (*POOLER_ROWS, *_layer(_NORM, "pooler/layer_norm", None, None, "pooler.LayerNorm"))
    if row.huggingface is not None
)
_TOKEN_TRANSFORM_ROWS = (
    *_layer(_DENSE, "head_transform/dense", None, None, "head.dense"),  # [H, H] [H]
    *_layer(_NORM, "head_transform/layer_norm", None, None, "head.norm"),  # [H] [H]
)

_TRANSFORM = "cls/predictions/transform"
MASKED_LM_ROWS = (
    *_layer(_DENSE, "masked_lm_head/dense", f"{_TRANSFORM}/dense", "mlm_head/intermediate_dense"),  # [H, E] [E]
    # [E] [E]
    *_layer(_NORM, "masked_lm_head/layer_norm", f"{_TRANSFORM}/LayerNorm", "mlm_head/intermediate_layer_norm"),
    WeightRow(  # [V]
        "masked_lm_head/bias",
        StoredWeight("cls/predictions/output_bias"),
        StoredWeight("cls.predictions.bias", alias="cls.predictions.decoder.bias"),
        StoredWeight("mlm_head/output_bias"),
    ),
)
# The rows of a head whose decoder is not the token embedding. Such files have the bias twice, and the decoder's own is
# the one that counts; it comes last, so that it is what is read.
UNTIED_MASKED_LM_ROWS = (
    *MASKED_LM_ROWS,
    WeightRow("masked_lm_head/decoder", huggingface=StoredWeight("cls.predictions.decoder.weight")),  # [V, E]
    WeightRow(  # [V]
        "masked_lm_head/bias", huggingface=StoredWeight("cls.predictions.decoder.bias", alias="cls.predictions.bias")
    ),
)


def untied(head: tuple[WeightRow, ...]) -> tuple[WeightRow, ...]:
    """The rows of a head with a masked language model whose decoder is its own."""
    return (*UNTIED_MASKED_LM_ROWS, *(row for row in head if row not in MASKED_LM_ROWS))


def with_decoder_bias(head: tuple[WeightRow, ...]) -> tuple[WeightRow, ...]:
    """The rows of a head that is tied, with the decoder's bias first: where files have both, transformers takes it."""
    return tuple(UNTIED_MASKED_LM_ROWS[-1] if row is MASKED_LM_ROWS[-1] else row for row in head)


NEXT_SENTENCE_ROWS = _layer(_OUTPUT, "next_sentence_head/dense", "cls/seq_relationship/", None)  # [H, 2] [2]
# A next sentence head read as a classifier of pairs: [H, 2] [2].
NEXT_SENTENCE_CLASSIFIER_ROWS = _layer(_OUTPUT, "classification_head/dense", "cls/seq_relationship/", None)
CLASSIFIER_ROWS = _layer(_OUTPUT, "classification_head/dense", "", "logits", "classifier")  # [H, C] [C]
TOKEN_CLASSIFIER_ROWS = _layer(_DENSE, "token_classification_head/dense", None, None, "classifier")  # [H, C] [C]
SPAN_ROWS = _layer(_OUTPUT, "span_head/dense", "cls/squad/", None, "qa_outputs")  # [H, 2] [2]
MULTIPLE_CHOICE_ROWS = _layer(_DENSE, "multiple_choice_head/dense", None, None, "classifier")  # [H, 1] [1]


def _block_rows(index: int, *, is_merged: bool, has_gate: bool, projections: Iterable[str]) -> Iterator[WeightRow]:
    """The rows of an encoder block; without `is_merged`, each product of a merged kernel has a tensor of its own.

    `projections` are the names of those of positions.
    """

    def layer(weights: _Ends, ours: str, name: str, kerashub: str) -> tuple[WeightRow, ...]:
        google = f"bert/encoder/layer_{index}/{name}"
        return _layer(weights, f"encoder_block_{index}/{ours}", google, f"transformer_layer_{index}/{kerashub}")

    for part, name in enumerate(() if is_merged else PART_NAMES[3]):  # [H, H] [H]
        names = f"attention/self/{name}", f"self_attention_layer/{name}"
        for row in layer(_HEADS_OUT, "attention/query_key_value", *names):
            yield dataclasses.replace(row, part_index=part)
    if is_merged:  # [H, 3 H] [3 H]
        yield from layer(_DENSE, "attention/query_key_value", "attention/self/query_key_value", "none")
    for name in projections:  # [H, H] [H]
        yield from layer(_DENSE, f"attention/{name}", f"attention/self/{_POSITION_NAMES[name]}", "none")
    # [H, H] [H]
    yield from layer(_HEADS_IN, "attention/output", "attention/output/dense", "self_attention_layer/attention_output")
    # [H] [H]
    yield from layer(_NORM, "attention_layer_norm", "attention/output/LayerNorm", "self_attention_layer_norm")
    # [H, I] [I], or of a gate and what it multiplies
    for part, name in enumerate(PART_NAMES[2] if has_gate and not is_merged else ()):
        for row in layer(_DENSE, "feed_forward/intermediate", f"intermediate/{name}", "none"):
            yield dataclasses.replace(row, part_index=part, num_parts=2)
    if is_merged or not has_gate:
        yield from layer(_DENSE, "feed_forward/intermediate", "intermediate/dense", "feedforward_intermediate_dense")
    # [I, H] [H]
    yield from layer(_DENSE, "feed_forward/output", "output/dense", "feedforward_output_dense")
    # [H] [H]
    yield from layer(_NORM, "feed_forward_layer_norm", "output/LayerNorm", "feedforward_layer_norm")


def dense_projection_rows(count: int) -> tuple[WeightRow, ...]:
    """The rows of the dense layers after a sentence encoder's pooling, [H, C] [C] each.

    sentence-transformers has each in a file of its own; here its names begin with `dense.`, `dense.1.`, `dense.2.`, ...
    """
    names = [("dense_projection", "dense"), *((f"dense_projection_{n}", f"dense.{n}") for n in range(1, count))]
    return tuple(row for ours, theirs in names[:count] for row in _layer(_DENSE, ours, None, None, f"{theirs}.linear"))


# The weights of queries that no encoder reads, in a file of their own in sentence-transformers.
QUERY_ROWS = (WeightRow("queries/token_weights", huggingface=StoredWeight("queries.weight")),)  # [V]

# The dense layer of a multi-vector encoder has no bias.
TOKEN_PROJECTION_ROWS = dense_projection_rows(1)[:1]  # [H, W]


def encoder_rows(config: BertConfig, parts: EncoderParts | None = None) -> tuple[WeightRow, ...]:
    """The rows of an encoder's weights except those of the pooler, which some checkpoints do not have."""
    positions = None if parts is None else parts.positions
    has_positions = positions is None or positions.keeps_position_embedding
    is_absent = {1: not config.num_segments, 2: not has_positions}
    rows = [row for index, row in enumerate(EMBEDDING_ROWS) if not is_absent.get(index)]
    num_projection = 0 if config.embedding_dim is None else 1 if parts is not None and parts.projects_first else 2
    rows += PROJECTION_ROWS[:num_projection]
    has_gate = parts is not None and getattr(parts.feed_forward, "has_gate", False)
    names = getattr(None if parts is None else parts.attention, "own_projections", ())
    for index in range(1 if parts is not None and parts.shares_block else config.num_layers):
        # The only encoder without any biases, ModernBERT, stores query, key and value as one tensor.
        is_merged = parts is not None and not parts.use_bias
        rows += _block_rows(index, is_merged=is_merged, has_gate=has_gate, projections=names)
    rows += _position_rows(parts)
    if parts is None or parts.are_of_bert:
        return tuple(rows)
    rows += FINAL_NORM_ROWS if parts.normalize_first else ()
    rows += () if parts.convolution is None else CONVOLUTION_ROWS
    if not parts.normalizes_first_attention:
        rows = [row for row in rows if not row.ours.startswith("encoder_block_0/attention_layer_norm/")]
    return _with_biases(rows, parts)


def _position_rows(parts: EncoderParts | None) -> tuple[WeightRow, ...]:
    """The rows of positions that have weights."""
    positions = None if parts is None else parts.positions
    if hasattr(positions, "span"):
        return RELATIVE_VECTOR_ROWS + (RELATIVE_NORM_ROWS if getattr(positions, "normalize", False) else ())
    return RELATIVE_POSITION_ROWS if positions is not None and positions.keeps_position_embedding else ()


def pooler_rows(parts: EncoderParts | None = None) -> tuple[WeightRow, ...]:
    """The rows of an encoder's pooler."""
    if parts is None or not parts.normalizes_heads:
        return POOLER_ROWS
    return _with_biases(_NORMALIZED_POOLER_ROWS, parts)


def head_rows(head: tuple[WeightRow, ...], parts: EncoderParts | None = None) -> tuple[WeightRow, ...]:
    """The rows of a task's head on an encoder with these parts, by those on a BERT."""
    if parts is None or not parts.normalizes_heads:
        return head
    if head in (TOKEN_CLASSIFIER_ROWS, SPAN_ROWS):
        return (*_with_biases(_TOKEN_TRANSFORM_ROWS, parts), *head)
    transform = tuple(row for row in head if row.ours.startswith(("masked_lm_head/dense/", "masked_lm_head/layer_")))
    kept = {*_with_biases(transform, parts)}
    return tuple(row for row in head if row not in transform or row in kept)


def _with_biases(rows: Iterable[WeightRow], parts: EncoderParts) -> tuple[WeightRow, ...]:
    """The rows without those of biases that the encoder does not have: a part of its own knows its biases."""
    own = {"attention": parts.attention, "feed_forward": parts.feed_forward}
    has_bias = {name: getattr(part, "use_bias", True) for name, part in own.items() if part is not None}
    gate_has_bias = getattr(parts.feed_forward, "gate_has_bias", True)

    def is_there(name: str) -> bool:
        if not name.endswith(("/bias", "/beta")):
            return True
        layer = name.split("/")[1] if name.startswith("encoder_block_") else ""
        return has_bias.get(layer, parts.use_bias) and (gate_has_bias or "/intermediate/" not in name)

    return tuple(row for row in rows if is_there(row.ours))


def backbone_rows(config: BertConfig, parts: EncoderParts | None = None) -> tuple[WeightRow, ...]:
    """The rows of every weight of `BertBackbone(config, parts=parts)`, from the embedding to the pooler.

    Args:
        config: the backbone's config; the rows depend on `num_layers`, `embedding_dim` and `num_segments`.
        parts: the backbone's parts; None for BERT's own.

    Returns:
        Of a BERT, 5 rows of the embedding (4 without segments), 2 more for a narrower embedding, 16 of each block, and
        2 of the pooler.

    Examples:
        >>> config = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=2, num_heads=2, intermediate_dim=7)
        >>> len(backbone_rows(config))
        39
        >>> backbone_rows(config)[5].huggingface.name
        'encoder.layer.0.attention.self.query.weight'
    """
    return (*encoder_rows(config, parts), *pooler_rows(parts))
