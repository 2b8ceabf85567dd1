"""`huggingface_form`: the class of transformers, the weights and the `config.json` of a model of this package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.weights.row import WeightRow
from keras_bert_layers.checkpoints.weights.table import backbone_rows, encoder_rows
from keras_bert_layers.checkpoints.written_model import WrittenModel


class HuggingFaceForm(NamedTuple):
    """The counterpart of a model in transformers.

    Args:
        architecture: the class of transformers.
        rows: the rows of the table of weight names for the tensors that this class saves.
        values: the keys of `config.json` except the encoder's.
    """

    architecture: str
    rows: tuple[WeightRow, ...]
    values: dict[str, Any]

    @property
    def is_bare(self) -> bool:
        """Whether this is the encoder alone, whose tensors have no prefix."""
        return self.architecture == "BertModel"


def huggingface_form(written: WrittenModel) -> HuggingFaceForm:
    """Finds the counterpart of a model in transformers. It has a pooler if transformers' class has one.

    Raises:
        ValueError: the model has parts that transformers' class does not have.
    """
    _check_parts(written)
    architecture = written.counterpart or "BertModel"
    has_pooler = architecture == "BertModel" or (written.task is not None and written.task.pooled)
    rows = (backbone_rows if has_pooler else encoder_rows)(written.config)
    return HuggingFaceForm(architecture, (*rows, *written.head), _values(written))


def _check_parts(written: WrittenModel) -> None:
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
    for name in ("activation", "layer_norm_epsilon") if written.name == "masked_lm" else ():
        value, standard = getattr(model, f"head_{name}"), getattr(written.config, name)
        if value not in (None, standard):
            cure = "transformers' head has no other than the encoder's. Save a `.keras` file."
            raise ValueError(checks.message(owner, f"model.head_{name}", f"be {standard!r} or None", value, cure))


def _values(written: WrittenModel) -> dict[str, Any]:
    """The head's keys of `config.json`."""
    model = written.model
    match written.name:
        case "classifier":
            names = model.class_names or [str(index) for index in range(model.num_classes)]
            # A regression has one output without a name, which is transformers' default.
            labels = _labels(["LABEL_0"] if model.problem_type == "regression" else names)
            return {"problem_type": model.problem_type, "classifier_dropout": model.dropout, **labels}
        case "cross_encoder":
            # sentence-transformers, CrossEncoder: converts the logit to the score that `predict` and `rank` return.
            sigmoid = {"activation_fn": "torch.nn.modules.activation.Sigmoid"}
            labels = _labels(["LABEL_0"])
            return {"classifier_dropout": model.dropout, **labels, "sentence_transformers": sigmoid}
        case "token_classifier":
            return {"classifier_dropout": model.dropout, **_labels(model.tag_names)}
        case "multiple_choice":
            return {"classifier_dropout": model.dropout}
    return {}


def _labels(names: Sequence[str]) -> dict[str, Any]:
    """The class names in `config.json`, by index and by name."""
    return {
        "id2label": {str(index): name for index, name in enumerate(names)},
        "label2id": {name: index for index, name in enumerate(names)},
    }
