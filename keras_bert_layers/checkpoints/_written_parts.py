"""What every writer of checkpoints asks of the parts that it is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.model_tensors import weights_by_row
from keras_bert_layers.checkpoints.weight_row import WeightRow
from keras_bert_layers.preprocessing import BertPreprocessor, BertTokenizer, SpanPreprocessor


def check_all_weights(owner: str, model: Any, rows: Sequence[WeightRow]) -> None:
    """Refuses a model that would lose weights: each must have one of the rows, and each row a weight."""
    try:
        weights_by_row(model, rows)
    except LookupError as error:
        rule = "have BERT's own weights and no others"
        raise ValueError(checks.message(owner, "model", rule, model, str(error))) from error


def written_preprocessor(owner: str, model: Any, preprocessor: Any) -> Any:
    """The preprocessor that was given, or a task's own; None if there is none."""
    if preprocessor is None:
        return getattr(model, "preprocessor", None)
    if not isinstance(preprocessor, BertPreprocessor | SpanPreprocessor):
        raise TypeError(checks.message(owner, "preprocessor", "be a BertPreprocessor or None", preprocessor))
    return preprocessor


def vocabulary_file(tokenizer: BertTokenizer) -> bytes:
    """The content of a vocabulary file: a token a line."""
    return "".join(f"{token}\n" for token in tokenizer.get_config()["vocabulary"]).encode()
