"""Reads the files of multi-vector encoders (ColBERT): sentence-transformers' and PyLate's."""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint import TrainedHead
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files import json_file
from keras_bert_layers.checkpoints.sentence_transformers.modules import (
    ENCODER_FILE,
    MODEL_FILE,
    MODULES_FILE,
    SIDES,
    TOKEN_VECTORS,
    check_encoder,
    module_config,
    read_activation,
    read_modules,
    read_prompts,
    side_prompts,
    unused_prompts,
)
from keras_bert_layers.checkpoints.weights.table import TOKEN_PROJECTION_ROWS

_KIND, _PYLATE = "MultiVectorEncoder", "ColBERT"
_CHAIN = ["Transformer", "Dense", "MultiVectorMask", "Normalize"]
# sentence-transformers takes a directory with one of these for one of PyLate, whose queries are expanded by default.
_ATTEND = ("attend_to_expansion_tokens", "attend_to_mask_tokens")
_LENGTHS = ("query_length", "document_length")
_OF_PYLATE = (*_LENGTHS, "do_query_expansion", *_ATTEND, "query_prefix", "document_prefix", "skiplist_words")
_DEFAULT_LENGTH = 32


def is_multi_vector_encoder(root: Path) -> bool:
    """Whether a directory with a `modules.json` is a multi-vector encoder."""
    stated = json_file.optional_json(root / MODEL_FILE).get("model_type")
    return stated in (_KIND, _PYLATE) or any(kind == _CHAIN[2] for kind, _ in read_modules(root))


def multi_vector_heads(root: Path, heads: Iterable[TrainedHead], *, hidden_dim: int) -> tuple[TrainedHead, ...]:
    """The multi-vector encoder of a directory, and the heads of its weights, which the files do not state.

    Args:
        root: the checkpoint's directory; it has a `modules.json`.
        heads: the heads that the weights hold.
        hidden_dim: the encoder's width.

    Raises:
        CheckpointError: `BertMultiVectorEncoder` does not have this chain of modules or these settings.
    """
    path, modules = root / MODEL_FILE, read_modules(root)
    kinds, folders = [kind for kind, _ in modules], [root / folder for _, folder in modules]
    values = json_file.optional_json(path)
    if kinds != (_CHAIN[:2] if values.get("model_type") == _PYLATE else _CHAIN):
        rule = f"the modules must be {', '.join(_CHAIN)}; of PyLate, the first two"
        raise CheckpointError(f"{root / MODULES_FILE}: {rule}. Received: {kinds}. Load the encoder alone.")
    check_encoder(folders[0] / ENCODER_FILE)
    if values.get("similarity_fn_name") == "meanmaxsim":
        raise CheckpointError(f"{path}: `similarity_fn_name` must be 'maxsim'. Received: 'meanmaxsim'.")
    options: dict[str, Any] = {"projection_dim": _width(folders[1] / "config.json", hidden_dim)}
    words = values.get("skiplist_words")
    words = list(string.punctuation) if words is None else words
    if len(kinds) > 2:
        words = _skiplist(folders[2] / "config.json")
        _check_names(folders[3] / "config.json", module_config(folders[3] / "config.json", "normalization"))
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise CheckpointError(f"{path}: `skiplist_words` must be strings. Received: {json_file.shown(words)}.")
    options |= {"skiplist": words, **_query_options(folders[0] / ENCODER_FILE, path, values)}
    prompts = {**read_prompts(root).get("prompts", {})}
    for key, side in _prefixes(path):
        prompts[side] = key + prompts.get(side, "").removeprefix(key)
    options |= side_prompts({"prompts": prompts})
    doubts = unused_prompts(root, prompts)
    own = TrainedHead("multi_vector_encoder", options, TOKEN_PROJECTION_ROWS, doubts=doubts)
    return own, *(dataclasses.replace(head, stated=False) for head in heads)


def with_prefix_tokens(root: Path, options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a tokenizer that finds PyLate's prefixes in texts, if the vocabulary has them."""
    added = {token if isinstance(token, str) else token["content"]: token for token in options.get("added_tokens", ())}
    literal = []
    for prefix, _ in _prefixes(root / MODEL_FILE):
        for content in (prefix, *prefix.split(maxsplit=1)[:1]):
            if content in added or (content in options["vocabulary"] and not content.isalnum()):
                literal.append(content)
                break
    if "merges" not in options:  # in their order, which their ids follow
        added |= {content: {"content": content, "normalized": False, "special": True} for content in literal}
        return {**options, "added_tokens": list(added.values())} if literal else options
    special = list(dict.fromkeys([*options["special_tokens"], *literal]))
    plain = [token for token in added if token not in literal]  # byte-level BPE has lists of strings
    return {**options, "special_tokens": special, "added_tokens": plain}


def _prefixes(path: Path) -> list[tuple[str, str]]:
    """PyLate's prefixes of queries and documents, and their sides; none of other directories."""
    values = json_file.optional_json(path)
    found = [(values[f"{side}_prefix"], side) for side in SIDES if values.get(f"{side}_prefix")]
    for prefix, side in found:
        if not isinstance(prefix, str):
            raise CheckpointError(f"{path}: `{side}_prefix` must be a string. Received: {json_file.shown(prefix)}.")
    return found


def _width(path: Path, hidden_dim: int) -> int:
    """The width of a dense layer on vectors of tokens."""
    values = module_config(path, "dense layer")
    _check_names(path, values)
    needed = {"in_features": hidden_dim, "bias": False, "use_residual": False}
    for key, value in {"in_features": None, "bias": True, "use_residual": False, **values}.items():
        json_file.check_one_of(path, key, value, (needed.get(key, value),))
    activation = read_activation(path, "activation_function", values.get("activation_function", "torch.nn.Tanh"))
    json_file.check_one_of(path, "activation_function", activation, ("linear",))
    return json_file.check_integer(path, "out_features", values.get("out_features"), least=1)


def _check_names(path: Path, values: Mapping[str, Any]) -> None:
    """Refuses a module that reads or writes something else than the vectors of tokens."""
    for key in ("module_input_name", "module_output_name"):
        json_file.check_one_of(path, key, values.get(key) or TOKEN_VECTORS, (TOKEN_VECTORS,))


def _skiplist(path: Path) -> Any:
    values = module_config(path, "mask")
    json_file.check_one_of(path, "skiplist_tasks", values.get("skiplist_tasks") or ["document"], (["document"],))
    json_file.check_one_of(path, "keep_only_token_ids", values.get("keep_only_token_ids"), (None,))
    return values.get("skiplist_words") or []


def _query_options(settings: Path, path: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """The lengths, and how queries are expanded, of the encoder's settings, or else of the model's `values`."""
    own = json_file.optional_json(settings)
    options = {name: own.get(name, values.get(name)) for name in _LENGTHS}
    given = own if "query_expansion" in own else values
    expansion = given.get("query_expansion")
    if "query_expansion" not in given and any(key in values for key in _OF_PYLATE):
        attend = next((values[key] for key in _ATTEND if key in values), False)
        if values.get("do_query_expansion") is not False:
            length = values.get("query_length") or _DEFAULT_LENGTH
            expansion = {"strategy": "fixed", "attend": bool(attend), "length": length}
    place = settings if given is own else path
    if expansion is not None:
        expansion = json_file.check_object(place, "query_expansion", expansion)
        json_file.check_one_of(place, "query_expansion.strategy", expansion.get("strategy"), ("fixed",))
        json_file.check_one_of(place, "query_expansion.token", expansion.get("token"), (None, "[MASK]"))
        attend = json_file.check_boolean(place, "query_expansion.attend", expansion.get("attend", False))
        options |= {"query_length": expansion.get("length"), "query_expansion": "attended" if attend else "unattended"}
    for name in _LENGTHS:
        if options[name] is not None or (name == "query_length" and expansion is not None):
            json_file.check_integer(place, name, options[name], least=3)
    return options
