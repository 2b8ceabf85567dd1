"""The relatives of BERT: model types of transformers whose encoder is BERT's own, under other names."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.huggingface.family import (
    BERT,
    CHOICE_CLASS,
    SEQUENCE_CLASS,
    Family,
    PartsForm,
    TensorNames,
    stated_names,
)
from keras_bert_layers.config import BertConfig

if TYPE_CHECKING:
    from keras_bert_layers.layers.encoder_parts import EncoderParts
    from keras_bert_layers.layers.positions import RotaryPositions

# DistilBERT: BERT without segments and without a pooler.
#
# References:
#     Sanh et al. 2019, https://arxiv.org/abs/1910.01108; transformers, models/distilbert/modeling_distilbert.py.
_PRE_CLASSIFIER = {"pre_classifier.": "pooler.dense."}
_HEAD_DROPOUT = ("seq_classif_dropout", 0.2)

DISTILBERT = Family(
    title="DistilBERT",
    model_types=("distilbert",),
    class_prefixes=("DistilBert",),
    names=TensorNames(
        prefix="distilbert.",
        block="transformer.layer.",
        block_tensors={
            "attention.q_lin.": "attention.self.query.",
            "attention.k_lin.": "attention.self.key.",
            "attention.v_lin.": "attention.self.value.",
            "attention.out_lin.": "attention.output.dense.",
            "sa_layer_norm.": "attention.output.LayerNorm.",
            "ffn.lin1.": "intermediate.dense.",
            "ffn.lin2.": "output.dense.",
            "output_layer_norm.": "output.LayerNorm.",
        },
        tensors={
            "vocab_transform.": "cls.predictions.transform.dense.",
            "vocab_layer_norm.": "cls.predictions.transform.LayerNorm.",
            "vocab_projector.bias": "cls.predictions.bias",
            "vocab_projector.weight": "cls.predictions.decoder.weight",
        },
        class_tensors={SEQUENCE_CLASS: _PRE_CLASSIFIER, CHOICE_CLASS: _PRE_CLASSIFIER},
        has_one_bias=True,
    ),
    keys={
        "dim": "hidden_size",
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "hidden_dim": "intermediate_size",
        "activation": "hidden_act",
        "dropout": "hidden_dropout_prob",
        "attention_dropout": "attention_probs_dropout_prob",
    },
    constants={"type_vocab_size": 0, "layer_norm_eps": 1e-12},
    # The sinusoidal positions are in the file of weights, like learned ones. `qa_dropout` is for training only.
    unread=frozenset({"sinusoidal_pos_embds", "qa_dropout", "tie_weights_", "embedding_size"})
    | {"hidden_act", "intermediate_size", "hidden_dropout_prob", "attention_probs_dropout_prob"},
    has_pooler=False,
    pooler_activation="relu",
    dropouts={
        **dict.fromkeys(("classifier", "cross_encoder", "multiple_choice"), _HEAD_DROPOUT),
        "token_classifier": None,
    },
    tokenizer_class="DistilBertTokenizer",  # which gives no segment ids
)

# ELECTRA: BERT, often with a narrower embedding, without a pooler.
#
# The generator is a masked language model. The discriminator, which most checkpoints hold, is a plain encoder.
#
# References:
#     Clark et al. 2020, https://arxiv.org/abs/2003.10555; transformers, models/electra/modeling_electra.py.
ELECTRA = Family(
    title="ELECTRA",
    model_types=("electra",),
    class_prefixes=("Electra",),
    names=TensorNames(
        prefix="electra.",
        tensors={
            "generator_predictions.": "cls.predictions.transform.",
            "generator_lm_head.bias": "cls.predictions.bias",
            "generator_lm_head.weight": "cls.predictions.decoder.weight",
        },
        class_tensors={
            SEQUENCE_CLASS: {"classifier.dense.": "pooler.dense.", "classifier.out_proj.": "classifier."},
            CHOICE_CLASS: {"sequence_summary.summary.": "pooler.dense."},
        },
        ignored={"discriminator_predictions.": "the head that finds replaced tokens"},
        has_one_bias=True,
    ),
    other_classes=frozenset({"ElectraForPreTraining"}),  # the discriminator, whose head is not BERT's
    choice_only={"summary_type": ("first",), "summary_use_proj": (True,), "summary_activation": ("gelu",)},
    unread=frozenset({"summary_last_dropout", "summary_first_dropout", "summary_proj_to_labels"}),
    has_pooler=False,
    has_projection=True,
    pooler_activation="gelu_erf",
    masked_lm_activation="gelu_erf",
    dropouts={"multiple_choice": ("summary_last_dropout", 0.1)},
)

# XLM-RoBERTa: BERT whose positions begin after the id of padding. CamemBERT has the same weights.
#
# References:
#     Conneau et al. 2020, https://arxiv.org/abs/1911.02116; transformers, models/xlm_roberta/modeling_xlm_roberta.py.
XLM_ROBERTA = Family(
    title="XLM-RoBERTa",
    model_types=("xlm-roberta", "camembert"),
    class_prefixes=("XLMRoberta", "Camembert"),
    names=TensorNames(
        prefix="roberta.",
        tensors={
            "lm_head.dense.": "cls.predictions.transform.dense.",
            "lm_head.layer_norm.": "cls.predictions.transform.LayerNorm.",
            "lm_head.bias": "cls.predictions.bias",
            "lm_head.decoder.": "cls.predictions.decoder.",
        },
        class_tensors={SEQUENCE_CLASS: {"classifier.dense.": "pooler.dense.", "classifier.out_proj.": "classifier."}},
    ),
    masked_lm_activation="gelu_erf",
    dropouts={"multiple_choice": None},
    counts_padding=True,
)

# RoBERTa: the same with a byte-level BPE.
#
# References:
#     Liu et al. 2019, https://arxiv.org/abs/1907.11692; transformers, models/roberta/modeling_roberta.py.
ROBERTA = dataclasses.replace(XLM_ROBERTA, title="RoBERTa", model_types=("roberta",), class_prefixes=("Roberta",))


class _RelativePositions(PartsForm):
    """MPNet's bias of each distance beside the trained positions; its number of buckets is fixed."""

    def read(self, values: Mapping[str, Any], config: BertConfig) -> EncoderParts | None:
        from keras_bert_layers.layers import EncoderParts, RelativePositionBias

        return EncoderParts(positions=RelativePositionBias(keeps_position_embedding=True))

    def written(self, parts: EncoderParts, config: BertConfig) -> dict[str, Any] | None:
        from keras_bert_layers.layers import RelativePositionBias

        others, own = dataclasses.replace(parts, positions=None), parts.positions
        if not others.are_of_bert or type(own) is not RelativePositionBias:
            return None
        return {} if (own.num_buckets, own.max_distance, own.keeps_position_embedding) == (32, 128, True) else None


# MPNet: positions as in RoBERTa, and a bias of each distance that all blocks share; BERT's WordPiece, no segments.
#
# References:
#     Song et al. 2020, https://arxiv.org/abs/2004.09297; transformers, models/mpnet/modeling_mpnet.py.
MPNET = dataclasses.replace(
    XLM_ROBERTA,
    title="MPNet",
    model_types=("mpnet",),
    class_prefixes=("MPNet",),
    names=dataclasses.replace(
        XLM_ROBERTA.names,
        prefix="mpnet.",
        block_tensors={
            "attention.attn.q.": "attention.self.query.",
            "attention.attn.k.": "attention.self.key.",
            "attention.attn.v.": "attention.self.value.",
            "attention.attn.o.": "attention.output.dense.",
            "attention.LayerNorm.": "attention.output.LayerNorm.",
        },
    ),
    constants={"type_vocab_size": 0},
    # transformers computes with 32 whatever is stated, and with the id 1 of padding.
    only={"relative_attention_num_buckets": (32,), "pad_token_id": (1,)},
    dropouts=dict.fromkeys(("classifier", "cross_encoder", "multiple_choice", "token_classifier")),
    tokenizer_class="MPNetTokenizer",
    parts=_RelativePositions(),
)


class _ModernParts(PartsForm):
    """ModernBERT's blocks: rotary positions, gates, no biases, and attention to near tokens in most of them."""

    def read(self, values: Mapping[str, Any], config: BertConfig) -> EncoderParts | None:
        from keras_bert_layers.layers import EncoderParts, GatedFeedForward, LocalAttention, RotaryPositions

        bases = [self._base(values, *kind) for kind in self._KINDS]
        positions, local = (RotaryPositions(base=base, halves=True) for base in bases)
        window = checks.positive_integer(_READER, "local_attention", values.get("local_attention", 128))
        options: dict[str, Any] = {"activation": config.activation, "use_bias": False}
        return EncoderParts(
            positions=positions,
            feed_forward=GatedFeedForward(config.intermediate_dim, **options),
            normalize_first=True,
            normalizes_first_attention=False,
            use_bias=False,
            local_attention=LocalAttention(window, global_every=self._period(values, config), positions=local),
            normalizes_heads=True,
            pooling={"cls": "first", "mean": "mean"}[values.get("classifier_pooling", "cls")],
        )

    #: The kind of attention, the key of its base in older files, and the default.
    _KINDS = (
        ("full_attention", "global_rope_theta", 160_000.0),
        ("sliding_attention", "local_rope_theta", 10_000.0),
    )

    def _base(self, values: Mapping[str, Any], kind: str, key: str, default: float) -> float:
        """How slowly the last columns rotate, by the newer or the older key."""
        newer = (values.get("rope_parameters") or {}).get(kind) or {}
        for name, allowed in {"rope_type": "default", "partial_rotary_factor": 1.0}.items():
            if newer.get(name, allowed) != allowed:
                raise ValueError(checks.message(_READER, f"rope_parameters.{kind}.{name}", f"be {allowed!r}", newer))
        return checks.positive_number(_READER, key, newer.get("rope_theta", values.get(key, default)))

    def _period(self, values: Mapping[str, Any], config: BertConfig) -> int:
        """Every how many blocks one attends to all tokens."""
        period = checks.positive_integer(
            _READER, "global_attn_every_n_layers", values.get("global_attn_every_n_layers", 3)
        )
        found = values.get("layer_types")
        if found is None:
            return period
        for period in range(1, config.num_layers + 1):
            if found == [self._KINDS[index % period > 0][0] for index in range(config.num_layers)]:
                return period
        cure = "Global blocks at other places are not implemented."
        raise ValueError(checks.message(_READER, "layer_types", "be global every n layers", found, cure))

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
        return values if _described(same) == _described(parts) else None


def _is_rotary(positions: Any) -> TypeGuard[RotaryPositions]:
    return hasattr(positions, "base")


def _described(part: Any) -> Any:
    """What parts compute with, to compare them: their configs without names, dtypes and initial values."""
    config = {field: getattr(part, field) for field in getattr(part, "__dataclass_fields__", ())}
    if not config and hasattr(part, "get_config"):
        given = set(inspect.signature(type(part)).parameters) - {"initializer_range", "max_sequence_length", "kwargs"}
        config = {"kind": type(part).__name__, **{name: getattr(part, name) for name in given}}
    return {name: _described(value) for name, value in config.items()} if config else part


_READER = "config_from_huggingface"
_MODERN_HEAD = {"head.dense.": "pooler.dense.", "head.norm.": "pooler.LayerNorm."}

# ModernBERT: BERT's task, with the parts of later models.
#
# References:
#     Warner et al. 2024, https://arxiv.org/abs/2412.13663; transformers, models/modernbert/modeling_modernbert.py.
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
            SEQUENCE_CLASS: _MODERN_HEAD,
            CHOICE_CLASS: _MODERN_HEAD,
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
    only={
        **dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias", "classifier_bias"), (False,)),
        "decoder_bias": (True,),
        "classifier_activation": ("gelu",),
        "rope_scaling": (None,),
    },
    # What states the parts, and what changes no output: `layer_norm_eps` is not read there either.
    unread=frozenset({"rope_parameters", "layer_types", "global_attn_every_n_layers", "local_attention"})
    | {"global_rope_theta", "local_rope_theta", "classifier_pooling", "layer_norm_eps", "initializer_cutoff_factor"}
    | {"deterministic_flash_attn", "reference_compile", "repad_logits_with_grad", "hidden_dropout_prob"}
    | {"sparse_prediction", "sparse_pred_ignore_index"},
    has_pooler=False,
    pooler_activation="gelu_erf",
    masked_lm_activation="gelu_erf",
    token_ids={
        **dict.fromkeys(("bos_token_id", "cls_token_id"), "start"),
        **dict.fromkeys(("eos_token_id", "sep_token_id"), "separator"),
    },
    tokenizer_class="TokenizersBackend",
    parts=_ModernParts(),
)

FAMILIES = (BERT, DISTILBERT, ELECTRA, XLM_ROBERTA, ROBERTA, MPNET, MODERNBERT)


def stated_family(values: Mapping[str, Any]) -> Family | None:
    """The family of a `config.json`, by its `model_type`, or in old files, which have none, by its classes.

    Examples:
        >>> stated_family({"model_type": "camembert"}).title
        'XLM-RoBERTa'
        >>> stated_family({"model_type": "gpt2"}) is None
        True
    """
    if "model_type" in values:
        return next((family for family in FAMILIES if values["model_type"] in family.model_types), None)
    names = stated_names(values)
    fits = (family for family in FAMILIES if all(name.startswith(family.class_prefixes) for name in names))
    return next(fits, None)


def family_of(config: BertConfig, parts: EncoderParts | None = None, *, is_byte_level: bool = False) -> Family:
    """The family that a model is written as: the one whose parts it has, and the kind of tokenizer.

    Raises:
        ValueError: no family has these parts.

    Examples:
        >>> config = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=7)
        >>> family_of(config).title
        'BERT'
    """
    if parts is not None and not parts.are_of_bert:
        family = next((family for family in FAMILIES if family.parts.written(parts, config) is not None), None)
        if family is None:
            cure = "No model type of transformers has these parts. Save a `.keras` file."
            raise ValueError(checks.message("save_huggingface", "model.parts", "be BERT's own", parts, cure))
        return family
    if config.position_offset:
        return ROBERTA if is_byte_level else XLM_ROBERTA
    if not config.num_segments:
        return DISTILBERT
    return ELECTRA if config.pooler_activation == ELECTRA.pooler_activation else BERT
