"""Reads and writes the rules for rows as dictionaries, for the files beside prepared data."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.preprocessing.rows.full_sentences import DocumentSentences, FullSentences
from keras_bert_layers.preprocessing.rows.packed_texts import PackedTexts
from keras_bert_layers.preprocessing.rows.segment_pairs import NextSentence, SentenceOrder
from keras_bert_layers.preprocessing.rows.token_rows import RowRule

RULES: Mapping[str, Any] = {
    rule.__name__: rule for rule in (NextSentence, SentenceOrder, FullSentences, DocumentSentences, PackedTexts)
}


def rule_to_dict(rule: RowRule) -> dict[str, Any]:
    """A rule's class and settings, for JSON."""
    return {"class": type(rule).__name__, "settings": asdict(rule)}  # type: ignore[call-overload]


def rule_from_dict(values: Mapping[str, Any]) -> RowRule:
    """The rule of this package that `rule_to_dict` stored.

    Raises:
        TypeError: a setting of the wrong type.
        ValueError: an unknown class or setting; a setting out of range.
    """
    kind = RULES[checks.one_of("RowRule", "class", values.get("class"), list(RULES))]
    for setting in values["settings"]:
        checks.one_of(kind.__name__, "setting", setting, [field.name for field in fields(kind)])
    return kind(**values["settings"])
