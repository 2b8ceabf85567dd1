"""The JSON of a KerasHub preset: objects of KerasHub's BERT as Keras serializes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from keras_bert_layers.checkpoints.kerashub.tokenizer import FIXED

if TYPE_CHECKING:
    from keras_bert_layers.checkpoints.task_table import TaskRow

_MASKING = ("mask_selection_rate", "mask_selection_length", "mask_token_rate", "random_token_rate")
_WORD_STARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def keras_object(class_name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Serializes an object as Keras does: its class and its constructor's arguments.

    Args:
        class_name: a class of `keras_hub.models`, such as `"BertBackbone"`.
        arguments: the arguments except `name` and `trainable`.

    Examples:
        >>> keras_object("BertMaskedLMPreprocessor", {})["module"]
        'keras_hub.src.models.bert.bert_masked_lm_preprocessor'
    """
    name = _WORD_STARTS.sub("_", class_name).lower()
    return {
        "module": f"keras_hub.src.models.bert.{name}",
        "class_name": class_name,
        "config": {"name": name, "trainable": True, **arguments},
        "registered_name": f"keras_hub>{class_name}",
    }


def tokenizer_object(options: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a `tokenizer.json`: a `keras_hub.models.BertTokenizer`, which has no `split_chinese`.

    Args:
        options: the arguments of our `BertTokenizer`.
    """
    strip_accents = options["lowercase"] if options["strip_accents"] is None else options["strip_accents"]
    arguments = {
        "config_file": "tokenizer.json",
        **FIXED,
        "lowercase": options["lowercase"],
        "strip_accents": strip_accents,
        "special_tokens": None,
        "special_tokens_in_strings": options["reference"] == "huggingface",
    }
    return keras_object("BertTokenizer", arguments)


def preprocessor_object(task: TaskRow | None, model: Any, preprocessor: Any) -> dict[str, Any]:
    """The content of a `preprocessor.json`: the tokenizer and the maximum length.

    Args:
        task: the model's row; None for an encoder, which gets the preprocessor of a text classifier.
        model: the encoder or the task.
        preprocessor: a `BertPreprocessor`. KerasHub pads every batch to its `max_length`, and shortens the longer text
            of a pair first.
    """
    arguments = {
        "tokenizer": tokenizer_object(preprocessor.tokenizer.get_config()),
        "config_file": "preprocessor.json",
        "sequence_length": preprocessor.max_length,
        "truncate": "round_robin",
    }
    if task is not None and task.name == "masked_lm":
        masking = {name: model.get_config()[name] for name in _MASKING}
        arguments |= {name: value for name, value in masking.items() if value is not None}
    kind = "BertTextClassifier" if task is None else task.kerashub
    return keras_object(f"{kind}Preprocessor", arguments)


def task_object(
    task: TaskRow, model: Any, backbone: Mapping[str, Any], preprocessor: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The content of a `task.json`.

    Args:
        task: the model's row.
        model: the task. Its outputs are logits in KerasHub too.
        backbone: the content of `config.json`.
        preprocessor: the content of `preprocessor.json`, or None.
    """
    arguments: dict[str, Any] = {"backbone": backbone, "preprocessor": preprocessor}
    if task.name in ("classifier", "cross_encoder"):
        num_classes = model.output_shape[-1]
        arguments |= {"num_classes": num_classes, "activation": "linear", "dropout": model.dropout}
    elif task.name == "sentence_encoder":
        arguments |= {"pooling_mode": model.pooling, "normalize": model.normalize}
    return keras_object(str(task.kerashub), arguments)
