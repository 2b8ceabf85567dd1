"""The relatives of BERT: model types of transformers whose encoder is BERT's own, under other names."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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

    def read(self, values: Mapping[str, Any]) -> EncoderParts | None:
        from keras_bert_layers.layers import EncoderParts, RelativePositionBias

        return EncoderParts(positions=RelativePositionBias(keeps_position_embedding=True))

    def written(self, parts: EncoderParts) -> dict[str, Any] | None:
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

FAMILIES = (BERT, DISTILBERT, ELECTRA, XLM_ROBERTA, ROBERTA, MPNET)


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
        family = next((family for family in FAMILIES if family.parts.written(parts) is not None), None)
        if family is None:
            cure = "No model type of transformers has these parts. Save a `.keras` file."
            raise ValueError(checks.message("save_huggingface", "model.parts", "be BERT's own", parts, cure))
        return family
    if config.position_offset:
        return ROBERTA if is_byte_level else XLM_ROBERTA
    if not config.num_segments:
        return DISTILBERT
    return ELECTRA if config.pooler_activation == ELECTRA.pooler_activation else BERT
