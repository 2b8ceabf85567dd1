"""Rules for rows as dictionaries, for files beside the data that they made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.preprocessing.document_sentences import DocumentSentences
from keras_bert_layers.preprocessing.full_sentences import FullSentences
from keras_bert_layers.preprocessing.next_sentence import NextSentence
from keras_bert_layers.preprocessing.packed_texts import PackedTexts
from keras_bert_layers.preprocessing.row_rule import RowRule
from keras_bert_layers.preprocessing.sentence_order import SentenceOrder

RULES: Mapping[str, Any] = {
    rule.__name__: rule for rule in (NextSentence, SentenceOrder, FullSentences, DocumentSentences, PackedTexts)
}


def rule_to_dict(rule: RowRule) -> dict[str, Any]:
    """A rule's name and settings, for JSON.

    Args:
        rule: one of this package.

    Raises:
        ValueError: another rule, which `rule_from_dict` could not make.
    """
    name = type(rule).__name__
    if RULES.get(name) is not type(rule):
        raise ValueError(checks.message("RowRule", "rule", f"be one of {list(RULES)}", rule))
    settings: Any = rule
    return {"name": name, **asdict(settings)}


def rule_from_dict(values: Mapping[str, Any]) -> RowRule:
    """The rule that `rule_to_dict` stored.

    Args:
        values: `"name"`, and the rule's settings.

    Raises:
        TypeError: a setting of the wrong type.
        ValueError: an unknown name or setting; a setting out of range.
    """
    settings = dict(values)
    kind = RULES[checks.one_of("RowRule", "name", settings.pop("name", None), list(RULES))]
    for setting in settings:
        checks.one_of(kind.__name__, "setting", setting, [field.name for field in fields(kind)])
    return kind(**settings)
