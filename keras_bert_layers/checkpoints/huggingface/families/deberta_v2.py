"""DeBERTa-v2, DeBERTa-v3 and mDeBERTa: BERT whose attention reads contents and relative positions apart.

References:
    He et al. 2020, https://arxiv.org/abs/2006.03654, and 2021, https://arxiv.org/abs/2111.09543; transformers,
    models/deberta_v2/modeling_deberta_v2.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from keras_bert_layers._internal import checks, keys
from keras_bert_layers.checkpoints.huggingface.families.family import (
    CHOICE_CLASS,
    READER,
    SEQUENCE_CLASS,
    Family,
    PartsForm,
    TensorNames,
    check_positions,
    described,
)
from keras_bert_layers.config import BertConfig

if TYPE_CHECKING:
    from keras_bert_layers.layers import TokenConvolution
    from keras_bert_layers.layers.encoder_parts import EncoderParts

# The head of the masked language model has two names in files.
_MASKED_LM = {
    "lm_predictions.lm_head.dense.": "cls.predictions.transform.dense.",
    "lm_predictions.lm_head.LayerNorm.": "cls.predictions.transform.LayerNorm.",
    "lm_predictions.lm_head.bias": "cls.predictions.bias",
}
# transformers' defaults, where they are not BERT's.
_DEFAULTS = {"type_vocab_size": 0, "layer_norm_eps": 1e-7, "relative_attention": False}
_ONLY = {"relative_attention": (True,), "conv_groups": (1,), "pooler_dropout": (0,)}
_REASONS = {
    "relative_attention": "Without it, the scores are those of contents, scaled by another number.",
    "pooler_dropout": "The pooler drops nothing.",
}
_KINDS = {"c2p": "content_to_position", "p2c": "position_to_content"}
# The functions after a convolution.
_ACTS = {"tanh": "tanh", "gelu": "gelu_erf", "gelu_new": "gelu_tanh", "relu": "relu"}
_NORM = "layer_norm"
_POOLER = {"pooler.dense.": "pooler.dense."}
_HEAD_DROPOUT = ("cls_dropout", None)


def _todays(values: Mapping[str, Any]) -> dict[str, Any]:
    """The content with the defaults of transformers."""
    result = {**_DEFAULTS, **values}
    keys.check_only(READER, result, _ONLY, _REASONS)
    return result


class _DebertaParts(PartsForm):
    """DeBERTa's attention, and the vectors of distances that all blocks share."""

    def read(self, values: Mapping[str, Any], config: BertConfig) -> EncoderParts | None:
        from keras_bert_layers.layers import DisentangledSelfAttention, EncoderParts, RelativeVectors

        width = config.hidden_dim
        sizes = {"pooler_hidden_size": width, "attention_head_size": width // config.num_heads}
        for name, size in sizes.items():
            if values.get(name) not in (None, size):
                raise ValueError(checks.message(READER, name, f"be {size}", values[name]))
        kinds = _words(values, "pos_att_type", tuple(_KINDS))
        return EncoderParts(
            positions=RelativeVectors(
                **_buckets(values, config),
                normalize=_NORM in _words(values, "norm_rel_ebd", ("none", _NORM)),
                layer_norm_epsilon=config.layer_norm_epsilon,
                keeps_position_embedding=_flag(values, "position_biased_input", True),
                initializer_range=config.initializer_range,
            ),
            attention=DisentangledSelfAttention(
                config.num_heads,
                **{ours: name in kinds for name, ours in _KINDS.items()},
                shares_projections=_flag(values, "share_att_key", False),
                vector_dropout=config.dropout,
                dropout=config.attention_dropout,
                initializer_range=config.initializer_range,
            ),
            convolution=_convolution(values, config),
            projects_first=config.embedding_dim is not None,
        )

    def written(self, parts: EncoderParts, config: BertConfig) -> dict[str, Any] | None:
        from keras_bert_layers.layers import DisentangledSelfAttention, RelativeVectors, TokenConvolution

        attention, positions = parts.attention, parts.positions
        if not (isinstance(attention, DisentangledSelfAttention) and isinstance(positions, RelativeVectors)):
            return None
        values = {
            "max_relative_positions": positions.max_distance,
            "position_buckets": positions.num_buckets or -1,
            "norm_rel_ebd": _NORM if positions.normalize else "none",
            "position_biased_input": positions.keeps_position_embedding,
            "share_att_key": attention.shares_projections,
            "pos_att_type": [name for name, ours in _KINDS.items() if getattr(attention, ours)],
            "pooler_hidden_size": config.hidden_dim,
            "legacy": True,
        }
        if isinstance(parts.convolution, TokenConvolution):
            act = next((act for act, ours in _ACTS.items() if ours == parts.convolution.activation), "none")
            values |= {"conv_kernel_size": parts.convolution.kernel_size, "conv_act": act}
        is_known = values.get("conv_act") != "none" and described(self.read(values, config)) == described(parts)
        return values if is_known else None


def _convolution(values: Mapping[str, Any], config: BertConfig) -> TokenConvolution | None:
    """The convolution beside the first block; None for none."""
    from keras_bert_layers.layers import TokenConvolution

    size = checks.integer(READER, "conv_kernel_size", values.get("conv_kernel_size", 0), smallest=0)
    act = values.get("conv_act", "tanh")
    if not size:
        return None
    if size % 2 == 0:
        raise ValueError(checks.message(READER, "conv_kernel_size", "be odd", size))
    return TokenConvolution(
        size,
        activation=_ACTS[checks.one_of(READER, "conv_act", act, list(_ACTS))],
        dropout=config.dropout,
        layer_norm_epsilon=config.layer_norm_epsilon,
        initializer_range=config.initializer_range,
    )


def _words(values: Mapping[str, Any], key: str, known: tuple[str, ...]) -> list[str]:
    """The words of a key, which is a list, or one string with bars between them."""
    found = values.get(key) or []
    words = [word.strip() for word in found.lower().split("|")] if isinstance(found, str) else found
    if not isinstance(words, list) or any(word not in known for word in words):
        raise ValueError(checks.message(READER, key, f"be of {list(known)}", found))
    return words


def _flag(values: Mapping[str, Any], key: str, default: bool) -> bool:
    return checks.boolean(READER, key, values.get(key, default))


def _buckets(values: Mapping[str, Any], config: BertConfig) -> dict[str, Any]:
    """The sizes of the vectors' table: numbers below 1 mean none, or as many as there are positions."""
    num_buckets, longest = (
        checks.integer(READER, key, values.get(key, -1), smallest=-1)
        for key in ("position_buckets", "max_relative_positions")
    )
    longest = longest if longest > 0 else config.max_sequence_length
    for key, size in (("max_relative_positions", longest), ("position_buckets", num_buckets)):
        check_positions(key, size)
    if num_buckets > 0:
        checks.integer(READER, "position_buckets", num_buckets, smallest=2)
        checks.integer(READER, "max_relative_positions", longest, smallest=num_buckets // 2 + 2)
    return {"num_buckets": num_buckets if num_buckets > 0 else None, "max_distance": longest}


DEBERTA_V2 = Family(
    title="DeBERTa-v2",
    model_types=("deberta-v2",),
    class_prefixes=("DebertaV2",),
    names=TensorNames(
        prefix="deberta.",
        block_tensors={
            "attention.self.query_proj.": "attention.self.query.",
            "attention.self.key_proj.": "attention.self.key.",
            "attention.self.value_proj.": "attention.self.value.",
        },
        tensors={
            "embeddings.embed_proj.": "embeddings_project.",
            **_MASKED_LM,
            **{name: name for name in _MASKED_LM.values()},  # the last ones are written
        },
        class_tensors={SEQUENCE_CLASS: _POOLER, CHOICE_CLASS: _POOLER},
        ignored={
            "embeddings.position_embeddings.": "positions of the head that predicts masked tokens",
            "mask_predictions.": "a head that transformers does not have",
        },
    ),
    unread=frozenset({"relative_attention", "max_relative_positions", "position_buckets", "norm_rel_ebd"})
    | {"share_att_key", "pos_att_type", "position_biased_input", "pooler_hidden_size", "attention_head_size"}
    | {"legacy", "padding_idx", "conv_kernel_size", "conv_act"},
    only=_ONLY,
    has_pooler=False,
    has_projection=True,
    may_lack_segments=True,
    pooler_activation="gelu_erf",
    pooler_key="pooler_hidden_act",
    dropouts={
        **dict.fromkeys(("classifier", "cross_encoder", "multiple_choice"), _HEAD_DROPOUT),
        "token_classifier": None,
    },
    default_tokenizers={"deberta-v2": "DebertaV2Tokenizer"},
    todays=_todays,
    parts=_DebertaParts(),
)
