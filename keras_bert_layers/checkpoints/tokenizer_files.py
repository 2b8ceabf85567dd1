"""What the tokenizer files of a HuggingFace directory say, checked against what `BertTokenizer` does."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.json_file import MAX_JSON_BYTES, read_json_object
from keras_bert_layers.checkpoints.sentence_transformers import text_settings
from keras_bert_layers.checkpoints.tokenizer_json import TokenizerJson
from keras_bert_layers.preprocessing.vocabulary import SPECIAL_TOKENS, load_vocabulary

# transformers, models/bert/tokenization_bert.py: the arguments' names and defaults, by ours.
_OPTIONS = {"lowercase": "do_lower_case", "strip_accents": "strip_accents", "split_chinese": "tokenize_chinese_chars"}
_DEFAULTS = {"lowercase": True, "strip_accents": None, "split_chinese": True}

_BERT_CLASSES = ("BertTokenizer", "BertTokenizerFast", None)
# These take everything from tokenizer.json, and nothing that tokenizer_config.json says of the text.
_GENERIC_CLASSES = ("PreTrainedTokenizerFast", "TokenizersBackend")

_ROLES = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL_TOKENS, strict=True))
_MORE_TOKENS = ("bos_token", "eos_token", "additional_special_tokens", "extra_special_tokens", "added_tokens_decoder")
_PLACING = ("lstrip", "rstrip", "single_word", "normalized")

# Settings of tokenizer_config.json under which a BertTokenizer would be another tokenizer, and what they must be.
_FIXED: dict[str, tuple[Any, ...]] = {
    "do_basic_tokenize": (True, None),
    "never_split": (None, []),
    "padding_side": ("right", None),
    "truncation_side": ("right", None),
}


@dataclasses.dataclass(frozen=True)
class TokenizerSettings:
    """The arguments of a `BertTokenizer`, as a checkpoint's files give them.

    Args:
        vocabulary: the tokens; a token's place is its id.
        lowercase: whether text is lower-cased.
        strip_accents: whether accents are taken off; None for the same as `lowercase`.
        split_chinese: whether every Chinese character is a word.
    """

    vocabulary: tuple[str, ...]
    lowercase: bool
    strip_accents: bool | None
    split_chinese: bool


def tokenizer_settings(folder: Path, config: Mapping[str, Any]) -> TokenizerSettings:
    """What the tokenizer files of a directory say.

    The tokens come from `tokenizer.json`, or from `vocab.txt` where that is absent, as in transformers. Each option
    comes from the first of these that states it: `tokenizer_config.json`, `tokenizer.json`, the default of
    transformers. A `tokenizer_config.json` that names a generic class of transformers has no say in the options.

    Args:
        folder: the directory with the tokenizer files.
        config: `tokenizer_config.json` as it stands, empty where absent.

    Returns:
        The settings.

    Raises:
        CheckpointError: no vocabulary; a damaged file; a setting or special token that `BertTokenizer` does not have.
    """
    _check_config(folder / "tokenizer_config.json", config)
    _check_special_tokens(folder)
    json_path = folder / "tokenizer.json"
    tokenizer_json = TokenizerJson(json_path) if json_path.is_file() else None
    vocabulary = _vocabulary(folder, tokenizer_json)
    options: dict[str, Any] = dict(_DEFAULTS if tokenizer_json is None else tokenizer_json.options)
    if config.get("tokenizer_class") not in _GENERIC_CLASSES:
        options.update({ours: config[theirs] for ours, theirs in _OPTIONS.items() if theirs in config})
    if tokenizer_json is not None and _effective(options) != _effective(tokenizer_json.options):
        warnings.warn(
            f"{folder / 'tokenizer_config.json'} says {_effective(options)}, {json_path} says "
            f"{_effective(tokenizer_json.options)}. Following the first, as transformers does.",
            stacklevel=5,
        )
    return _lowered(TokenizerSettings(vocabulary, **options), folder)


def stated_max_length(folder: Path, config: Mapping[str, Any], *, positions: int) -> int:
    """The longest text that a checkpoint was made for, in tokens, [CLS] and [SEP] included.

    Args:
        folder: the directory of `config.json`.
        config: `tokenizer_config.json` as it stands, empty where absent.
        positions: how many positions the encoder has.

    Returns:
        `max_seq_length` of sentence-transformers, or else `model_max_length` of the tokenizer, where they are stated
        and the encoder has as many positions; else `positions`.
    """
    length, _ = text_settings(folder)
    stated = config.get("model_max_length") if length is None else length
    if isinstance(stated, bool) or not isinstance(stated, int | float) or not stated >= 3:
        return positions
    return int(min(stated, positions))


def _effective(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with the default of `strip_accents` filled in."""
    strip_accents = options["lowercase"] if options["strip_accents"] is None else options["strip_accents"]
    return {**options, "strip_accents": strip_accents}


def _lowered(settings: TokenizerSettings, folder: Path) -> TokenizerSettings:
    """sentence-transformers' own `do_lower_case`: it lower-cases ahead of a tokenizer that does not, accents kept."""
    _, lowercase = text_settings(folder)
    if not lowercase or settings.lowercase:
        return settings
    return dataclasses.replace(settings, lowercase=True, strip_accents=bool(settings.strip_accents))


def _vocabulary(folder: Path, tokenizer_json: TokenizerJson | None) -> tuple[str, ...]:
    path = folder / "vocab.txt"
    if tokenizer_json is not None:
        return tokenizer_json.vocabulary
    if not path.is_file():
        found = ", ".join(sorted(entry.name for entry in folder.iterdir()))
        raise CheckpointError(f"{folder}: must hold a vocab.txt or a tokenizer.json. Found: {found or 'nothing'}.")
    if path.stat().st_size > MAX_JSON_BYTES:
        raise CheckpointError(f"{path}: must take at most {MAX_JSON_BYTES} bytes. Received: {path.stat().st_size}.")
    try:
        return tuple(load_vocabulary(path))
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from error


def _check_config(path: Path, config: Mapping[str, Any]) -> None:
    kind = config.get("tokenizer_class")
    classes = (*_BERT_CLASSES, *_GENERIC_CLASSES)
    if kind not in classes:
        raise CheckpointError(f"{path}: `tokenizer_class` must be one of {list(classes)}. Received: {kind!r}.")
    for key, allowed in _FIXED.items():
        if key in config and config[key] not in allowed:
            raise CheckpointError(f"{path}: `{key}` must be one of {list(allowed)}. Received: {config[key]!r}.")
    for ours, theirs in _OPTIONS.items():
        allowed_types = (bool, type(None)) if ours == "strip_accents" else (bool,)
        if theirs in config and not isinstance(config[theirs], allowed_types):
            raise CheckpointError(f"{path}: `{theirs}` must be true or false. Received: {config[theirs]!r}.")


def _check_special_tokens(folder: Path) -> None:
    """Every special token that any of the files names is one of the five, in its own role."""
    for name in ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"):
        path = folder / name
        values = read_json_object(path) if path.is_file() else {}
        if name == "added_tokens.json":
            values = {"additional_special_tokens": list(values)}
        for role, standard in _ROLES.items():
            for token in _tokens(values.get(role)):
                _check_token(path, role, token, (standard,))
        for role in _MORE_TOKENS:
            for token in _tokens(values.get(role)):
                _check_token(path, role, token, SPECIAL_TOKENS)


def _tokens(value: Any) -> Iterable[Any]:
    """The tokens of an entry, which is one token, a list of them, a dictionary of them, or nothing."""
    if value is None:
        return []
    if isinstance(value, dict) and "content" not in value:
        return list(value.values())
    return value if isinstance(value, list) else [value]


def _check_token(path: Path, role: str, token: Any, allowed: tuple[str, ...]) -> None:
    """A token is a string, or a dictionary that also says how text round it is treated."""
    content = token.get("content") if isinstance(token, dict) else token
    if content not in allowed:
        raise CheckpointError(
            f"{path}: `{role}` must be {' or '.join(allowed)}. Received: {content!r}. BertTokenizer has no others."
        )
    placing = [key for key in _PLACING if isinstance(token, dict) and token.get(key)]
    if placing:
        raise CheckpointError(f"{path}: the token {content} must not have {' or '.join(placing)} set.")
