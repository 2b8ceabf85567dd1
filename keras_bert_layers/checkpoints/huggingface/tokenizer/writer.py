"""Writes the tokenizer files of transformers and of the library `tokenizers`."""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.files.wire_format import field, float_field
from keras_bert_layers.checkpoints.files.json_file import write_json
from keras_bert_layers.checkpoints.files.vocabulary import vocabulary_bytes
from keras_bert_layers.checkpoints.huggingface.tokenizer.byte_level import ROBERTA
from keras_bert_layers.checkpoints.huggingface.tokenizer.sentence_piece import XLM_ROBERTA
from keras_bert_layers.checkpoints.huggingface.tokenizer.special_tokens import role_names
from keras_bert_layers.checkpoints.huggingface.tokenizer.stated_tokens import ALBERT, CAMEMBERT, DEBERTA, GENERIC, ROLES
from keras_bert_layers.preprocessing import AddedToken, BertTokenizer, BytePairTokenizer, SentencePieceTokenizer
from keras_bert_layers.preprocessing.tokenizer import Tokenizer

_FIRST = {
    XLM_ROBERTA[0]: ["<s>", "<pad>", "</s>", "<unk>"],
    CAMEMBERT[0]: ["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>"],
}
# The settings of ALBERT's class, and the steps of `normalizer` that they are about.
_ALBERT_STEPS = {"do_lower_case": "lowercase", "keep_accents": "nfkd"}
# google/sentencepiece, `sentencepiece_model.proto`: types of pieces.
_NORMAL, _UNKNOWN, _CONTROL = 1, 2, 3
_UNIGRAM = 1


def write_tokenizer(
    directory: Path,
    tokenizer: Tokenizer,
    *,
    max_length: int,
    kind: str,
    truncation_side: str,
) -> None:
    """Writes the files of a tokenizer of any kind.

    Args:
        directory: the directory.
        tokenizer: the tokenizer.
        max_length: the maximum length in tokens, special tokens included.
        kind: the class of transformers for a `BertTokenizer`; the others' follows from their tokens.
        truncation_side: where texts that are too long lose tokens.
    """
    limits: dict[str, Any] = {"max_length": max_length, "truncation_side": truncation_side}
    if isinstance(tokenizer, BytePairTokenizer):
        write_byte_pair_tokenizer(directory, tokenizer, **limits)
    elif isinstance(tokenizer, SentencePieceTokenizer):
        write_sentence_piece_tokenizer(directory, tokenizer, **limits)
    elif isinstance(tokenizer, BertTokenizer):
        write_word_piece_tokenizer(directory, tokenizer, kind=kind, **limits)


def write_word_piece_tokenizer(
    directory: Path,
    tokenizer: BertTokenizer,
    *,
    max_length: int,
    kind: str = "BertTokenizer",
    truncation_side: str = "right",
) -> None:
    """Writes `tokenizer.json`, `tokenizer_config.json`, `special_tokens_map.json` and `vocab.txt`.

    The first is the complete tokenizer for the library `tokenizers`; the second gives transformers its class and the
    maximum length; the third is for releases of transformers before 5, the last for programs that read no other file. A
    tokenizer with `reference="huggingface"` gives the same ids there.

    Args:
        directory: the directory.
        tokenizer: the tokenizer.
        max_length: the maximum length in tokens, special tokens included.
        kind: the class of transformers.
        truncation_side: where texts that are too long lose tokens.

    References:
        https://github.com/huggingface/tokenizers, `serialization` of the Rust crate.
    """
    options = tokenizer.get_config()
    vocabulary: list[str] = options["vocabulary"]
    known = tokenizer.all_tokens()
    roles = {role: token if token in known else None for role, token in role_names(tokenizer.special_tokens).items()}
    (directory / "tokenizer.json").write_bytes(f"{_tokenizer_json(tokenizer, roles)}\n".encode())
    settings = {
        "tokenizer_class": kind,
        "do_lower_case": options["lowercase"],
        "strip_accents": options["strip_accents"],
        "tokenize_chinese_chars": options["split_chinese"],
        "model_max_length": max_length,
    }
    if truncation_side != "right":
        settings["truncation_side"] = truncation_side
    if tokenizer.added_tokens:
        tokens = _added_tokens(tokenizer, roles)
        settings["added_tokens_decoder"] = {
            str(tokenizer.token_to_id(token.content)): token.get_config() for token in tokens
        }
    _write_settings(directory, settings, roles)
    if not any(end in token for token in vocabulary for end in "\r\n"):  # such a token does not fit in a line
        (directory / "vocab.txt").write_bytes(vocabulary_bytes(vocabulary))


def _added_tokens(tokenizer: BertTokenizer, roles: Mapping[str, str | None]) -> list[AddedToken]:
    """The special tokens and the added ones, in order of their ids."""
    tokens = {token: AddedToken(token, special=True) for token in roles.values() if token}
    tokens |= {token.content: token for token in tokenizer.added_tokens}
    return sorted(tokens.values(), key=lambda token: tokenizer.token_to_id(token.content))


def _tokenizer_json(tokenizer: BertTokenizer, roles: Mapping[str, str | None]) -> str:
    """The content of `tokenizer.json`."""
    import tokenizers
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    options = tokenizer.get_config()
    start, separator = roles["cls_token"], roles["sep_token"]
    ids = {token: token_id for token_id, token in enumerate(options["vocabulary"])}
    library = Tokenizer(models.WordPiece(ids, unk_token=roles["unk_token"], max_input_chars_per_word=100))
    library.normalizer = normalizers.BertNormalizer(
        handle_chinese_chars=options["split_chinese"],
        strip_accents=options["strip_accents"],
        lowercase=options["lowercase"],
    )
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if tokenizer.num_pair_separators == 2:
        settings: Any = (separator, tokenizer.separator_id), (start, tokenizer.start_id), True, False
        library.post_processor = processors.RobertaProcessing(*settings)
    else:
        library.post_processor = processors.TemplateProcessing(
            single=[start, "$A", separator],
            pair=[start, "$A", separator, "$B:1", f"{separator}:1"],
            special_tokens=[(start, tokenizer.start_id), (separator, tokenizer.separator_id)],
        )
    library.decoder = decoders.WordPiece()
    for token in _added_tokens(tokenizer, roles):
        add = library.add_special_tokens if token.special else library.add_tokens
        add([tokenizers.AddedToken(**token.get_config())])
    return library.to_str(pretty=True)


def write_sentence_piece_tokenizer(
    directory: Path, tokenizer: SentencePieceTokenizer, *, max_length: int, truncation_side: str = "right"
) -> None:
    """Writes `tokenizer.json`, `tokenizer_config.json`, `special_tokens_map.json` and `sentencepiece.bpe.model`.

    The last is for programs that read no other file; it is written where the ids are those of XLM-RoBERTa or of
    CamemBERT, which follow from the order of its pieces. ALBERT's is `spiece.model`.

    Args:
        directory: the directory.
        tokenizer: the tokenizer.
        max_length: the maximum length in tokens, special tokens included.
        truncation_side: where texts that are too long lose tokens.
    """
    options = tokenizer.get_config()
    kind = _kind(options)
    (directory / "tokenizer.json").write_bytes(f"{_unigram_json(options)}\n".encode())
    roles = _roles(options)
    settings = {
        "tokenizer_class": kind,
        "model_max_length": max_length,
        "truncation_side": truncation_side,
        "add_prefix_space": True,
        # Without the key, CamembertTokenizer adds tokens of its own.
        "additional_special_tokens": [t for t in options["special_tokens"] if t not in roles.values()],
    }
    if kind in ALBERT:
        settings |= {key: step in options["normalizer"] for key, step in _ALBERT_STEPS.items()}
        settings["keep_accents"] = not settings["keep_accents"]
        # Without the key, transformers 5 gives no segments, and ALBERT was trained with them.
        settings["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    _write_settings(directory, settings, roles)
    if kind in ALBERT and None not in options["scores"]:
        (directory / "spiece.model").write_bytes(_model(options))
    if kind in _FIRST and options["vocabulary"][-1] == "<mask>" and None not in options["scores"]:
        (directory / "sentencepiece.bpe.model").write_bytes(_model(options, len(_FIRST[kind])))


def _roles(options: dict[str, Any]) -> dict[str, str | None]:
    """The special tokens by their roles in transformers."""
    roles = {theirs: options[ours] for ours, (theirs, _) in ROLES.items()}
    return {**roles, "bos_token": roles["cls_token"], "eos_token": roles["sep_token"]}


def _write_settings(directory: Path, settings: Mapping[str, Any], roles: Mapping[str, str | None]) -> None:
    """Writes `tokenizer_config.json` and `special_tokens_map.json`."""
    write_json(directory / "tokenizer_config.json", {**settings, **roles})
    write_json(directory / "special_tokens_map.json", {role: token for role, token in roles.items() if token})


def _kind(options: dict[str, Any]) -> str:
    """The class of transformers whose ids these are."""
    vocabulary: list[str] = options["vocabulary"]
    if options["normalizer"] == "nfc":
        return DEBERTA[0]
    if options["normalizer"] is not None or options["num_pair_separators"] == 1:
        stated = {name: options[name] for name in ("normalizer", "num_pair_separators", "unknown_token")}
        if None in stated.values() or options["num_pair_separators"] != 1 or vocabulary[1] != options["unknown_token"]:
            rule = "be ALBERT's, with one separator between pairs and the id 1 for unknown, or be as XLM-RoBERTa's"
            raise ValueError(checks.message("save_huggingface", "tokenizer", rule, stated, "Save a `.keras` file."))
        return ALBERT[0]
    return next((kind for kind, first in _FIRST.items() if vocabulary[: len(first)] == first), GENERIC[0])


def _unigram_json(options: dict[str, Any]) -> str:
    """The content of `tokenizer.json`."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    vocabulary: Sequence[str] = options["vocabulary"]
    pieces = [(piece, score) for piece, score in zip(vocabulary, options["scores"], strict=True) if score is not None]
    unknown_id = vocabulary.index(options["unknown_token"])
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=unknown_id, byte_fallback=False))
    steps: list[Any] = []
    if options["normalizer"] == "nfc":
        spaces = normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " ")
        steps = [spaces, normalizers.NFC(), normalizers.Strip(left=False)]
    elif options["normalizer"] is not None:
        steps += [normalizers.Replace(quotes, '"') for quotes in ("``", "''")]
        steps += [normalizers.NFKD(), normalizers.StripAccents()] if "nfkd" in options["normalizer"] else []
        steps += [normalizers.Lowercase()] if "lowercase" in options["normalizer"] else []
    if options["character_map"]:
        steps += [normalizers.Precompiled(base64.b64decode(options["character_map"]))]
    if steps:
        tokenizer.normalizer = normalizers.Sequence(steps) if options["normalizer"] else steps[0]
    marker = pre_tokenizers.Metaspace(prepend_scheme="always")
    parts = [] if options["normalizer"] == "nfc" else [pre_tokenizers.WhitespaceSplit()]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*parts, marker]) if parts else marker
    start, end = options["start_token"], options["separator_token"]
    second = ["$B:1", f"{end}:1"] if options["num_pair_separators"] == 1 else [end, "$B", end]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=[start, "$A", end],
        pair=[start, "$A", end, *second],
        special_tokens=[(token, vocabulary.index(token)) for token in (start, end)],
    )
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    return _with_special_tokens(tokenizer, options)


def _model(options: dict[str, Any], num_first: int | None = None) -> bytes:
    """A `ModelProto` with the pieces in the order of the model's own ids, which begin with `<unk>`, `<s>`, `</s>`.

    Args:
        options: those of the tokenizer.
        num_first: how many tokens these three are in the vocabulary's place; None for ids as they are, as in ALBERT.
    """
    pieces = [("<unk>", 0.0, _UNKNOWN), ("<s>", 0.0, _CONTROL), ("</s>", 0.0, _CONTROL)]
    rest = [*zip(options["vocabulary"], options["scores"], strict=True)]
    if num_first is None:
        special = dict.fromkeys(options["special_tokens"], _CONTROL) | {options["unknown_token"]: _UNKNOWN}
        pieces = [(piece, score, special.get(piece, _NORMAL)) for piece, score in rest]
    else:
        pieces += [(piece, score, _NORMAL) for piece, score in rest[num_first:-1]]
    encoded = (field(1, field(1, piece.encode()) + float_field(2, score) + field(3, of)) for piece, score, of in pieces)
    character_map = base64.b64decode(options["character_map"])
    name = b"nmt_nfkc" if character_map else b"identity"
    normalizer = field(1, name) + (field(2, character_map) if character_map else b"")
    return b"".join([*encoded, field(2, field(3, _UNIGRAM)), field(3, normalizer)])


def write_byte_pair_tokenizer(
    directory: Path, tokenizer: BytePairTokenizer, *, max_length: int, truncation_side: str = "right"
) -> None:
    """Writes `tokenizer.json`, `tokenizer_config.json`, `special_tokens_map.json`, `vocab.json` and `merges.txt`.

    The last two are for programs that read no other file.

    Args:
        directory: the directory.
        tokenizer: the tokenizer.
        max_length: the maximum length in tokens, special tokens included.
        truncation_side: where texts that are too long lose tokens.
    """
    options = tokenizer.get_config()
    (directory / "tokenizer.json").write_bytes(f"{_byte_pair_json(options)}\n".encode())
    is_of_roberta = options["num_pair_separators"] == 2 and options["normalizer"] is None
    # Of a token that takes whitespace, transformers needs to know it here.
    decoder = {
        str(tokenizer.token_to_id(token)): {
            "content": token,
            "lstrip": token in options["stripping_tokens"],
            "normalized": token in options["added_tokens"],
            "rstrip": False,
            "single_word": False,
            "special": token in options["special_tokens"],
        }
        for token in (*options["special_tokens"], *options["added_tokens"])
    }
    settings = {
        "tokenizer_class": ROBERTA[0] if is_of_roberta else GENERIC[0],
        "model_max_length": max_length,
        "truncation_side": truncation_side,
        "add_prefix_space": options["add_prefix_space"],
        "trim_offsets": options["trim_offsets"],
        "added_tokens_decoder": decoder,
    }
    _write_settings(directory, settings, _roles(options))
    write_json(directory / "vocab.json", {token: index for index, token in enumerate(options["vocabulary"])})
    lines = ["#version: 0.2", *(" ".join(pair) for pair in options["merges"])]
    (directory / "merges.txt").write_bytes("".join(f"{line}\n" for line in lines).encode())


def _byte_pair_json(options: dict[str, Any]) -> str:
    """The content of `tokenizer.json`."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    ids = {token: index for index, token in enumerate(options["vocabulary"])}
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=[tuple(pair) for pair in options["merges"]]))
    prefix, start, end = (options[name] for name in ("add_prefix_space", "start_token", "separator_token"))
    if options["normalizer"]:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    tokenizer.decoder = decoders.ByteLevel()
    if options["num_pair_separators"] == 2:
        ends = (end, ids[end]), (start, ids[start])
        tokenizer.post_processor = processors.RobertaProcessing(*ends, options["trim_offsets"], prefix)
    else:
        special = [(token, ids[token]) for token in (start, end)]
        pair = [start, "$A", end, "$B", end]
        tokenizer.post_processor = processors.TemplateProcessing(single=pair[:3], pair=pair, special_tokens=special)
    return _with_special_tokens(tokenizer, options)


def _with_special_tokens(tokenizer: Any, options: dict[str, Any]) -> str:
    """The content of `tokenizer.json` for a tokenizer of the library that lacks its special tokens."""
    import tokenizers

    for kind, normalized in (("special_tokens", False), ("added_tokens", True)):
        add = tokenizer.add_tokens if normalized else tokenizer.add_special_tokens
        found = sorted(options.get(kind, ()), key=options["vocabulary"].index)
        flags = [{"lstrip": token in options["stripping_tokens"], "normalized": normalized} for token in found]
        add([tokenizers.AddedToken(token, **each) for token, each in zip(found, flags, strict=True)])
    return tokenizer.to_str(pretty=True)
