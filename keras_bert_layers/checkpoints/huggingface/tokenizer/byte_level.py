"""`byte_level_options`: reads the tokenizer files of RoBERTa and ModernBERT, a byte-level BPE."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, damaged, missing
from keras_bert_layers.checkpoints.files import json_file
from keras_bert_layers.checkpoints.files.json_file import check_boolean, check_one_of, optional_json, read_file
from keras_bert_layers.checkpoints.huggingface.tokenizer.json_file import (
    check_sides,
    check_template_ids,
    only_part,
    pads_left,
    processor_ends,
    template_names,
)
from keras_bert_layers.checkpoints.huggingface.tokenizer.stated_tokens import (
    GENERIC,
    ROLES,
    added_tokens,
    check_ids,
    content_of,
    listed_tokens,
    named_class,
    special_tokens,
    stated_entries,
)
from keras_bert_layers.checkpoints.sentence_transformers.modules import text_settings

# transformers 5: BART's is the same class; Longformer's and LED's became RoBERTa's. Before, all of them were equal.
ROBERTA = tuple(f"{name}Tokenizer{fast}" for name in ("Roberta", "Bart", "Longformer", "LED") for fast in ("", "Fast"))
# It splits and names as the files say in full, but for what `_check_gpt2` checks.
_GPT2 = ("GPT2Tokenizer", "GPT2TokenizerFast")
VOCABULARY, MERGES = "vocab.json", "merges.txt"
# The largest byte-level BPE, o200k of OpenAI's tiktoken, has 200,000 tokens; those of BERT's relatives some 50,000.
MAX_TOKENS, MAX_BYTES = 300_000, 12 * 1024 * 1024

# The keys of the BPE model: the values under which it is byte-level BPE as GPT-2 has it.
_MODEL: dict[str, tuple[Any, ...]] = {
    "type": ("BPE",),
    "dropout": (None, 0.0),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
    "byte_fallback": (False, None),
    "ignore_merges": (False, None),
}


def byte_level_options(folder: Path, config: Mapping[str, Any], default_class: str | None = None) -> dict[str, Any]:
    """The arguments of a `BytePairTokenizer` that the tokenizer files of a directory describe.

    Args:
        folder: the directory with the tokenizer files.
        config: the content of `tokenizer_config.json`; empty if there is none.
        default_class: the class of tokenizer of the model type, where no file names one.

    Returns:
        `vocabulary`, `merges`, how spaces are treated, the special tokens and their roles.

    Raises:
        CheckpointError: a file is damaged, or describes a tokenizer that `BytePairTokenizer` is not.
    """
    path, json_path = folder / "tokenizer_config.json", folder / "tokenizer.json"
    kinds = (*ROBERTA, *GENERIC, *_GPT2)
    named_by, kind = named_class(folder, config, default_class if default_class in kinds else ROBERTA[0])
    check_one_of(named_by, "tokenizer_class", kind, kinds)
    if text_settings(folder)[1]:
        raise CheckpointError(f"{folder}: `do_lower_case` of sentence-transformers must be false for byte-level BPE.")
    values = optional_json(json_path)
    check_sides(path, config, pads_left=pads_left(values))
    vocabulary, merges = _read_model(folder, values, kind)
    _check_number(folder, "merges", merges)
    stated = stated_entries(folder, config)
    if kind in _GPT2:
        _check_gpt2(path, stated, values)
        kind = GENERIC[0]
    added = added_tokens(folder, config, listed_tokens(json_path, values.get("added_tokens") or []))
    tokens = special_tokens(folder, config, added, kind, stated)
    known = set(vocabulary)
    vocabulary += [token for token in tokens if token not in known]
    check_ids(folder, added, vocabulary)
    roles = {ours: content_of(stated.get(theirs, default)) for ours, (theirs, default) in ROLES.items()}
    spaces: dict[str, Any]
    if kind in GENERIC:
        spaces = _stored_settings(json_path, values, vocabulary)
        roles = {**roles, **spaces.pop("roles")}
        if roles["mask_token"] not in vocabulary:
            roles["mask_token"] = None
    else:
        names = {"add_prefix_space": False, "trim_offsets": True}
        spaces = {name: check_boolean(path, name, config.get(name, default)) for name, default in names.items()}
    # The library looks for normalized tokens in what is left of a text, which makes a difference after a normalizer.
    is_added = {token: bool(spaces.get("normalizer") and flags.get("normalized")) for token, flags in tokens.items()}
    return {
        "vocabulary": vocabulary,
        "merges": merges,
        **spaces,
        "special_tokens": [token for token in tokens if not is_added[token]],
        "added_tokens": [token for token in tokens if is_added[token]],
        "stripping_tokens": [token for token, flags in tokens.items() if flags.get("lstrip")],
        **roles,
    }


def _check_gpt2(path: Path, stated: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Checks that `GPT2Tokenizer` of transformers, which has defaults, reads the files as a generic class does."""
    for role in ("unk_token", "bos_token", "eos_token"):
        if content_of(stated.get(role)) is None:
            raise CheckpointError(f"{path}: `{role}` must be stated, or GPT2Tokenizer takes <|endoftext|> for it.")
    normalizer = only_part(values.get("normalizer"), "normalizers")
    check_one_of(path.with_name("tokenizer.json"), "normalizer", normalizer, (None,), "GPT2Tokenizer has none.")
    splitter: Any = only_part(values.get("pre_tokenizer"), "pretokenizers")
    prefix = isinstance(splitter, dict) and bool(splitter.get("add_prefix_space", True))
    check_one_of(path, "add_prefix_space", stated.get("add_prefix_space", False), (prefix,), "So is tokenizer.json's.")


def _read_model(folder: Path, values: Mapping[str, Any], kind: object) -> tuple[list[str], Any]:
    """The tokens in order of their ids, and the merges: those of `tokenizer.json`, if it has `values`."""
    path = folder / ("tokenizer.json" if values else VOCABULARY)
    if not values and kind in GENERIC:
        raise missing(folder, "tokenizer.json", f"{kind} reads no other file.", owner="load_tokenizer")
    if not values:
        read_file(path, MAX_BYTES)
        return _in_order(path, json_file.read_json_object(path)), _read_merges(folder / MERGES)
    model = json_file.check_object(path, "model", values.get("model"))
    for key, allowed in _MODEL.items():
        check_one_of(path, f"model.{key}", model.get(key, allowed[0]), allowed)
    return _in_order(path, model.get("vocab")), model.get("merges")


def _stored_settings(path: Path, values: Mapping[str, Any], vocabulary: list[str]) -> dict[str, Any]:
    """How texts are changed and spaces treated, and the tokens at the ends of a text, by `tokenizer.json`."""
    normalizer = only_part(values.get("normalizer"), "normalizers")
    check_one_of(path, "normalizer", normalizer, (None, {"type": "NFC"}), "BytePairTokenizer has no other.")
    splitter: Any = only_part(values.get("pre_tokenizer"), "pretokenizers")
    splitter = json_file.check_object(path, "pre_tokenizer", splitter)
    check_one_of(path, "pre_tokenizer.type", splitter.get("type"), ("ByteLevel",))
    check_one_of(path, "pre_tokenizer.use_regex", splitter.get("use_regex", True), (True,))
    processor, level = _processors(path, values.get("post_processor"))
    ids = {token: index for index, token in enumerate(vocabulary)}
    kind = processor.get("type")
    cure = "It adds the tokens at the ends of a text, which an encoder needs."
    check_one_of(path, "post_processor.type", kind, ("RobertaProcessing", "BertProcessing", "TemplateProcessing"), cure)
    prefix = bool(splitter.get("add_prefix_space", True))
    start: Any
    end: Any
    level = processor if kind == "RobertaProcessing" else level
    trims = level is not None and bool(level.get("trim_offsets", True))
    if trims:
        check_one_of(path, "post_processor.add_prefix_space", level.get("add_prefix_space", True), (prefix,))
    if kind != "TemplateProcessing":
        start, end = processor_ends(path, processor, ids)
        num_separators = 2 if kind == "RobertaProcessing" else 1
    else:
        names, of_pair = template_names(processor.get("single")), template_names(processor.get("pair"))
        names = names if isinstance(names, list) and len(names) == 3 else [None] * 3
        start, _, end = names
        check_one_of(path, "post_processor.single", names, ([start, "A", end],), "It must be <s> A </s>.")
        one, two = ([start, "A", *[end] * number, "B", end] for number in (1, 2))
        check_one_of(path, "post_processor.pair", of_pair, (one, two), "It must be <s> A </s> B </s>.")
        check_template_ids(path, processor, {token: ids.get(token) for token in (start, end)})
        num_separators = 1 if of_pair == one else 2
    roles = {"start_token": start, "separator_token": end}
    settings = {"add_prefix_space": prefix, "trim_offsets": trims, "num_pair_separators": num_separators}
    return {**settings, "normalizer": None if normalizer is None else "nfc", "roles": roles}


def _processors(path: Path, value: Any) -> tuple[Any, Any]:
    """What adds the tokens at the ends of a text, and the `ByteLevel` that trims offsets beside it, or None."""
    value = only_part(value, "processors")
    members = value.get("processors") if isinstance(value, dict) else None
    members = members if isinstance(members, list) else [value]
    parts = [json_file.check_object(path, "post_processor", part) for part in members]
    levels = [part for part in parts if part.get("type") == "ByteLevel"]
    if len(parts) == 2 and len(levels) == 1:
        return next(part for part in parts if part is not levels[0]), levels[0]
    return parts[0] if len(parts) == 1 else value, None


def _in_order(path: Path, ids: Any) -> list[str]:
    """The tokens of a vocabulary in order of their ids."""
    ids = json_file.check_object(path, "vocab", ids)
    _check_number(path, "tokens", ids)
    with damaged(f"{path}: the vocabulary must give each token its id", (TypeError, ValueError)):
        tokens = sorted(ids, key=ids.__getitem__)
        if [ids[token] for token in tokens] != list(range(len(tokens))):
            raise ValueError("ids are missing")
    return tokens


def _check_number(path: Path, what: str, parts: Any) -> None:
    if isinstance(parts, list | dict) and len(parts) > MAX_TOKENS:
        raise CheckpointError(f"{path}: must hold at most {MAX_TOKENS:,} {what}. Received: {len(parts):,}.")


def _read_merges(path: Path) -> list[str]:
    """The merges of a `merges.txt`, without its first line if that is a comment."""
    content = read_file(path, MAX_BYTES)
    with damaged(f"{path}: must be UTF-8", (UnicodeDecodeError,)):
        lines = [line.rstrip("\r") for line in content.decode().split("\n")]
    merges = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or (number == 1 and line.startswith("#version")):
            continue
        if len(line.split(" ")) != 2 or line.strip() != line:  # not shown: a link may lead to a file of another kind
            raise CheckpointError(f"{path}: line {number} must hold two tokens and one space between them.")
        merges.append(line)
    return merges
