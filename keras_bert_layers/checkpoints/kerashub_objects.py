"""The JSON of a KerasHub preset: Keras's frame round the arguments of KerasHub's own objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keras_bert_layers.checkpoints.kerashub_tokenizer import tokenizer_object
from keras_bert_layers.tasks import BertClassifier, BertCrossEncoder, BertMaskedLM, BertSentenceEncoder

# Our task -> its name here and KerasHub's task. A bare encoder goes with the preprocessor of a text classifier.
_TASKS: dict[type[Any], tuple[str, str]] = {
    BertClassifier: ("classifier", "text_classifier"),
    BertCrossEncoder: ("cross_encoder", "text_classifier"),
    BertMaskedLM: ("masked_lm", "masked_lm"),
    BertSentenceEncoder: ("sentence_encoder", "text_embedder"),
}
TASKS = tuple(_TASKS)
_CLASSES = {
    "text_classifier": "BertTextClassifier",
    "masked_lm": "BertMaskedLM",
    "text_embedder": "BertTextEmbedder",
}
_MASKING = ("mask_selection_rate", "mask_selection_length", "mask_token_rate", "random_token_rate")


def task_name(model: Any) -> str | None:
    """What `load_task` calls the model's task; None for a bare encoder."""
    return _TASKS[type(model)][0] if type(model) in _TASKS else None


def preprocessor_object(model: Any, preprocessor: Any) -> dict[str, Any]:
    """The content of a `preprocessor.json`: the tokenizer, and how long a text may be.

    Args:
        model: the encoder, or one of `TASKS`.
        preprocessor: a `BertPreprocessor`. KerasHub pads every batch to its `max_length`, and shortens the longer text
            of a pair first.
    """
    kind = _TASKS.get(type(model), ("", "text_classifier"))[1]
    arguments = {
        "tokenizer": tokenizer_object(preprocessor.tokenizer.get_config()),
        "config_file": "preprocessor.json",
        "sequence_length": preprocessor.max_length,
        "truncate": "round_robin",
    }
    if kind == "masked_lm":
        masking = {name: model.get_config()[name] for name in _MASKING}
        arguments |= {name: value for name, value in masking.items() if value is not None}
    return _framed(f"bert_{kind}_preprocessor", f"{_CLASSES[kind]}Preprocessor", arguments)


def task_object(model: Any, backbone: Mapping[str, Any], preprocessor: Mapping[str, Any] | None) -> dict[str, Any]:
    """The content of a `task.json`.

    Args:
        model: one of `TASKS`. Its outputs are logits there too.
        backbone: the content of `config.json`.
        preprocessor: the content of `preprocessor.json`, or None.
    """
    kind = _TASKS[type(model)][1]
    arguments: dict[str, Any] = {"backbone": backbone, "preprocessor": preprocessor}
    if kind == "text_classifier":
        num_classes = model.output_shape[-1]
        arguments |= {"num_classes": num_classes, "activation": "linear", "dropout": model.dropout}
    elif kind == "text_embedder":
        arguments |= {"pooling_mode": model.pooling, "normalize": model.normalize}
    return _framed(f"bert_{kind}", _CLASSES[kind], arguments)


def _framed(module: str, class_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "module": f"keras_hub.src.models.bert.{module}",
        "class_name": class_name,
        "config": {"name": module, "trainable": True, **arguments},
        "registered_name": f"keras_hub>{class_name}",
    }
