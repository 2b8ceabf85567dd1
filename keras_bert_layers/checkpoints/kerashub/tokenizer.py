"""KerasHub's words for a tokenizer, and ours."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files.json_file import check_boolean, check_known, check_object, check_one_of
from keras_bert_layers.preprocessing.vocabulary import SPECIAL_TOKENS

# keras_hub, tokenizers/word_piece_tokenizer.py: arguments of its tokenizer, with their defaults there.
_SWITCHES = {"lowercase": False, "strip_accents": False, "special_tokens_in_strings": False, "split_on_cjk": True}
# With another value it would be another tokenizer.
FIXED = {"vocabulary": None, "sequence_length": None, "split": True, "suffix_indicator": "##", "oov_token": "[UNK]"}
_IGNORED = ("name", "trainable", "dtype", "config_file")


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
