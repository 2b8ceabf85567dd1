"""What each model of this package is in transformers: a class, its weights, and what `config.json` says of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.checkpoints import weight_table
from keras_bert_layers.checkpoints.weight_row import WeightRow
from keras_bert_layers.checkpoints.weight_table import backbone_rows, encoder_rows
from keras_bert_layers.tasks import (
    BertClassifier,
    BertCrossEncoder,
    BertDualEncoder,
    BertMaskedLM,
    BertMultipleChoice,
    BertPretrainer,
    BertQuestionAnswerer,
    BertSentenceEncoder,
    BertTokenClassifier,
)


@dataclasses.dataclass(frozen=True)
class HuggingFaceForm:
    """A model as transformers has it.

    Args:
        architecture: the class of transformers.
        backbone: the encoder.
        rows: the rows of the table of weight names for the tensors that this class saves.
        values: what `config.json` says beside the encoder's own numbers.
    """

    architecture: str
    backbone: BertBackbone
    rows: tuple[WeightRow, ...]
    values: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def is_bare(self) -> bool:
        """Whether this is the encoder alone, whose tensors have no prefix."""
        return self.architecture == "BertModel"


def huggingface_form(owner: str, model: Any) -> HuggingFaceForm:
    """What a model is in transformers.

    Args:
        owner: the public function that was called, for errors.
        model: a `BertBackbone` or a task.

    Returns:
        The form. Where transformers' class has no pooler, nor has the form.

    Raises:
        TypeError: the model is none of this package's.
        ValueError: it has parts that transformers' class has not.
    """
    for kind, form in _FORMS.items():
        if isinstance(model, kind):
            return form(owner, model)
    rule = f"be a {', a '.join(kind.__name__ for kind in _FORMS)}"
    raise TypeError(checks.message(owner, "model", rule, model))


def _bare(owner: str, model: BertBackbone) -> HuggingFaceForm:
    return HuggingFaceForm("BertModel", model, backbone_rows(model.config))


def _with_pooler(
    architecture: str, task: Any, head: Sequence[WeightRow], values: dict[str, Any] | None = None
) -> HuggingFaceForm:
    return HuggingFaceForm(architecture, task.backbone, (*backbone_rows(task.backbone.config), *head), values or {})


def _without_pooler(
    architecture: str, task: Any, head: Sequence[WeightRow], values: dict[str, Any] | None = None
) -> HuggingFaceForm:
    return HuggingFaceForm(architecture, task.backbone, (*encoder_rows(task.backbone.config), *head), values or {})


def _classifier(owner: str, task: BertClassifier) -> HuggingFaceForm:
    if task.problem_type == "regression":
        labels = _labels(["LABEL_0"])  # transformers' own word; it names nothing
    else:
        labels = _labels(task.class_names or [str(number) for number in range(task.num_classes)])
    values = {"problem_type": task.problem_type, "classifier_dropout": task.dropout, **labels}
    return _with_pooler("BertForSequenceClassification", task, weight_table.CLASSIFIER_ROWS, values)


def _cross_encoder(owner: str, task: BertCrossEncoder) -> HuggingFaceForm:
    # sentence-transformers, CrossEncoder: what turns the logit into the score that `predict` and `rank` give.
    sigmoid = {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}}
    values = {"classifier_dropout": task.dropout, **_labels(["LABEL_0"]), **sigmoid}
    return _with_pooler("BertForSequenceClassification", task, weight_table.CLASSIFIER_ROWS, values)


def _token_classifier(owner: str, task: BertTokenClassifier) -> HuggingFaceForm:
    if task.crf is not None:
        cure = "transformers' BertForTokenClassification has no place for its transitions. Save a `.keras` file."
        rule = "have no conditional random field"
        raise ValueError(checks.message(owner, "model", rule, f"{type(task).__name__} with crf=True", cure))
    values = {"classifier_dropout": task.dropout, **_labels(task.tag_names)}
    return _without_pooler("BertForTokenClassification", task, weight_table.TOKEN_CLASSIFIER_ROWS, values)


def _question_answerer(owner: str, task: BertQuestionAnswerer) -> HuggingFaceForm:
    return _without_pooler("BertForQuestionAnswering", task, weight_table.SPAN_ROWS)


def _multiple_choice(owner: str, task: BertMultipleChoice) -> HuggingFaceForm:
    values = {"classifier_dropout": task.dropout}
    return _with_pooler("BertForMultipleChoice", task, weight_table.MULTIPLE_CHOICE_ROWS, values)


def _masked_lm(owner: str, task: BertMaskedLM) -> HuggingFaceForm:
    config = task.backbone.config
    for name in ("activation", "layer_norm_epsilon"):
        value, standard = getattr(task, f"head_{name}"), getattr(config, name)
        if value not in (None, standard):
            cure = "transformers' head has no other than the encoder's. Save a `.keras` file."
            raise ValueError(checks.message(owner, f"model.head_{name}", f"be {standard!r} or None", value, cure))
    return _without_pooler("BertForMaskedLM", task, weight_table.MASKED_LM_ROWS)


def _pretrainer(owner: str, task: BertPretrainer) -> HuggingFaceForm:
    rows = (*weight_table.MASKED_LM_ROWS, *weight_table.NEXT_SENTENCE_ROWS)
    return _with_pooler("BertForPreTraining", task, rows)


def _sentence_encoder(owner: str, task: BertSentenceEncoder) -> HuggingFaceForm:
    return _bare(owner, task.backbone)


def _dual_encoder(owner: str, task: BertDualEncoder) -> HuggingFaceForm:
    if task.document_backbone is not None:
        cure = (
            "sentence-transformers has no such pair. Save each side: `BertSentenceEncoder(model.backbone, "
            "model.pooling, normalize=model.normalize, preprocessor=model.preprocessor)`, and the same with "
            "`model.document_backbone`."
        )
        value = f"{type(task).__name__} with a document_backbone"
        raise ValueError(checks.message(owner, "model", "have one encoder for both sides", value, cure))
    return _bare(owner, task.backbone)


_FORMS: dict[type[Any], Callable[[str, Any], HuggingFaceForm]] = {
    BertBackbone: _bare,
    BertClassifier: _classifier,
    BertCrossEncoder: _cross_encoder,
    BertDualEncoder: _dual_encoder,
    BertMaskedLM: _masked_lm,
    BertMultipleChoice: _multiple_choice,
    BertPretrainer: _pretrainer,
    BertQuestionAnswerer: _question_answerer,
    BertSentenceEncoder: _sentence_encoder,
    BertTokenClassifier: _token_classifier,
}


def _labels(names: Sequence[str]) -> dict[str, Any]:
    """The names of classes as `config.json` has them, both ways."""
    return {
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }
