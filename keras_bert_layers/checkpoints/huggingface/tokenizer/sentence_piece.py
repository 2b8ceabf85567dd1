"""`sentence_piece_options`: reads the tokenizer files of XLM-RoBERTa, CamemBERT, ALBERT, DeBERTa and their like."""

import base64
import struct
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert_layers._internal.files.wire_format import read_fields
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, damaged, missing
from keras_bert_layers.checkpoints.files import json_file
from keras_bert_layers.checkpoints.files.json_file import check_one_of, optional_json, read_file
from keras_bert_layers.checkpoints.huggingface.tokenizer.json_file import (
    check_sides,
    check_template_ids,
    only_part,
    pads_left,
    processor_ends,
    template,
    template_names,
)
from keras_bert_layers.checkpoints.huggingface.tokenizer.stated_tokens import (
    ALBERT,
    CAMEMBERT,
    DEBERTA,
    DEFAULTS,
    GENERIC,
    ROLES,
    UNUSED,
    added_tokens,
    check_ids,
    content_of,
    defaults_of,
    listed_tokens,
    named_class,
    special_tokens,
    stated_entries,
)
from keras_bert_layers.checkpoints.sentence_transformers.modules import text_settings
from keras_bert_layers.preprocessing.tokens.markers import MARKER, MAX_PIECES

MODEL_FILES = ("sentencepiece.bpe.model", "spiece.model", "tokenizer.model", "sentencepiece.model", "spm.model")
XLM_ROBERTA = ("XLMRobertaTokenizer", "XLMRobertaTokenizerFast")
# Of another kind of tokenizer; files of XLM-RoBERTa's kind name them by mistake.
_OF_ROBERTA = ("RobertaTokenizer", "RobertaTokenizerFast")
_CURE = 'If the model was trained with these pieces, write "tokenizer_class": "XLMRobertaTokenizer" there.'

_PRE_TOKENIZERS = ["WhitespaceSplit", "Metaspace"]
# google/sentencepiece, `sentencepiece_model.proto`: the numbers of the fields and the types of pieces.
_PIECES, _NORMALIZER_SPEC, _CHARACTER_MAP = 1, 3, 2
_PIECE, _SCORE, _TYPE = 1, 2, 3
_CONTROL, _USER_DEFINED = 3, 4
# transformers, models/albert/tokenization_albert.py: `unk_id`.
_ALBERT_UNKNOWN = 1
# The steps of ALBERT's normalization in `tokenizer.json`, after which a character map may follow.
_QUOTES = [({"String": "``"}, '"'), ({"String": "''"}, '"')]
_FOLDINGS: dict[str, list[Any]] = {
    "quotes": _QUOTES,
    "quotes_nfkd": [*_QUOTES, "NFKD", "StripAccents"],
    "quotes_lowercase": [*_QUOTES, "Lowercase"],
    "quotes_nfkd_lowercase": [*_QUOTES, "NFKD", "StripAccents", "Lowercase"],
}
# What a generic class may do after these; spaces that follow each other make no difference, as words are split at them.
_SPACES = ({"Regex": " {2,}"}, " ")
# Settings of DeBERTa's tokenizer with their only values.
_OF_DEBERTA = {"do_lower_case": False, "split_by_punct": False, "add_prefix_space": True}
# `<unk>`, `<s>`, `</s>`, and one that texts can hold.
_LEAST_PIECES = 4


def sentence_piece_options(folder: Path, config: Mapping[str, Any], default_class: str | None) -> dict[str, Any]:
    """The arguments of a `SentencePieceTokenizer` that the tokenizer files of a directory describe.

    Args:
        folder: the directory with the tokenizer files.
        config: the content of `tokenizer_config.json`; empty if there is none.
        default_class: the class of tokenizer of the model type, where no file names one.

    Returns:
        `vocabulary`, `scores`, `character_map`, the special tokens and their roles; `normalizer` and
        `num_pair_separators` of ALBERT's and DeBERTa's.

    Raises:
        CheckpointError: a file is damaged, or describes a tokenizer that `SentencePieceTokenizer` is not.
    """
    path = folder / "tokenizer_config.json"
    kind = _kind(folder, config, default_class)
    if text_settings(folder)[1]:
        raise CheckpointError(f"{folder}: `do_lower_case` of sentence-transformers must be false for SentencePiece.")
    stated = stated_entries(folder, config)
    values = optional_json(folder / "tokenizer.json")
    check_sides(path, config, pads_left=pads_left(values))
    if values:
        pieces, character_map, added = _read_json(folder / "tokenizer.json", values, strict=kind in GENERIC)
    elif kind in GENERIC:
        raise missing(folder, "tokenizer.json", f"{kind} reads no other file.", owner="load_tokenizer")
    else:
        for role, name in ({} if kind in (*ALBERT, *DEBERTA) else DEFAULTS).items():
            if role not in ("cls_token", "sep_token", "mask_token"):  # the others name the first pieces
                check_one_of(path, role, content_of(stated.get(role, name)), (name,), "Save a tokenizer.json with it.")
        mask = content_of(stated.get("mask_token")) or "<mask>"
        pieces, character_map, added = _read_model(folder / str(model_file(folder)), kind, mask)
    added = added_tokens(folder, config, added)
    tokens = special_tokens(folder, config, added, kind, stated)
    tokens = {token: flags for token, flags in tokens.items() if token not in UNUSED or token in dict(pieces)}
    ids = {piece: index for index, (piece, _) in enumerate(pieces)}
    pieces += [(token, None) for token in tokens if token not in ids]
    vocabulary = [piece for piece, _ in pieces]
    check_ids(folder, added, vocabulary)
    defaults = {**DEFAULTS, **defaults_of(kind)}
    roles = {ours: content_of(stated.get(theirs, defaults[theirs])) for ours, (theirs, _) in ROLES.items()}
    if kind in GENERIC:
        roles |= _stored_roles(folder / "tokenizer.json", values, vocabulary)
        if roles["mask_token"] not in vocabulary:
            roles["mask_token"] = None
    elif kind in ALBERT:
        roles |= _albert_options(path, config, values, vocabulary, roles)
    elif kind in DEBERTA:
        roles |= _deberta_options(path, config, roles["unknown_token"], pieces)
    else:
        roles |= _class_roles(path, config, kind, stated, vocabulary)
    return {
        "vocabulary": vocabulary,
        "scores": [score for _, score in pieces],
        "character_map": character_map,
        "special_tokens": list(tokens),
        "stripping_tokens": [token for token, flags in tokens.items() if flags.get("lstrip")],
        **roles,
    }


def class_by_model(kind: object, default_class: str | None) -> object:
    """The class of the model type where the files name RoBERTa's, which reads no SentencePiece; else `kind`.

    Examples:
        >>> class_by_model("RobertaTokenizer", "XLMRobertaTokenizer"), class_by_model("RobertaTokenizer", None)
        ('XLMRobertaTokenizer', 'RobertaTokenizer')
    """
    is_wrong = kind in _OF_ROBERTA and default_class in (*XLM_ROBERTA, *CAMEMBERT)
    return default_class if is_wrong else kind


def _kind(folder: Path, config: Mapping[str, Any], default_class: str | None) -> object:
    """The class of tokenizer; warns where it is not the one that the files name."""
    kinds = (*XLM_ROBERTA, *CAMEMBERT, *ALBERT, *DEBERTA, *GENERIC)
    named_by, named = named_class(folder, config, default_class if default_class in kinds else XLM_ROBERTA[0])
    kind = class_by_model(named, default_class)
    if kind != named:
        warnings.warn(
            f"{named_by}: `tokenizer_class` is {named}, which does not read what the files hold. They are read as "
            f"{kind}'s, as the model type states; transformers 5 reads single letters. To cure it there too, write "
            f'"tokenizer_class": "{kind}".',
            stacklevel=7,
        )
    check_one_of(named_by, "tokenizer_class", kind, kinds, _CURE)
    return kind


def _folding(normalizers: Sequence[Mapping[str, Any]]) -> str | None:
    """The name of ALBERT's normalization if the normalizers of `tokenizer.json` are its steps; None if not."""
    kinds: list[Any] = [part.get("type") for part in normalizers]
    replaced = [(part.get("pattern"), part.get("content")) for part in normalizers]
    steps = [pair if kind == "Replace" else kind for kind, pair in zip(kinds, replaced, strict=True)]
    for last in (_SPACES, "Precompiled"):
        steps = steps[:-1] if steps[-1:] == [last] else steps
    return next((name for name, expected in _FOLDINGS.items() if steps == expected), None)


def _stored_roles(path: Path, values: Mapping[str, Any], vocabulary: Sequence[str]) -> dict[str, Any]:
    """The start, the separator and the unknown token by the template and the model of `tokenizer.json`.

    With ALBERT's normalization, the template must be ALBERT's too.
    """
    folding = _folding(list(_parts(values.get("normalizer"), "normalizers")))
    unknown = json_file.check_integer(path, "model.unk_id", values["model"].get("unk_id"), least=0)
    if unknown >= len(vocabulary):
        raise CheckpointError(f"{path}: `model.unk_id` must be the id of a piece. Received: {unknown}.")
    ids = {piece: index for index, piece in enumerate(vocabulary)}
    processor: Any = only_part(values.get("post_processor"), "processors")
    start: Any
    end: Any
    kind = processor.get("type") if isinstance(processor, dict) else processor
    if kind == "RobertaProcessing" and folding is None:
        start, end = processor_ends(path, processor, ids)
    else:
        cure = "Without a template this class of transformers adds no special tokens. Save one with the tokenizer."
        check_one_of(path, "post_processor.type", kind, ("TemplateProcessing",), cure)
        single, pair = template(processor.get("single")), template(processor.get("pair"))
        names = template_names(processor.get("single"))
        names = names if isinstance(names, list) and len(names) == 3 else [None] * 3
        start, _, end = names
        expected = [(start, 0), ("A", 0), (end, 0)]
        check_one_of(path, "post_processor.single", single, (expected,), "It must be <s> A </s>.")
        second = [(end, 0), ("B", 0), (end, 0)] if folding is None else [("B", 1), (end, 1)]
        rule = "It must be <s> A </s> </s> B </s>." if folding is None else "It must be <s> A </s> B:1 </s>:1."
        check_one_of(path, "post_processor.pair", pair, ([*expected, *second],), rule)
        check_template_ids(path, processor, {token: ids.get(token) for token in (start, end)})
    more = {} if folding is None else {"normalizer": folding, "num_pair_separators": 1}
    return {"start_token": start, "separator_token": end, "unknown_token": vocabulary[unknown], **more}


def _class_roles(
    path: Path, config: Mapping[str, Any], kind: object, stated: Mapping[str, Any], vocabulary: Sequence[str]
) -> dict[str, Any]:
    """The same tokens of a class with a template of its own, whose ends are `bos_token` and `eos_token`."""
    check_one_of(path, "add_prefix_space", config.get("add_prefix_space", True), (True,), "Each word has its marker.")
    unknown = content_of(stated.get("unk_token", "<unk>"))
    first = vocabulary.index(unknown) if unknown in vocabulary else 0
    place = 3 if kind in XLM_ROBERTA else first
    if place >= len(vocabulary):
        raise CheckpointError(f"{path.parent}: the vocabulary must hold more than {place} pieces.")
    start, end = (content_of(stated.get(*pair)) for pair in (("bos_token", "<s>"), ("eos_token", "</s>")))
    return {"start_token": start, "separator_token": end, "unknown_token": vocabulary[place]}


def _albert_options(
    path: Path,
    config: Mapping[str, Any],
    values: Mapping[str, Any],
    vocabulary: Sequence[str],
    roles: Mapping[str, Any],
) -> dict[str, Any]:
    """What ALBERT's class states itself, whose template alone may be that of `tokenizer.json`."""
    check_one_of(path, "add_prefix_space", config.get("add_prefix_space", True), (True,), "Each word has its marker.")
    steps = {"keep_accents": (False, "_nfkd"), "do_lower_case": (True, "_lowercase")}
    for key, (standard, _) in steps.items():
        check_one_of(path, key, config.get(key, standard), (True, False))
    found = [step for key, (standard, step) in steps.items() if config.get(key, standard) is standard]
    if len(vocabulary) <= _ALBERT_UNKNOWN:
        raise CheckpointError(f"{path.parent}: the vocabulary must hold more than {_ALBERT_UNKNOWN} pieces.")
    processor: Any = only_part(values.get("post_processor"), "processors")
    if processor is not None:
        check_one_of(path, "post_processor.type", processor.get("type"), ("TemplateProcessing",))
        start, end = roles["start_token"], roles["separator_token"]
        expected = [(start, 0), ("A", 0), (end, 0), ("B", 1), (end, 1)]
        check_one_of(path, "post_processor.single", template(processor.get("single")), (expected[:3],))
        check_one_of(path, "post_processor.pair", template(processor.get("pair")), (expected,))
        check_template_ids(path, processor, {token: vocabulary.index(token) for token in (start, end)})
    return {
        "unknown_token": vocabulary[_ALBERT_UNKNOWN],
        "normalizer": "".join(["quotes", *found]),
        "num_pair_separators": 1,
    }


def _deberta_options(path: Path, config: Mapping[str, Any], unknown: str, pieces: Sequence[Any]) -> dict[str, Any]:
    """What DeBERTa's class states itself: the rest of `tokenizer.json`, such as the character map, it does not read."""
    for key, value in _OF_DEBERTA.items():
        check_one_of(path, key, config.get(key, value), (value,), "It is not implemented.")
    if (unknown, 0.0) not in pieces:
        raise CheckpointError(f"{path}: `unk_token` must be a piece with the score 0. Received: {unknown!r}.")
    return {"character_map": "", "normalizer": "nfc", "num_pair_separators": 1}


def model_file(folder: Path) -> str | None:
    """The name of a directory's file of a SentencePiece model; None if there is none."""
    return next((name for name in MODEL_FILES if (folder / name).is_file()), None)


def _read_json(
    path: Path, values: Mapping[str, Any], *, strict: bool
) -> tuple[list[tuple[str, Any]], str, dict[str, dict[str, Any]]]:
    """Pieces with scores, the character map in base64, and the added tokens with their flags."""
    model = json_file.check_object(path, "model", values.get("model"))
    check_one_of(path, "model.type", model.get("type"), ("Unigram",))
    check_one_of(path, "model.byte_fallback", bool(model.get("byte_fallback")), (False,))
    vocabulary = model.get("vocab")
    with damaged(f"{path}: `model.vocab` must hold pieces with scores", (TypeError, ValueError)):
        pieces = [(piece, float(score)) for piece, score in vocabulary or ()]
    if not pieces or not all(isinstance(piece, str) for piece, _ in pieces):
        raise CheckpointError(f"{path}: `model.vocab` must hold pieces with scores.")
    normalizers = list(_parts(values.get("normalizer"), "normalizers"))
    maps = [part.get("precompiled_charsmap") or "" for part in normalizers if part.get("type") == "Precompiled"]
    if strict:
        kinds = [part.get("type") for part in normalizers]
        cure = "SentencePieceTokenizer has no other."
        known = ([], ["Precompiled"]) if _folding(normalizers) is None else (kinds,)
        check_one_of(path, "normalizer", kinds, known, cure)
        parts = list(_parts(values.get("pre_tokenizer"), "pretokenizers"))
        check_one_of(path, "pre_tokenizer", [part.get("type") for part in parts], (_PRE_TOKENIZERS,), cure)
        scheme = parts[1].get("prepend_scheme", "always" if parts[1].get("add_prefix_space", True) else "never")
        check_one_of(path, "pre_tokenizer.prepend_scheme", scheme, ("always",), cure)
        check_one_of(path, "pre_tokenizer.split", parts[1].get("split", True), (True,), cure)
        check_one_of(path, "pre_tokenizer.replacement", parts[1].get("replacement", MARKER), (MARKER,), cure)
    added = listed_tokens(path, values.get("added_tokens") or [])
    return pieces, maps[0] if maps else "", added


def _parts(value: object, key: str) -> Iterator[dict[str, Any]]:
    """The members of a normalizer or pre-tokenizer, which may be a sequence."""
    if isinstance(value, dict) and value.get("type") == "Sequence":
        for part in value.get(key) or []:
            yield from _parts(part, key)
    elif isinstance(value, dict):
        yield value


def _read_model(path: Path, kind: object, mask: str) -> tuple[list[tuple[str, Any]], str, dict[str, Any]]:
    """Pieces with scores in the order of the family's ids, the character map, and tokens that are not pieces.

    The last piece is the mask, by its name, but ALBERT's are those of the model.
    """
    content = read_file(path)
    with damaged(f"{path}: must be a SentencePiece model", (ValueError, TypeError, KeyError, UnicodeDecodeError)):
        fields = read_fields(content, most=MAX_PIECES)
        pieces, kinds = [], []
        for number, message in fields:
            if number == _PIECES:
                piece = dict(read_fields(message))  # type: ignore[arg-type]
                score = struct.unpack("<f", struct.pack("<I", piece.get(_SCORE, 0)))[0]
                pieces.append((piece[_PIECE].decode(), score))  # type: ignore[union-attr]
                kinds.append(piece.get(_TYPE, 1))
        specs = [dict(read_fields(message)) for number, message in fields if number == _NORMALIZER_SPEC]  # type: ignore[arg-type]
        character_map = base64.b64encode(specs[0].get(_CHARACTER_MAP, b"") if specs else b"").decode()  # type: ignore[arg-type]
    if len(pieces) < _LEAST_PIECES:
        raise CheckpointError(f"{path}: must hold at least {_LEAST_PIECES} pieces. Received: {len(pieces)}.")
    found = (_CONTROL, _USER_DEFINED)
    added: dict[str, Any] = {piece: {} for (piece, _), kind_of in zip(pieces, kinds, strict=True) if kind_of in found}
    if kind in (*ALBERT, *DEBERTA):
        return pieces, "" if kind in DEBERTA else character_map, added
    zero = [(name, 0.0) for name in ("<s>", "<pad>", "</s>", "<unk>", mask)]
    if kind not in CAMEMBERT:
        return [*zero[:4], *pieces[3:], zero[4]], character_map, added
    unused = [("<s>NOTUSED", 0.0), zero[1], ("</s>NOTUSED", 0.0), zero[3], ("<unk>NOTUSED", -100.0)]
    return [*unused, *pieces[1:], zero[4]], character_map, added
