"""`huggingface_form`: the class of transformers, the weights and the `config.json` of a model of this package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.huggingface.families import BERT, Family, family_of
from keras_bert_layers.checkpoints.sentence_transformers.activations import ACTIVATIONS
from keras_bert_layers.checkpoints.sentence_transformers.cross_encoder import config_entry
from keras_bert_layers.checkpoints.weights.row import WeightRow
from keras_bert_layers.checkpoints.weights.table import backbone_rows, encoder_rows
from keras_bert_layers.checkpoints.written_model import WrittenModel


class HuggingFaceForm(NamedTuple):
    """The counterpart of a model in transformers.

    Args:
        family: the model type.
        bert_class: the class of transformers' BERT that has the same head.
        rows: the rows of the table of weight names for the tensors that the class saves.
        values: the keys of `config.json` except the encoder's.
        loses_dropout: whether `config.json` has no key for the head's dropout rate.
    """

    family: Family
    bert_class: str
    rows: tuple[WeightRow, ...]
    values: dict[str, Any]
    loses_dropout: bool

    @property
    def architecture(self) -> str:
        """The class of transformers."""
        return self.family.own_class(self.bert_class)

    def file_name(self, name: str) -> str:
        """The name of a tensor in the file, for its name in the table."""
        return self.family.names.file_name(name, self.bert_class)


def huggingface_form(written: WrittenModel) -> HuggingFaceForm:
    """Finds the counterpart of a model in transformers. It has a pooler if transformers' class has one.

    Raises:
        ValueError: the model has parts that transformers' class does not have.
    """
    family = family_of(written.config)
    _check_parts(written, family)
    bert_class = written.counterpart or "BertModel"
    pooled = family.has_pooler if bert_class == "BertModel" else written.task is not None and written.task.pooled
    rows = (backbone_rows if pooled else encoder_rows)(written.config)
    name = str(written.name)
    loses_dropout = name in family.dropouts and family.dropouts[name] is None
    values = family.head_values(name, _values(written))
    return HuggingFaceForm(family, bert_class, (*rows, *written.head), values, loses_dropout)


def _check_parts(written: WrittenModel, family: Family) -> None:
    """Raises ValueError for parts that transformers' class does not have."""
    model, owner = written.model, written.owner
    kind = type(model).__name__
    if written.name == "token_classifier" and model.crf is not None:
        cure = "transformers' BertForTokenClassification does not have its transitions. Save a `.keras` file."
        rule = "have no conditional random field"
        raise ValueError(checks.message(owner, "model", rule, f"{kind} with crf=True", cure))
    if written.name == "dual_encoder" and model.document_backbone is not None:
        cure = (
            "sentence-transformers has no such pair. Save each side: `BertSentenceEncoder(model.backbone, "
            "model.pooling, normalize=model.normalize, preprocessor=model.preprocessor)`, and the same with "
            "`model.document_backbone`."
        )
        rule = "have one encoder for both sides"
        raise ValueError(checks.message(owner, "model", rule, f"{kind} with a document_backbone", cure))
    pad_id = None if written.preprocessor is None else written.preprocessor.tokenizer.pad_id
    if family.counts_padding and pad_id not in (None, written.config.position_offset - 1):
        rule = f"be the model's `position_offset` less 1, {written.config.position_offset - 1}"
        raise ValueError(checks.message(owner, "preprocessor.tokenizer.pad_id", rule, pad_id))
    if written.name == "pretrainer" and family is not BERT:
        cure = f"transformers' {family.title} predicts no next sentences. Save a `BertMaskedLM`, or a `.keras` file."
        raise ValueError(checks.message(owner, "model", "be of BERT for next sentence prediction", kind, cure))
    if written.name == "cross_encoder":
        checks.one_of(owner, "model.activation", model.activation, list(ACTIVATIONS.values()))
    for name in ("activation", "layer_norm_epsilon") if written.name == "masked_lm" else ():
        own = getattr(written.config, name)
        standard = (family.masked_lm_activation if name == "activation" else None) or own
        value = getattr(model, f"head_{name}")
        if (own if value is None else value) != standard:
            rule = f"be {standard!r} or None" if own == standard else f"be {standard!r}"
            cure = f"transformers' {family.title} has no other in this head. Save a `.keras` file."
            raise ValueError(checks.message(owner, f"model.head_{name}", rule, value, cure))


def _values(written: WrittenModel) -> dict[str, Any]:
    """The head's keys of `config.json`."""
    model = written.model
    match written.name:
        case "classifier":
            # The numbers of a regression have no names, which is transformers' default.
            beginning = "LABEL_" if model.problem_type == "regression" else ""
            labels = _labels(model.class_names or [f"{beginning}{index}" for index in range(model.num_classes)])
            return {"problem_type": model.problem_type, "classifier_dropout": model.dropout, **labels}
        case "cross_encoder":
            entry = {"sentence_transformers": config_entry(model)}
            return {"classifier_dropout": model.dropout, **_labels(["LABEL_0"]), **entry}
        case "token_classifier":
            return {"classifier_dropout": model.dropout, **_labels(model.tag_names)}
        case "multiple_choice":
            return {"classifier_dropout": model.dropout}
        case "masked_lm" | "pretrainer":
            return {} if model.tie_weights else {"tie_word_embeddings": False}
    return {}


def _labels(names: Sequence[str]) -> dict[str, Any]:
    """The class names in `config.json`, by index and by name."""
    return {
        "id2label": {str(index): name for index, name in enumerate(names)},
        "label2id": {name: index for index, name in enumerate(names)},
    }
