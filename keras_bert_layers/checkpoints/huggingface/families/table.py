"""The table of families: the model types that are read and written, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from keras_bert_layers._internal import checks, keys
from keras_bert_layers.checkpoints.huggingface.families.albert import ALBERT
from keras_bert_layers.checkpoints.huggingface.families.deberta_v2 import DEBERTA_V2
from keras_bert_layers.checkpoints.huggingface.families.distilbert import DISTILBERT
from keras_bert_layers.checkpoints.huggingface.families.electra import ELECTRA
from keras_bert_layers.checkpoints.huggingface.families.family import BERT, READER, Family, stated_names
from keras_bert_layers.checkpoints.huggingface.families.gte import GTE
from keras_bert_layers.checkpoints.huggingface.families.jina_embeddings_v3 import JINA_EMBEDDINGS_V3
from keras_bert_layers.checkpoints.huggingface.families.modernbert import MODERNBERT
from keras_bert_layers.checkpoints.huggingface.families.mpnet import MPNET
from keras_bert_layers.checkpoints.huggingface.families.nomic_bert import NOMIC_BERT
from keras_bert_layers.checkpoints.huggingface.families.roberta import ROBERTA, XLM_ROBERTA
from keras_bert_layers.config import BertConfig

if TYPE_CHECKING:
    from keras_bert_layers.layers.encoder_parts import EncoderParts

FAMILIES = (
    BERT,
    DISTILBERT,
    ELECTRA,
    XLM_ROBERTA,
    ROBERTA,
    MPNET,
    MODERNBERT,
    NOMIC_BERT,
    GTE,
    JINA_EMBEDDINGS_V3,
    ALBERT,
    DEBERTA_V2,
)

# How models that may be taken for a BERT differ from it. The rest of their configs is not read.
_OTHER_TYPES = {
    "deberta": 'Its first version has keys without biases, and other tokens. Versions 2 and 3 are "deberta-v2".',
}


def stated_family(values: Mapping[str, Any]) -> Family | None:
    """The family of a `config.json`, by its `model_type`, or in old files, which have none, by its classes.

    Examples:
        >>> stated_family({"model_type": "camembert"}).title
        'XLM-RoBERTa'
        >>> stated_family({"model_type": "gpt2"}) is None
        True
    """
    if values.get("model_type") == "xlm-roberta" and values.get("position_embedding_type") == "rotary":
        return JINA_EMBEDDINGS_V3  # its first repositories
    if "model_type" in values:
        return next((family for family in FAMILIES if values["model_type"] in family.model_types), None)
    names = stated_names(values)
    fits = (family for family in FAMILIES if all(name.startswith(family.class_prefixes) for name in names))
    return next(fits, None)


def default_tokenizer(values: Mapping[str, Any]) -> str | None:
    """The class of tokenizer by the `model_type` of a `config.json`; None without one, or for one that is not read.

    Examples:
        >>> default_tokenizer({"model_type": "camembert"})
        'CamembertTokenizer'
    """
    tables = (family.default_tokenizers for family in FAMILIES)
    return next((table[kind] for table in tables for kind in table if kind == values.get("model_type")), None)


def checked_family(values: Mapping[str, Any]) -> Family:
    """The family of a `config.json`; ValueError for others, before anything else of their configs is looked at."""
    family = stated_family(values)
    if family is not None:
        return family
    if "model_type" in values:
        kinds = f"one of {[kind for each in FAMILIES for kind in each.model_types]}"
        cure = _OTHER_TYPES.get(str(values["model_type"]), keys.OTHER_MODEL)
        raise ValueError(checks.message(READER, "model_type", f"be {kinds}", values["model_type"], cure))
    rule = "name BERT's classes where there is no `model_type`"
    raise ValueError(checks.message(READER, "architectures", rule, values["architectures"], keys.OTHER_MODEL))


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
