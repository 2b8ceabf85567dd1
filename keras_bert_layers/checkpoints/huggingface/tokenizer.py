"""`tokenizer_options`: reads the tokenizer files of a HuggingFace directory."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, missing, naming
from keras_bert_layers.checkpoints.files import json_file
from keras_bert_layers.checkpoints.files.json_file import check_boolean, check_one_of, optional_json, shown
from keras_bert_layers.checkpoints.files.vocabulary import CASED_SHARE, cased_share, read_vocabulary
from keras_bert_layers.checkpoints.huggingface.special_tokens import CONFIG, ROLES, SpecialTokens
from keras_bert_layers.checkpoints.sentence_transformers.modules import text_settings
from keras_bert_layers.preprocessing.tokens.markers import MASK, PAD
from keras_bert_layers.preprocessing.word_piece.vocabulary import load_vocabulary

_BERT = ("Bert", "DistilBert", "Electra", "MobileBert", "SqueezeBert", "LayoutLM", "Lxmert")
_DPR = ("DPRContextEncoder", "DPRQuestionEncoder")
_LEGACY = ("RetriBert", "Realm", "Ernie", "Nezha", "Bros")

_REASONS = {
    "BertJapanese": "It splits Japanese text into words with a dictionary (MeCab, Sudachi or Juman++) first.",
    "MPNet": "Its special tokens and its template for pairs are those of MPNet.",
    "Splinter": "It adds a [QUESTION] token of Splinter's.",
    "Funnel": "Its special tokens and segments are those of Funnel.",
    "BertGeneration": "It is a SentencePiece tokenizer.",
}


class TokenizerClass(Enum):
    """What a tokenizer takes from `tokenizer.json`.

    - `BERT`: the tokens. Everything else comes from `tokenizer_config.json`, or from BERT's defaults.
    - `STORED_BERT`: everything but the special tokens, which come from `tokenizer_config.json` or BERT's defaults.
    - `GENERIC`: everything.
    """

    BERT = "bert"
    STORED_BERT = "stored_bert"
    GENERIC = "generic"


_CLASSES: dict[str | None, TokenizerClass] = {
    None: TokenizerClass.BERT,
    # A mistake in the file, for which releases of transformers before 5 take the class of the model.
    "AutoTokenizer": TokenizerClass.BERT,
    **{f"{name}Tokenizer{fast}": TokenizerClass.BERT for name in (*_BERT, *_DPR) for fast in ("", "Fast")},
    **{f"{name}TokenizerFast": TokenizerClass.STORED_BERT for name in _DPR},
    **{f"ConvBertTokenizer{fast}": TokenizerClass.STORED_BERT for fast in ("", "Fast")},
    # Classes that transformers 5 no longer has read tokenizer.json as it is.
    **{f"{name}Tokenizer{fast}": TokenizerClass.GENERIC for name in _LEGACY for fast in ("", "Fast")},
    **dict.fromkeys(("PreTrainedTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend"), TokenizerClass.GENERIC),
}


def tokenizer_class(path: Path, name: Any, *, has_json: bool) -> TokenizerClass:
    """What the class with this name reads.

    Args:
        path: the file that names it, for errors.
        name: the class, or None if no file names one.
        has_json: whether there is a `tokenizer.json`; without it every class reads `vocab.txt` as BERT's does.

    Raises:
        CheckpointError: it is not a tokenizer of BERT's.
    """
    if not isinstance(name, str | None) or name not in _CLASSES:
        reason = next((text for kind, text in _REASONS.items() if str(name).startswith(f"{kind}Tokenizer")), "")
        names = ", ".join(known for known in _CLASSES if known and not known.endswith("Fast"))
        raise CheckpointError(
            f"{path}: `tokenizer_class` must be one of {names}, or the Fast class of one. Received: {shown(name)}. "
            f"{reason or 'If tokenizer.json describes the tokenizer in full, write PreTrainedTokenizerFast.'}"
        )
    return _CLASSES[name] if has_json else TokenizerClass.BERT


_NORMALIZER = {"lowercase": "lowercase", "strip_accents": "strip_accents", "split_chinese": "handle_chinese_chars"}

# The keys of the WordPiece model: the only value of each, which is also the library's default.
_MODEL = {"type": "WordPiece", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}

_UNKNOWN = "[UNK]"
_ENDS = ("[CLS]", "[SEP]")


class TokenizerJson:
    """A `tokenizer.json` of HuggingFace's library `tokenizers`.

    The file can describe many tokenizers. Here it must be BERT's: `BertNormalizer`, `BertPreTokenizer`, a `WordPiece`
    model with `##`, and the template `[CLS] A [SEP] B [SEP]`, perhaps with other names for these tokens. Padding in the
    file is ignored: the preprocessor has an argument for it.

    Args:
        path: the file.

    Attributes:
        options: `lowercase`, `strip_accents` and `split_chinese`.
        added_tokens: the added tokens as they are in the file.
        roles: the special tokens by their roles in transformers.

    Raises:
        CheckpointError: the file is damaged, or a part of it, which the message names, is of another tokenizer.

    References:
        https://github.com/huggingface/tokenizers, `serialization` of the Rust crate.
    """

    def __init__(self, path: Path):
        self.path = path
        self._values = json_file.read_json_object(path)
        self._check_parts()
        self._tokens = self._read_tokens()
        self.options = self._read_options()
        self.added_tokens = self._read_added_tokens()
        self._ends = self._read_ends()
        self._unknown = self._part("model").get("unk_token", _UNKNOWN)
        if not isinstance(self._unknown, str):
            self._check("model.unk_token", self._unknown, _UNKNOWN)
        start, separator = self._ends or _ENDS
        names = {"unk_token": self._unknown, "sep_token": separator, "pad_token": PAD, "cls_token": start}
        self.roles = {**names, "mask_token": MASK}

    def vocabulary(self, required: Collection[str]) -> tuple[str, ...]:
        """The tokens in order of their ids; ids without a token get an empty one, which no text can match."""
        with naming(f"{self.path}: `model.vocab`"):
            return tuple(load_vocabulary(self._tokens, required=required, warn=False))

    def check_roles(self, roles: Mapping[str, str]) -> None:
        """CheckpointError unless the model and the template have the tokens of these roles, by our names for them."""
        self._check("model.unk_token", self._unknown, roles["unknown"])
        if self._ends is not None:
            self._check("post_processor", self._ends, (roles["start"], roles["separator"]))

    def _check(self, part: str, value: Any, allowed: Any) -> None:
        json_file.check_one_of(self.path, part, value, (allowed,), "BERT's tokenizer has no other.")

    def _part(self, name: str) -> dict[str, Any]:
        return json_file.check_object(self.path, name, self._values.get(name))

    def _check_parts(self) -> None:
        self._check("normalizer.type", self._part("normalizer").get("type"), "BertNormalizer")
        self._check("normalizer.clean_text", self._part("normalizer").get("clean_text", True), True)
        self._check("pre_tokenizer.type", self._part("pre_tokenizer").get("type"), "BertPreTokenizer")
        for key, standard in _MODEL.items():
            self._check(f"model.{key}", self._part("model").get(key, standard), standard)

    def _read_options(self) -> dict[str, Any]:
        options = {ours: self._part("normalizer").get(theirs) for ours, theirs in _NORMALIZER.items()}
        for ours, theirs in _NORMALIZER.items():
            if options[ours] is not None or ours != "strip_accents":
                json_file.check_boolean(self.path, f"normalizer.{theirs}", options[ours])
        return options

    def _read_tokens(self) -> list[str]:
        """The tokens in order of their ids. Where a vocab.txt had a token twice, the id of the first is free."""
        ids = self._part("model").get("vocab")
        if not isinstance(ids, dict) or not ids:
            raise CheckpointError(f"{self.path}: `model.vocab` must give an id for each token.")
        largest = 2 * len(ids)
        for token, index in ids.items():
            if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index <= largest:
                raise CheckpointError(
                    f"{self.path}: `model.vocab` must use the ids from 0 to {len(ids) - 1}, with few gaps. "
                    f"Received: {json_file.shown(token)}: {json_file.shown(index)}."
                )
        tokens: list[str | None] = [None] * (max(ids.values()) + 1)
        for token, index in ids.items():
            if tokens[index] is not None:
                both = f"{json_file.shown(tokens[index])} and {json_file.shown(token)}"
                raise CheckpointError(f"{self.path}: `model.vocab` gives {both} the id {index}.")
            tokens[index] = token
        return [token or "" for token in tokens]

    def _read_added_tokens(self) -> list[dict[str, Any]]:
        added = self._values.get("added_tokens") or []
        if not isinstance(added, list) or not all(isinstance(token, dict) for token in added):
            raise CheckpointError(f"{self.path}: `added_tokens` must be a list of JSON objects.")
        return sorted(added, key=lambda token: token["id"] if isinstance(token.get("id"), int) else 0)

    def _read_ends(self) -> tuple[str, str] | None:
        """The tokens before and after a text, by the template; None without one, which transformers replaces."""
        value = self._values.get("post_processor")
        if value is None:
            return None
        kind = value.get("type") if isinstance(value, dict) else value
        if kind == "BertProcessing":
            pairs = [value.get("cls"), value.get("sep")]
            if not all(isinstance(pair, list) and pair and isinstance(pair[0], str) for pair in pairs):
                raise CheckpointError(f"{self.path}: `post_processor` must name `cls` and `sep`. Received: {pairs!r}.")
            return pairs[0][0], pairs[1][0]
        self._check("post_processor.type", kind, "TemplateProcessing")
        single = _template(value.get("single"))
        is_triple = isinstance(single, list) and len(single) == 3
        is_named = is_triple and all(isinstance(part, tuple) and isinstance(part[0], str) for part in single)
        start, separator = (single[0][0], single[2][0]) if is_named else _ENDS
        items = [(start, 0), ("A", 0), (separator, 0), ("B", 1), (separator, 1)]
        self._check("post_processor.single", single, items[:3])
        self._check("post_processor.pair", _template(value.get("pair")), items)
        return start, separator


def _template(items: Any) -> Any:
    """The items of a template as pairs of a name and a segment; any other value is returned as it is."""
    try:
        return [(part["id"], part["type_id"]) for item in items for part in item.values()]
    except (TypeError, KeyError, AttributeError):
        return items


# transformers, models/bert/tokenization_bert.py: the arguments' names and defaults, by ours.
_OPTIONS = {"lowercase": "do_lower_case", "strip_accents": "strip_accents", "split_chinese": "tokenize_chinese_chars"}
_DEFAULTS = {"lowercase": True, "strip_accents": None, "split_chinese": True}

# Settings of tokenizer_config.json with their only values: with others it would be another tokenizer.
_FIXED: dict[str, tuple[Any, ...]] = {
    "padding_side": ("right", None),
    "truncation_side": ("right", "left", None),
    "split_special_tokens": (False, None),
}
# Settings of tokenizers written in Python, with the values under which they change nothing.
_UNUSED: dict[str, tuple[Any, ...]] = {"do_basic_tokenize": (True, None), "never_split": (None, [])}


def tokenizer_options(folder: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a `BertTokenizer` that the tokenizer files of a directory describe, as transformers reads them.

    The tokens come from `tokenizer.json`, or from `vocab.txt` if there is none. `tokenizer_class` in
    `tokenizer_config.json`, or else in `config.json`, decides what else `tokenizer.json` decides: see `TokenizerClass`.
    The `do_lower_case` of sentence-transformers lower-cases text before a tokenizer that does not, and keeps accents.

    Args:
        folder: the directory with the tokenizer files.
        config: the content of `tokenizer_config.json`; empty if there is none.

    Returns:
        `vocabulary`, `lowercase`, `strip_accents`, `split_chinese`, `added_tokens` and `special_tokens`.

    Raises:
        CheckpointError: there is no vocabulary; a file is damaged; `BertTokenizer` does not have a setting.
    """
    _check_config(folder / CONFIG, config)
    path = folder / "tokenizer.json"
    tokenizer_json = TokenizerJson(path) if path.is_file() else None
    kind = tokenizer_class(*_stated_class(folder, config), has_json=tokenizer_json is not None)
    tokens = SpecialTokens(
        folder,
        config,
        tokenizer_json.added_tokens if tokenizer_json else (),
        keeps_stored=kind is not TokenizerClass.BERT,
        names=tokenizer_json.roles if tokenizer_json and kind is TokenizerClass.GENERIC else ROLES,
        adds_names=kind is not TokenizerClass.GENERIC,
    )
    required = {token for role, token in tokens.roles.items() if role != "mask"}
    required -= {token.content for token in tokens.tokens} - {tokens.roles["unknown"]}
    if tokenizer_json is not None:
        tokenizer_json.check_roles(tokens.roles)
        vocabulary, stated = tokenizer_json.vocabulary(required), tokenizer_json.options
    elif (folder / "vocab.txt").is_file():
        vocabulary, stated = tuple(read_vocabulary(folder / "vocab.txt", required=required)), None
    else:
        raise missing(folder, "a vocab.txt or a tokenizer.json", owner="load_tokenizer")
    options = _options(folder, config, stated, kind, vocabulary)
    _, lowercase = text_settings(folder)
    if lowercase and not options["lowercase"]:
        options |= {"lowercase": True, "strip_accents": bool(options["strip_accents"])}
    return {"vocabulary": vocabulary, **options, **tokens.options(vocabulary)}


def truncation_side(folder: Path, config: Mapping[str, Any]) -> str:
    """Where texts that are too long lose tokens: `"right"` or `"left"`."""
    if config.get("truncation_side") is not None:
        return config["truncation_side"]
    truncation = optional_json(folder / "tokenizer.json").get("truncation")
    direction = truncation.get("direction") if isinstance(truncation, dict) else None
    return "left" if direction == "Left" else "right"


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


def _stated_class(folder: Path, config: Mapping[str, Any]) -> tuple[Path, Any]:
    """The class of tokenizer, or None, and the file that names it."""
    if config.get("tokenizer_class") is not None:
        return folder / CONFIG, config["tokenizer_class"]
    return folder / "config.json", optional_json(folder / "config.json").get("tokenizer_class")


def _options(
    folder: Path,
    config: Mapping[str, Any],
    stated: Mapping[str, Any] | None,
    kind: TokenizerClass,
    vocabulary: Sequence[str],
) -> dict[str, Any]:
    """`lowercase`, `strip_accents` and `split_chinese`; warns if the files contradict what transformers takes."""
    if stated is not None and kind is not TokenizerClass.BERT:
        return dict(stated)
    options = {ours: config.get(theirs, _DEFAULTS[ours]) for ours, theirs in _OPTIONS.items()}
    names = [theirs for theirs in _OPTIONS.values() if theirs in config]
    if stated is not None and _effective(options) != _effective(stated):
        source = f"{CONFIG} states" if names else f"{CONFIG} states nothing, and transformers' defaults are"
        warnings.warn(
            f"{folder}: {source} {_effective(options)}, tokenizer.json {_effective(stated)}. Following the first, as "
            f"transformers does. If the model was trained with the second, write them into {CONFIG}.",
            stacklevel=6,
        )
    elif "do_lower_case" not in config and (cased := cased_share(vocabulary) or 0.0) >= CASED_SHARE:
        warnings.warn(
            f"{folder}: texts are lower-cased, the default of transformers, as {CONFIG} has no `do_lower_case`. That "
            f"may be wrong: {cased:.0%} of the tokens with Latin letters have a capital one, and no "
            f'text can match these. For a cased model write `"do_lower_case": false` there; `true` silences this.',
            stacklevel=6,
        )
    return options


def _effective(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with the default of `strip_accents` filled in."""
    strip_accents = options["lowercase"] if options["strip_accents"] is None else options["strip_accents"]
    return {**options, "strip_accents": strip_accents}


def _check_config(path: Path, config: Mapping[str, Any]) -> None:
    for key, allowed in _FIXED.items():
        check_one_of(path, key, config.get(key, allowed[0]), allowed)
    for ours, theirs in _OPTIONS.items():
        if theirs in config and not (ours == "strip_accents" and config[theirs] is None):
            check_boolean(path, theirs, config[theirs])
    unused = [key for key, nothing in _UNUSED.items() if config.get(key, nothing[0]) not in nothing]
    if unused:
        warnings.warn(
            f"{path}: {' and '.join(f'`{key}`' for key in unused)} changes nothing, as in transformers 5 and its fast "
            "tokenizers before. A model that was trained with a slow tokenizer may have seen other tokens.",
            stacklevel=5,
        )
