"""The table of weight names: one row for each stored weight, one column for each dialect.

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
import functools
import itertools

from keras_bert_layers.checkpoints.weights.row import StoredWeight as Stored
from keras_bert_layers.checkpoints.weights.row import Transform, WeightRow
from keras_bert_layers.config import BertConfig

# Our weight of a layer -> the end of its name in each dialect, and its transform. torch stores a kernel as (outputs,
# inputs), Keras and Google as (inputs, outputs).
_Ends = dict[str, tuple[Stored, Stored, Stored]]
_TORCH_KERNEL = Stored(".weight", Transform.TRANSPOSE)
_BIAS = (Stored("/bias"), Stored(".bias"), Stored("/bias"))
_DENSE: _Ends = {"kernel": (Stored("/kernel"), _TORCH_KERNEL, Stored("/kernel")), "bias": _BIAS}
_NORM: _Ends = {
    "gamma": (Stored("/gamma"), Stored(".weight"), Stored("/gamma")),
    "beta": (Stored("/beta"), Stored(".bias"), Stored("/beta")),
}
# Query, key or value: KerasHub gives the heads an axis, [H, N, D] and [N, D].
_HEADS_OUT: _Ends = {
    "kernel": (Stored("/kernel"), _TORCH_KERNEL, Stored("/kernel", Transform.SPLIT_LAST)),
    "bias": (Stored("/bias"), Stored(".bias"), Stored("/bias", Transform.SPLIT_LAST)),
}
# The attention's output: [N, D, H] in KerasHub.
_HEADS_IN: _Ends = {
    "kernel": (Stored("/kernel"), _TORCH_KERNEL, Stored("/kernel", Transform.SPLIT_FIRST)),
    "bias": _BIAS,
}
# A head that Google stores as bare variables, the kernel as (outputs, inputs).
_OUTPUT: _Ends = {
    "kernel": (Stored("output_weights", Transform.TRANSPOSE), _TORCH_KERNEL, Stored("/kernel")),
    "bias": (Stored("output_bias"), Stored(".bias"), Stored("/bias")),
}


def _layer(ends: _Ends, ours: str, *names: str | None, qkv_index: int | None = None) -> tuple[WeightRow, ...]:
    """The rows of a layer, by its names here and in Google's, HuggingFace's and KerasHub's files."""
    rows = []
    for weight, cells in ends.items():
        google, huggingface, kerashub = (
            None if name is None else dataclasses.replace(cell, name=name + cell.name)
            for name, cell in zip(names, cells, strict=True)
        )
        rows.append(WeightRow(f"{ours}/{weight}", google, huggingface, kerashub, qkv_index))
    return tuple(rows)


def _block_layer(
    index: int, ends: _Ends, ours: str, name: str, kerashub: str, *, qkv_index: int | None = None
) -> tuple[WeightRow, ...]:
    """The rows of a layer of an encoder block. HuggingFace's names are Google's with dots in place of slashes."""
    return _layer(
        ends,
        f"encoder_block_{index}/{ours}",
        f"bert/encoder/layer_{index}/{name}",
        f"encoder.layer.{index}.{name.replace('/', '.')}",
        f"transformer_layer_{index}/{kerashub}",
        qkv_index=qkv_index,
    )


def _embedding(ours: str, name: str, kerashub: str, alias: str | None = None) -> WeightRow:
    """The row of an embedding matrix, which is the whole layer."""
    huggingface = Stored(f"embeddings.{name}.weight", alias=alias)
    return WeightRow(
        f"embedding/{ours}", Stored(f"bert/embeddings/{name}"), huggingface, Stored(f"{kerashub}/embeddings")
    )


EMBEDDING_ROWS = (
    _embedding("token_embedding", "word_embeddings", "token_embedding", "cls.predictions.decoder.weight"),  # [V, E]
    _embedding("segment_embedding", "token_type_embeddings", "segment_embedding"),  # [T, E]
    _embedding("position_embedding", "position_embeddings", "position_embedding"),  # [P, E]
    *_layer(  # [E] [E]
        *(_NORM, "embedding/layer_norm"),
        *("bert/embeddings/LayerNorm", "embeddings.LayerNorm", "embeddings_layer_norm"),
    ),
)

# Neither Google's BERT nor transformers' has a narrower embedding. These are the names of its projection in SimBERT, in
# Google's layout, and in ELECTRA, the same encoder in transformers. KerasHub has no projection.
PROJECTION_ROWS = _layer(  # [E, H] [H]
    *(_DENSE, "embedding/projection"),
    *("bert/encoder/embedding_hidden_mapping_in", "embeddings_project", None),
)

POOLER_ROWS = _layer(_DENSE, "pooler/dense", "bert/pooler/dense", "pooler.dense", "pooled_dense")  # [H, H] [H]

MASKED_LM_ROWS = (
    *_layer(  # [H, E] [E]
        *(_DENSE, "masked_lm_head/dense"),
        *("cls/predictions/transform/dense", "cls.predictions.transform.dense", "mlm_head/intermediate_dense"),
    ),
    *_layer(  # [E] [E]
        *(_NORM, "masked_lm_head/layer_norm", "cls/predictions/transform/LayerNorm"),
        *("cls.predictions.transform.LayerNorm", "mlm_head/intermediate_layer_norm"),
    ),
    WeightRow(  # [V]
        "masked_lm_head/bias",
        Stored("cls/predictions/output_bias"),
        Stored("cls.predictions.bias", alias="cls.predictions.decoder.bias"),
        Stored("mlm_head/output_bias"),
    ),
)
NEXT_SENTENCE_ROWS = _layer(  # [H, 2] [2]
    _OUTPUT, "next_sentence_head/dense", "cls/seq_relationship/", "cls.seq_relationship", None
)
CLASSIFIER_ROWS = _layer(_OUTPUT, "classification_head/dense", "", "classifier", "logits")  # [H, C] [C]
# A next sentence head read as a classifier of pairs.
NEXT_SENTENCE_CLASSIFIER_ROWS = _layer(  # [H, 2] [2]
    _OUTPUT, "classification_head/dense", "cls/seq_relationship/", "cls.seq_relationship", None
)
TOKEN_CLASSIFIER_ROWS = _layer(_DENSE, "token_classification_head/dense", None, "classifier", None)  # [H, C] [C]
SPAN_ROWS = _layer(_OUTPUT, "span_head/dense", "cls/squad/", "qa_outputs", None)  # [H, 2] [2]
MULTIPLE_CHOICE_ROWS = _layer(_DENSE, "multiple_choice_head/dense", None, "classifier", None)  # [H, 1] [1]
# The dense layer of sentence-transformers, `Dense`, is in a file of its own; here its names begin with `dense.`.
DENSE_PROJECTION_ROWS = _layer(_DENSE, "dense_projection", None, "dense.linear", None)  # [H, C] [C]


def _block_rows(index: int) -> tuple[WeightRow, ...]:
    """The rows of an encoder block."""
    layer = functools.partial(_block_layer, index)
    heads = [
        layer(  # [H, H] [H]
            *(_HEADS_OUT, "attention/query_key_value", f"attention/self/{name}", f"self_attention_layer/{name}"),
            qkv_index=qkv_index,
        )
        for qkv_index, name in enumerate(("query", "key", "value"))
    ]
    return (
        *itertools.chain(*heads),
        *layer(_HEADS_IN, "attention/output", "attention/output/dense", "self_attention_layer/attention_output"),
        *layer(_NORM, "attention_layer_norm", "attention/output/LayerNorm", "self_attention_layer_norm"),  # [H] [H]
        *layer(  # [H, I] [I]
            *(_DENSE, "feed_forward/intermediate", "intermediate/dense", "feedforward_intermediate_dense")
        ),
        *layer(_DENSE, "feed_forward/output", "output/dense", "feedforward_output_dense"),  # [I, H] [H]
        *layer(_NORM, "feed_forward_layer_norm", "output/LayerNorm", "feedforward_layer_norm"),  # [H] [H]
    )


def encoder_rows(config: BertConfig) -> tuple[WeightRow, ...]:
    """The rows of every weight of `BertBackbone(config)` except the pooler, which some checkpoints do not have."""
    projection = () if config.embedding_dim is None else PROJECTION_ROWS
    blocks = [row for index in range(config.num_layers) for row in _block_rows(index)]
    return (*EMBEDDING_ROWS, *projection, *blocks)


def backbone_rows(config: BertConfig) -> tuple[WeightRow, ...]:
    """The rows of every weight of `BertBackbone(config)`, from the embedding to the pooler.

    Args:
        config: the backbone's config; the rows depend on `num_layers` and `embedding_dim`.

    Returns:
        5 rows of the embedding, 2 more for a narrower embedding, 16 of each block, and 2 of the pooler.

    Examples:
        >>> config = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=2, num_heads=2, intermediate_dim=7)
        >>> len(backbone_rows(config))
        39
        >>> backbone_rows(config)[5].huggingface.name
        'encoder.layer.0.attention.self.query.weight'
    """
    return (*encoder_rows(config), *POOLER_ROWS)
