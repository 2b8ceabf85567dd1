"""The JSON of a KerasHub preset: Keras's serialized objects, and what they state about a tokenizer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files.json_file import check_boolean, check_known, check_object, check_one_of
from keras_bert_layers.preprocessing.tokens.markers import SPECIAL_TOKENS

if TYPE_CHECKING:
    from keras_bert_layers.checkpoints.written_model import WrittenModel

# keras_hub, tokenizers/word_piece_tokenizer.py: arguments of its tokenizer, with their defaults there.
_SWITCHES = {"lowercase": False, "strip_accents": False, "special_tokens_in_strings": False, "split_on_cjk": True}
# With another value it would be another tokenizer.
FIXED = {"vocabulary": None, "sequence_length": None, "split": True, "suffix_indicator": "##", "oov_token": "[UNK]"}
_IGNORED = ("name", "trainable", "dtype", "config_file")

_MASKING = ("mask_selection_rate", "mask_selection_length", "mask_token_rate", "random_token_rate")
_WORD_STARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def tokenizer_options(path: Path, values: Mapping[str, Any], vocabulary: Sequence[str]) -> dict[str, Any]:
    """The arguments of a `BertTokenizer` that `tokenizer.json` of a KerasHub preset describes.

    KerasHub's tokenizer is neither Google's nor transformers', but a model was trained with one of these. So:

    - KerasHub's presets lower-case without stripping accents, which is only its argument's default. If no token of the
      vocabulary has an accent, the model was trained without them, and accents are stripped.
    - Google's tokenizer treats special tokens in a text as text, and transformers' as tokens. So
      `special_tokens_in_strings` decides which of the two to follow.

    Args:
        path: the file, for errors.
        values: its content: the tokenizer as Keras serializes it.
        vocabulary: the tokens.

    Returns:
        `lowercase`, `strip_accents`, `split_chinese` and `reference`.

    Raises:
        CheckpointError: the class of tokenizer is another, or has a setting that `BertTokenizer` does not have.
    """
    check_one_of(path, "class_name", values.get("class_name"), ("BertTokenizer",))
    arguments = check_object(path, "config", values.get("config"))
    _check_arguments(path, arguments)
    switches = {name: arguments.get(name, default) for name, default in _SWITCHES.items()}
    lowercase, strip_accents = switches["lowercase"], switches["strip_accents"]
    if lowercase and not strip_accents:
        strip_accents = not any(_has_accent(token) for token in vocabulary)
    return {
        "lowercase": lowercase,
        "strip_accents": strip_accents,
        "split_chinese": switches["split_on_cjk"],
        "reference": "huggingface" if switches["special_tokens_in_strings"] else "google",
    }


def _check_arguments(path: Path, arguments: Mapping[str, Any]) -> None:
    check_known(path, arguments, (*_SWITCHES, *FIXED, *_IGNORED, "special_tokens"))
    for key in _SWITCHES.keys() & arguments.keys():
        check_boolean(path, key, arguments[key])
    for key in FIXED.keys() & arguments.keys():
        check_one_of(path, key, arguments[key], (FIXED[key],), "BertTokenizer has no other.")
    special = arguments.get("special_tokens") or []
    if not (isinstance(special, list) and all(token in SPECIAL_TOKENS for token in special)):
        raise CheckpointError(f"{path}: `special_tokens` must be among {list(SPECIAL_TOKENS)}. Received: {special!r}.")


def _has_accent(token: str) -> bool:
    """Whether stripping accents would change the token."""
    return not token.isascii() and any(
        unicodedata.category(character) == "Mn" for character in unicodedata.normalize("NFD", token)
    )


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
