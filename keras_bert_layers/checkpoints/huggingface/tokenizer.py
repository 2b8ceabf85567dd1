"""`tokenizer_options`: reads the tokenizer files of a HuggingFace directory."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, missing
from keras_bert_layers.checkpoints.files.json_file import check_boolean, check_one_of, optional_json
from keras_bert_layers.checkpoints.files.vocabulary import read_vocabulary
from keras_bert_layers.checkpoints.huggingface.tokenizer_json import TokenizerJson
from keras_bert_layers.checkpoints.sentence_transformers.modules import text_settings
from keras_bert_layers.preprocessing.vocabulary import MASK, PAD, SEPARATOR, SPECIAL_TOKENS, START, UNKNOWN

# transformers, models/bert/tokenization_bert.py: the arguments' names and defaults, by ours.
_OPTIONS = {"lowercase": "do_lower_case", "strip_accents": "strip_accents", "split_chinese": "tokenize_chinese_chars"}
_DEFAULTS = {"lowercase": True, "strip_accents": None, "split_chinese": True}

_BERT_CLASSES = ("BertTokenizer", "BertTokenizerFast", None)
# These read everything from tokenizer.json, and no option of tokenizer_config.json.
_GENERIC_CLASSES = ("PreTrainedTokenizerFast", "TokenizersBackend")

ROLES = {"cls_token": START, "mask_token": MASK, "pad_token": PAD, "sep_token": SEPARATOR, "unk_token": UNKNOWN}
_MORE_TOKENS = ("bos_token", "eos_token", "additional_special_tokens", "extra_special_tokens", "added_tokens_decoder")
_TOKEN_FLAGS = ("lstrip", "rstrip", "single_word", "normalized")

# Settings of tokenizer_config.json with their only values: with others it would be another tokenizer.
_FIXED: dict[str, tuple[Any, ...]] = {
    "do_basic_tokenize": (True, None),
    "never_split": (None, []),
    "padding_side": ("right", None),
    "truncation_side": ("right", None),
}


def tokenizer_options(folder: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a `BertTokenizer` that the tokenizer files of a directory describe.

    The tokens come from `tokenizer.json`, or from `vocab.txt` if there is none, as in transformers. Each option comes
    from the first of these that states it: `tokenizer_config.json`, `tokenizer.json`, the default of transformers. If
    `tokenizer_config.json` names a generic class of transformers, its options are not used. The `do_lower_case` of
    sentence-transformers lower-cases text before a tokenizer that does not, and keeps accents.

    Args:
        folder: the directory with the tokenizer files.
        config: the content of `tokenizer_config.json`; empty if there is none.

    Returns:
        `vocabulary`, `lowercase`, `strip_accents` and `split_chinese`.

    Raises:
        CheckpointError: there is no vocabulary; a file is damaged; `BertTokenizer` does not have a setting or special
            token.
    """
    _check_config(folder / "tokenizer_config.json", config)
    _check_special_tokens(folder)
    path = folder / "tokenizer.json"
    if path.is_file():
        tokenizer_json = TokenizerJson(path)
        vocabulary, stated = tokenizer_json.vocabulary, tokenizer_json.options
    elif (folder / "vocab.txt").is_file():
        vocabulary, stated = tuple(read_vocabulary(folder / "vocab.txt")), None
    else:
        raise missing(folder, "a vocab.txt or a tokenizer.json", owner="load_tokenizer")
    options: dict[str, Any] = dict(stated or _DEFAULTS)
    if config.get("tokenizer_class") not in _GENERIC_CLASSES:
        options |= {ours: config[theirs] for ours, theirs in _OPTIONS.items() if theirs in config}
    if stated is not None and _effective(options) != _effective(stated):
        warnings.warn(
            f"{folder / 'tokenizer_config.json'} states {_effective(options)}, {path} states {_effective(stated)}. "
            "Following the first, as transformers does.",
            stacklevel=5,
        )
    _, lowercase = text_settings(folder)
    if lowercase and not options["lowercase"]:
        options |= {"lowercase": True, "strip_accents": bool(options["strip_accents"])}
    return {"vocabulary": vocabulary, **options}


def stated_max_length(folder: Path, config: Mapping[str, Any], *, positions: int) -> int:
    """The maximum length of a checkpoint in tokens, [CLS] and [SEP] included.

    Args:
        folder: the directory of `config.json`.
        config: the content of `tokenizer_config.json`; empty if there is none.
        positions: the number of positions of the encoder.

    Returns:
        `max_seq_length` of sentence-transformers, else `model_max_length` of the tokenizer, else `positions`; at most
        `positions`.
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


def _check_config(path: Path, config: Mapping[str, Any]) -> None:
    check_one_of(path, "tokenizer_class", config.get("tokenizer_class"), (*_BERT_CLASSES, *_GENERIC_CLASSES))
    for key, allowed in _FIXED.items():
        check_one_of(path, key, config.get(key, allowed[0]), allowed)
    for ours, theirs in _OPTIONS.items():
        if theirs in config and not (ours == "strip_accents" and config[theirs] is None):
            check_boolean(path, theirs, config[theirs])


def _check_special_tokens(folder: Path) -> None:
    """Checks that every special token in the files is one of the five, in its own role."""
    allowed = {role: (token,) for role, token in ROLES.items()} | dict.fromkeys(_MORE_TOKENS, SPECIAL_TOKENS)
    for name in ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"):
        path = folder / name
        values = optional_json(path)
        if name == "added_tokens.json":
            values = {"additional_special_tokens": list(values)}
        for role, tokens in allowed.items():
            for token in _tokens(values.get(role)):
                _check_token(path, role, token, tokens)


def _tokens(value: Any) -> Iterable[Any]:
    """The tokens of an entry, which is a token, a list or a dictionary of tokens, or None."""
    if value is None:
        return []
    if isinstance(value, dict) and "content" not in value:
        return list(value.values())
    return value if isinstance(value, list) else [value]


def _check_token(path: Path, role: str, token: Any, allowed: tuple[str, ...]) -> None:
    """Checks a token, which is a string, or a dictionary with flags for the text around it."""
    content = token.get("content") if isinstance(token, dict) else token
    check_one_of(path, role, content, allowed, "BertTokenizer has no others.")
    flags = [key for key in _TOKEN_FLAGS if isinstance(token, dict) and token.get(key)]
    if flags:
        raise CheckpointError(f"{path}: the token {content} must not have {' or '.join(flags)} set.")
