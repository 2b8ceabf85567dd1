"""The JSON of a KerasHub preset: objects of KerasHub's BERT as Keras serializes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from keras_bert_layers.checkpoints.kerashub.tokenizer import FIXED

if TYPE_CHECKING:
    from keras_bert_layers.checkpoints.written_model import WrittenModel

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


def preprocessor_object(written: WrittenModel) -> dict[str, Any]:
    """The content of a `preprocessor.json`: the tokenizer and the maximum length.

    KerasHub pads every batch to the maximum length, and shortens the longer text of a pair first. An encoder gets the
    preprocessor of a text classifier.

    Args:
        written: the model, with a `BertPreprocessor`.
    """
    arguments = {
        "tokenizer": tokenizer_object(written.preprocessor.tokenizer.get_config()),
        "config_file": "preprocessor.json",
        "sequence_length": written.preprocessor.max_length,
        "truncate": "round_robin",
    }
    if written.name == "masked_lm":
        masking = {name: written.model.get_config()[name] for name in _MASKING}
        arguments |= {name: value for name, value in masking.items() if value is not None}
    return keras_object(f"{written.counterpart or 'BertTextClassifier'}Preprocessor", arguments)


def task_object(written: WrittenModel, parts: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a `task.json`.

    Args:
        written: the task. Its outputs are logits in KerasHub too.
        parts: the contents of `config.json` as `backbone`, and of `preprocessor.json` or None as `preprocessor`.
    """
    model, arguments = written.model, dict(parts)
    if written.name in ("classifier", "cross_encoder"):
        num_classes = model.output_shape[-1]
        arguments |= {"num_classes": num_classes, "activation": "linear", "dropout": model.dropout}
    elif written.name == "sentence_encoder":
        arguments |= {"pooling_mode": model.pooling, "normalize": model.normalize}
    return keras_object(str(written.counterpart), arguments)
