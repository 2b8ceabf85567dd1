"""The special and the added tokens of SentencePiece and byte-level BPE, as a HuggingFace directory states them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, damaged
from keras_bert_layers.checkpoints.files.json_file import check_integer, check_one_of, is_added_token, optional_json
from keras_bert_layers.checkpoints.huggingface.tokenizer.special_tokens import (
    ADDED,
    CONFIG,
    ROLE_ORDER,
    TOKENS_MAP,
    named_tokens,
)
from keras_bert_layers.checkpoints.huggingface.tokenizer.special_tokens import ROLES as BERT_ROLES

ALBERT = ("AlbertTokenizer", "AlbertTokenizerFast")
CAMEMBERT = ("CamembertTokenizer", "CamembertTokenizerFast")
DEBERTA = ("DebertaV2Tokenizer", "DebertaV2TokenizerFast")
# These take all of tokenizer.json as it is; other classes take its vocabulary and its character map.
GENERIC = ("PreTrainedTokenizerFast", "TokenizersBackend")

ROLES = {
    "start_token": ("cls_token", "<s>"),
    "separator_token": ("sep_token", "</s>"),
    "pad_token": ("pad_token", "<pad>"),
    "unknown_token": ("unk_token", "<unk>"),
    "mask_token": ("mask_token", "<mask>"),
}
# The defaults of every class but the generic ones.
DEFAULTS = {**dict(ROLES.values()), "bos_token": "<s>", "eos_token": "</s>"}
_ALBERT_DEFAULTS = {
    **{"cls_token": "[CLS]", "sep_token": "[SEP]", "bos_token": "[CLS]", "eos_token": "[SEP]"},
    **{"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "[MASK]"},
}
# transformers, models/deberta_v2/tokenization_deberta_v2.py.
_DEBERTA_DEFAULTS = {**BERT_ROLES, "bos_token": "[CLS]", "eos_token": "[SEP]"}
_MORE = ("additional_special_tokens", "extra_special_tokens")
# transformers, models/camembert/tokenization_camembert.py: the default of `additional_special_tokens`.
UNUSED = ("<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED")


def listed_tokens(path: Path, tokens: Any) -> dict[str, dict[str, Any]]:
    """Tokens in files -> their flags."""
    if isinstance(tokens, dict):
        tokens = [{**token, "id": int(index)} for index, token in tokens.items()]
    with damaged(f"{path}: the added tokens must be a list of JSON objects", (TypeError, LookupError, ValueError)):
        if not all(is_added_token(token) for token in tokens):
            raise ValueError("a token is not an object with a text")
        found = {token["content"]: token for token in tokens}
    for content, flags in found.items():
        set_flags = [flag for flag in ("rstrip", "single_word") if flags.get(flag)]
        if set_flags:
            raise CheckpointError(f"{path}: the token {content} must not have {' or '.join(set_flags)} set.")
    return found


def added_tokens(folder: Path, config: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The tokens of `added_tokens.json` and those of the tokenizer's own file, with their flags and ids.

    Args:
        folder: the directory.
        config: the content of `tokenizer_config.json`. With `added_tokens_decoder` in it, transformers does not read
            `added_tokens.json`.
        stored: the tokens of the tokenizer's own file, whose flags count.
    """
    path = folder / ADDED
    ids = {} if "added_tokens_decoder" in config else optional_json(path)
    tokens_map = optional_json(folder / TOKENS_MAP) if ids else {}
    named = {role: token for role, token in {**config, **tokens_map}.items() if role in ROLE_ORDER}
    lists = [config.get(_MORE[1]) or config.get(_MORE[0]), tokens_map.get(_MORE[1])]
    special = [content_of(token) for tokens in (named, *lists) for token in _entries(tokens)]
    tokens: dict[str, dict[str, Any]] = {}
    for content, index in ids.items():
        flags = {"special": content in special, "normalized": content not in special}
        tokens[content] = {"id": check_integer(path, content, index, least=0), **flags}
        stated = stored.get(content, {}).get("id", index)
        check_one_of(path, content, index, (stated,), "tokenizer.json states this id.")
    return tokens | {content: {**tokens.get(content, {}), **flags} for content, flags in stored.items()}


def _entries(tokens: Any) -> list[Any]:
    """The tokens of a list, or of an object that gives them names."""
    return list(tokens.values() if isinstance(tokens, dict) else tokens or ())


def _id(flags: Mapping[str, Any]) -> int:
    """The id of a token by its flags; -1 where none is stated, as for a token of the vocabulary."""
    return flags["id"] if isinstance(flags.get("id"), int) else -1


def special_tokens(
    folder: Path, config: Mapping[str, Any], added: Mapping[str, Any], kind: object, stated: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """The tokens that transformers finds in raw text, with their flags, in the order in which it numbers new ones."""
    tokens = dict(added) if kind in GENERIC or "added_tokens_decoder" not in config else {}
    decoder = config.get("added_tokens_decoder") or {}
    decoder = {index: token for index, token in decoder.items() if content_of(token) not in tokens}
    tokens |= listed_tokens(folder / CONFIG, decoder)
    tokens = {content: tokens[content] for content in sorted(tokens, key=lambda content: _id(tokens[content]))}
    is_json = (folder / "tokenizer.json").is_file()
    defaults = defaults_of(kind)
    for role in (*ROLE_ORDER, *named_tokens(stated)):
        token = stated.get(role, defaults.get(role))
        flags = token if isinstance(token, dict) else {"lstrip": role == "mask_token" and kind in CAMEMBERT}
        content = content_of(token)
        if content is not None:
            tokens.setdefault(content, flags)
    for key in _MORE:
        extra = stated.get(key) or (UNUSED if kind in CAMEMBERT and not {*stated} & {*_MORE} and is_json else [])
        for token in _entries(extra):
            flags = token if isinstance(token, dict) else {}
            tokens.setdefault(flags.get("content", token) if flags else token, flags)
    return tokens


def defaults_of(kind: object) -> Mapping[str, str]:
    """The tokens of a class of tokenizers by their roles, where no file names others."""
    if kind in GENERIC:
        return {}
    return _ALBERT_DEFAULTS if kind in ALBERT else _DEBERTA_DEFAULTS if kind in DEBERTA else DEFAULTS


def stated_entries(folder: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of `tokenizer_config.json`, and those of `special_tokens_map.json` that it does not have."""
    tokens_map = optional_json(folder / TOKENS_MAP)
    if "added_tokens_decoder" not in config:  # with it, transformers does not read the map
        for role in config.keys() & tokens_map.keys() & DEFAULTS.keys():
            content = content_of(config[role])
            check_one_of(folder / TOKENS_MAP, role, content_of(tokens_map[role]), (content,))
    return {**tokens_map, **config}


def named_class(folder: Path, config: Mapping[str, Any], default: str | None) -> tuple[Path, Any]:
    """The file that names the class of tokenizer, and the class, as `AutoTokenizer` of transformers 5 finds it.

    Args:
        folder: the directory.
        config: the content of `tokenizer_config.json`.
        default: the class of the model type, which counts where no file names one. A generic one counts in any case:
            transformers knows that files of its models name wrong classes.
    """
    if config.get("tokenizer_class") and default not in GENERIC:
        return folder / CONFIG, config["tokenizer_class"]
    stated = None if default in GENERIC else optional_json(folder / "config.json").get("tokenizer_class")
    return folder / "config.json", stated or default


def content_of(token: Any) -> Any:
    """The token of an entry, which is a string, or an object with flags."""
    return token.get("content") if isinstance(token, dict) else token


def check_ids(folder: Path, added: Mapping[str, Any], vocabulary: list[str]) -> None:
    """Checks that the added tokens have their ids of the vocabulary, or follow it."""
    for token, flags in added.items():
        index = flags.get("id")
        if index is not None and (not 0 <= index < len(vocabulary) or vocabulary[index] != token):
            raise CheckpointError(f"{folder}: the added token {token} must have its id of the vocabulary, not {index}.")
