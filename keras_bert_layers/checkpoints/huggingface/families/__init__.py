"""The families: model types of transformers whose encoder is BERT's own, under other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keras_bert_layers.checkpoints.huggingface.families.distilbert import DISTILBERT
from keras_bert_layers.checkpoints.huggingface.families.electra import ELECTRA
from keras_bert_layers.checkpoints.huggingface.families.family import BERT, UNREAD, Family, stated_names
from keras_bert_layers.checkpoints.huggingface.families.xlm_roberta import XLM_ROBERTA
from keras_bert_layers.config import BertConfig

__all__ = ["BERT", "FAMILIES", "UNREAD", "Family", "family_of", "stated_family"]

FAMILIES = (BERT, DISTILBERT, ELECTRA, XLM_ROBERTA)


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


def family_of(config: BertConfig) -> Family:
    """The family that a model is written as: the one whose parts it has.

    Examples:
        >>> config = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=7)
        >>> family_of(config).title
        'BERT'
    """
    if config.position_offset:
        return XLM_ROBERTA
    if not config.num_segments:
        return DISTILBERT
    return ELECTRA if config.pooler_activation == ELECTRA.pooler_activation else BERT
