"""ModernBERT: BERT's task, with the parts of later models.

References:
    Warner et al. 2024, https://arxiv.org/abs/2412.13663; transformers, models/modernbert/modeling_modernbert.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from keras_bert_layers._internal import checks
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
    from keras_bert_layers.layers.encoder_parts import EncoderParts
    from keras_bert_layers.layers.positions import RotaryPositions

# The kind of attention, the key of its base in older files, and the default.
_KINDS = (
    ("full_attention", "global_rope_theta", 160_000.0),
    ("sliding_attention", "local_rope_theta", 10_000.0),
)
_POOLINGS = {"cls": "first", "mean": "mean"}
_HEAD = {"head.dense.": "pooler.dense.", "head.norm.": "pooler.LayerNorm."}


class _ModernParts(PartsForm):
    """ModernBERT's blocks: rotary positions, gates, no biases, and attention to near tokens in most of them."""

    def read(self, values: Mapping[str, Any], config: BertConfig) -> EncoderParts | None:
        from keras_bert_layers.layers import EncoderParts, GatedFeedForward, LocalAttention, RotaryPositions

        bases = [self._base(values, *kind) for kind in _KINDS]
        positions, local = (RotaryPositions(base=base, halves=True) for base in bases)
        window = checks.positive_integer(READER, "local_attention", values.get("local_attention", 128))
        sizes = {"local_attention": window, "max_position_embeddings": config.max_sequence_length}
        for name, size in sizes.items():
            check_positions(name, size)
        if window % 2:
            raise ValueError(checks.message(READER, "local_attention", "be even", window))
        pooling = checks.one_of(READER, "classifier_pooling", values.get("classifier_pooling", "cls"), tuple(_POOLINGS))
        options: dict[str, Any] = {"activation": config.activation, "use_bias": False}
        return EncoderParts(
            positions=positions,
            feed_forward=GatedFeedForward(config.intermediate_dim, **options),
            normalize_first=True,
            normalizes_first_attention=False,
            use_bias=False,
            local_attention=LocalAttention(window, global_every=self._period(values, config), positions=local),
            normalizes_heads=True,
            pooling=_POOLINGS[pooling],
        )

    def _base(self, values: Mapping[str, Any], kind: str, key: str, default: float) -> float:
        """How slowly the last columns rotate, by the newer or the older key."""
        newer: Any = values.get("rope_parameters")
        newer = {} if newer is None else newer
        for name in ("rope_parameters", f"rope_parameters.{kind}"):
            checks.instance(READER, name, newer, dict)
            newer = newer if "." in name else newer.get(kind) or {}
        # transformers, modeling_rope_utils.py: `type` is an older name of `rope_type`.
        newer = {"rope_type": newer.get("type", "default"), **newer}
        for name, allowed in {"rope_type": "default", "partial_rotary_factor": 1.0}.items():
            if newer.get(name, allowed) != allowed:
                raise ValueError(checks.message(READER, f"rope_parameters.{kind}.{name}", f"be {allowed!r}", newer))
        base = checks.positive_number(READER, key, newer.get("rope_theta", values.get(key, default)))
        if not math.isfinite(base):
            raise ValueError(checks.message(READER, key, "be finite", base))
        return base

    def _period(self, values: Mapping[str, Any], config: BertConfig) -> int:
        """Every how many blocks one attends to all tokens."""
        period = checks.positive_integer(
            READER, "global_attn_every_n_layers", values.get("global_attn_every_n_layers", 3)
        )
        found = values.get("layer_types")
        if found is None:
            return period
        if isinstance(found, list) and len(found) == config.num_layers:
            is_global = [kind == _KINDS[0][0] for kind in found]
            period = is_global.index(True, 1) if any(is_global[1:]) else config.num_layers
            if found == [_KINDS[index % period > 0][0] for index in range(config.num_layers)]:
                return period
        cure = "Global blocks at other places are not implemented."
        raise ValueError(checks.message(READER, "layer_types", "be global every n layers", found, cure))

    def written(self, parts: EncoderParts, config: BertConfig) -> dict[str, Any] | None:
        local, positions = parts.local_attention, parts.positions
        if local is None or not (_is_rotary(local.positions) and _is_rotary(positions)):
            return None
        values = {
            "global_attn_every_n_layers": local.global_every,
            "local_attention": local.window,
            "global_rope_theta": positions.base,
            "local_rope_theta": local.positions.base,
            "classifier_pooling": {"first": "cls"}.get(parts.pooling, parts.pooling),
        }
        same = self.read(values, config)
        return values if described(same) == described(parts) else None


def _is_rotary(positions: Any) -> TypeGuard[RotaryPositions]:
    return hasattr(positions, "base")


MODERNBERT = Family(
    title="ModernBERT",
    model_types=("modernbert",),
    class_prefixes=("ModernBert",),
    names=TensorNames(
        prefix="model.",
        block="layers.",
        block_tensors={
            "attn_norm.": "attention.output.LayerNorm.",
            "attn.Wqkv.": "attention.self.query_key_value.",
            "attn.Wo.": "attention.output.dense.",
            "mlp_norm.": "output.LayerNorm.",
            "mlp.Wi.": "intermediate.dense.",
            "mlp.Wo.": "output.dense.",
        },
        tensors={
            "embeddings.tok_embeddings.": "embeddings.word_embeddings.",
            "embeddings.norm.": "embeddings.LayerNorm.",
            "final_norm.": "encoder.final_layer_norm.",
        },
        class_tensors={
            "BertForMaskedLM": {
                "head.dense.": "cls.predictions.transform.dense.",
                "head.norm.": "cls.predictions.transform.LayerNorm.",
                "decoder.bias": "cls.predictions.bias",
                "decoder.weight": "cls.predictions.decoder.weight",
            },
            SEQUENCE_CLASS: _HEAD,
            CHOICE_CLASS: _HEAD,
            "BertForQuestionAnswering": {"classifier.": "qa_outputs."},
        },
        is_by_class=True,
        has_one_bias=True,
    ),
    keys={
        "norm_eps": "layer_norm_eps",
        "hidden_activation": "hidden_act",
        "embedding_dropout": "hidden_dropout_prob",
        "attention_dropout": "attention_probs_dropout_prob",
    },
    constants={"type_vocab_size": 0},
    only={**dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias"), (False,)), "rope_scaling": (None,)},
    head_only={
        "": {"classifier_bias": (False,), "classifier_activation": ("gelu",)},
        "BertForMaskedLM": {"decoder_bias": (True,)},
    },
    # What states the parts, and what changes no output: BERT's keys are not read there either.
    unread=frozenset({"rope_parameters", "layer_types", "global_attn_every_n_layers", "local_attention"})
    | {"global_rope_theta", "local_rope_theta", "classifier_pooling", "layer_norm_eps", "initializer_cutoff_factor"}
    | {"hidden_act", "hidden_dropout_prob", "attention_probs_dropout_prob"}
    | {"deterministic_flash_attn", "reference_compile", "repad_logits_with_grad"}
    | {"sparse_prediction", "sparse_pred_ignore_index"},
    has_pooler=False,
    pooler_activation="gelu_erf",
    masked_lm_activation="gelu_erf",
    token_ids={
        **dict.fromkeys(("bos_token_id", "cls_token_id"), "start"),
        **dict.fromkeys(("eos_token_id", "sep_token_id"), "separator"),
    },
    tokenizer_class="TokenizersBackend",
    default_tokenizers={"modernbert": "TokenizersBackend"},
    parts=_ModernParts(),
)
