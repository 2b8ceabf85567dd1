"""KerasHub's words for a tokenizer, and ours."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.preprocessing.vocabulary import SPECIAL_TOKENS

# keras_hub, tokenizers/word_piece_tokenizer.py: arguments of its tokenizer, with their defaults there.
_SWITCHES = {"lowercase": False, "strip_accents": False, "special_tokens_in_strings": False, "split_on_cjk": True}
# Under another value it would be another tokenizer.
_FIXED: dict[str, tuple[Any, ...]] = {
    "vocabulary": (None,),
    "sequence_length": (None,),
    "split": (True,),
    "suffix_indicator": ("##",),
    "oov_token": ("[UNK]",),
}
_IGNORED = ("name", "trainable", "dtype", "config_file")
CLASS = "BertTokenizer"


def tokenizer_options(path: Path, values: Mapping[str, Any], vocabulary: Sequence[str]) -> dict[str, Any]:
    """The arguments of a `BertTokenizer` that `tokenizer.json` of a KerasHub preset describes.

    KerasHub's tokenizer is neither Google's nor transformers'; a model was trained with one of these. What the switches
    mean, follows from that:

    - KerasHub's presets lower-case without taking accents off, which is only its argument's default. Where no token of
      the vocabulary has an accent, the model never saw one: then accents are taken off, as in training.
    - Special tokens in a text are text to Google's tokenizer and tokens to transformers'. So
      `special_tokens_in_strings` says which of the two to follow.

    Args:
        path: the file, for errors.
        values: what it holds: Keras's frame round the arguments.
        vocabulary: the tokens.

    Returns:
        `lowercase`, `strip_accents`, `split_chinese` and `reference`.

    Raises:
        CheckpointError: another class of tokenizer, or a setting that `BertTokenizer` does not have.
    """
    arguments = values.get("config")
    if values.get("class_name") != CLASS or not isinstance(arguments, dict):
        raise CheckpointError(f"{path}: `class_name` must be {CLASS!r}. Received: {values.get('class_name')!r}.")
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


def tokenizer_object(options: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a `tokenizer.json`, in KerasHub's words.

    Args:
        options: arguments of a `BertTokenizer`.

    Returns:
        Keras's frame round the arguments of `keras_hub.models.BertTokenizer`. It has no word for `split_chinese`.
    """
    strip_accents = options["lowercase"] if options["strip_accents"] is None else options["strip_accents"]
    return {
        "module": "keras_hub.src.models.bert.bert_tokenizer",
        "class_name": CLASS,
        "config": {
            "name": "bert_tokenizer",
            "trainable": True,
            "config_file": "tokenizer.json",
            "vocabulary": None,
            "sequence_length": None,
            "lowercase": options["lowercase"],
            "strip_accents": strip_accents,
            "split": True,
            "suffix_indicator": "##",
            "oov_token": "[UNK]",
            "special_tokens": None,
            "special_tokens_in_strings": options["reference"] == "huggingface",
        },
        "registered_name": f"keras_hub>{CLASS}",
    }


def _check_arguments(path: Path, arguments: Mapping[str, Any]) -> None:
    for key, value in arguments.items():
        if key in _SWITCHES:
            if not isinstance(value, bool):
                raise CheckpointError(f"{path}: `{key}` must be true or false. Received: {value!r}.")
        elif key == "special_tokens":
            if value is not None and not (isinstance(value, list) and all(token in SPECIAL_TOKENS for token in value)):
                raise CheckpointError(f"{path}: `{key}` must be among {list(SPECIAL_TOKENS)}. Received: {value!r}.")
        elif key in _FIXED:
            if value not in _FIXED[key]:
                raise CheckpointError(
                    f"{path}: `{key}` must be {_FIXED[key][0]!r}; BertTokenizer has no other. Received: {value!r}."
                )
        elif key not in _IGNORED:
            raise CheckpointError(f"{path}: `{key}` must be a known key. Received: {key}={value!r}.")


def _has_accent(token: str) -> bool:
    """Whether taking accents off would change the token."""
    return not token.isascii() and any(
        unicodedata.category(character) == "Mn" for character in unicodedata.normalize("NFD", token)
    )
