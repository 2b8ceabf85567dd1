"""Reads `tokenizer.json`: `TokenizerJson` refuses every tokenizer but BERT's; functions read parts of any."""

import re
from collections.abc import Collection, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, naming
from keras_bert_layers.checkpoints.files.json_file import (
    check_boolean,
    check_object,
    check_one_of,
    is_added_token,
    read_file,
    read_json_object,
    shown,
)
from keras_bert_layers.preprocessing.tokens.markers import MASK, PAD
from keras_bert_layers.preprocessing.word_piece.vocabulary import load_vocabulary

_NORMALIZER = {"lowercase": "lowercase", "strip_accents": "strip_accents", "split_chinese": "handle_chinese_chars"}

# The keys of the WordPiece model: the only value of each, which is also the library's default.
_MODEL = {"type": "WordPiece", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}

_UNKNOWN = "[UNK]"
_ENDS = ("[CLS]", "[SEP]")
_ADD_TEMPLATE = (
    "Without a template this class of transformers adds no special tokens, and BERT needs them. Save the tokenizer "
    'with a TemplateProcessing, or state "tokenizer_class": "BertTokenizer".'
)
# The keys of the parts of a sequence; a sequence of one is that one.
_SEQUENCES = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "post_processor": "processors"}

# The type of the model in a `tokenizer.json`. Old files state none for BPE, which alone has merges. No token of a
# vocabulary is written like either.
_UNIGRAM = re.compile(rb'"type"\s*:\s*"Unigram"')
_BPE = re.compile(rb'"type"\s*:\s*"BPE"|"merges"\s*:\s*\[')

# Settings of tokenizer_config.json with their only values: with others it would be another tokenizer.
_FIXED: dict[str, tuple[Any, ...]] = {
    "padding_side": ("right", None),
    "truncation_side": ("right", "left", None),
    "split_special_tokens": (False, None),
}


class TokenizerClass(Enum):
    """The part of `tokenizer.json` that a class of tokenizers in transformers reads.

    - `BERT`: the tokens. Everything else comes from `tokenizer_config.json`, or from BERT's defaults.
    - `STORED_BERT`: everything but the special tokens, which come from `tokenizer_config.json` or BERT's defaults.
    - `GENERIC`: everything.
    """

    BERT = "bert"
    STORED_BERT = "stored_bert"
    GENERIC = "generic"


class TokenizerJson:
    """A `tokenizer.json` of HuggingFace's library `tokenizers`.

    The file can describe many tokenizers. Here what is read of it must be BERT's: `BertNormalizer`, `BertPreTokenizer`,
    a `WordPiece` model with `##`, and the template `[CLS] A [SEP] B [SEP]`, perhaps with other names for these tokens.

    Args:
        path: the file.
        kind: the part of it that is read.

    Attributes:
        options: `lowercase`, `strip_accents` and `split_chinese`; None if parts that are not read are not BERT's.
        unread: why, as a sentence; "" if they are BERT's.
        added_tokens: the added tokens as they are in the file.
        roles: the special tokens by their roles in transformers.
        pads_left: whether the file states padding on the left.
        num_pair_separators: the separators between the texts of a pair.

    Raises:
        CheckpointError: the file is damaged, or a part of it, which the message names, is of another tokenizer.

    References:
        https://github.com/huggingface/tokenizers, `serialization` of the Rust crate.
    """

    def __init__(self, path: Path, kind: TokenizerClass = TokenizerClass.GENERIC):
        self.path, self.unread, self.num_pair_separators = path, "", 1
        self._values = read_json_object(path)
        for part, key in _SEQUENCES.items():
            self._values[part] = only_part(self._values.get(part), key)
        self._tokens = self._read_tokens()
        self.options: dict[str, Any] | None = None
        try:
            self._check_parts()
            self.options = self._read_options()
        except CheckpointError as error:
            if kind is not TokenizerClass.BERT:
                raise
            self.unread = str(error)
        self.added_tokens = self._read_added_tokens()
        self.pads_left = pads_left(self._values)
        self._unknown = None if kind is TokenizerClass.BERT else self._part("model").get("unk_token", _UNKNOWN)
        if not isinstance(self._unknown, str | None):
            self._check("model.unk_token", self._unknown, _UNKNOWN)
        self._ends = self._read_ends() if kind is TokenizerClass.GENERIC else None
        start, separator = self._ends or _ENDS
        names = {"unk_token": self._unknown or _UNKNOWN, "sep_token": separator, "pad_token": PAD, "cls_token": start}
        self.roles = {**names, "mask_token": MASK}

    def vocabulary(self, required: Collection[str]) -> tuple[str, ...]:
        """The tokens in order of their ids; ids without a token get an empty one, which no text can match."""
        with naming(f"{self.path}: `model.vocab`"):
            return tuple(load_vocabulary(self._tokens, required=required, warn=False))

    def check_roles(self, roles: Mapping[str, str]) -> None:
        """CheckpointError unless the model and the template have the tokens of these roles, by our names for them."""
        if self._unknown is not None:
            self._check("model.unk_token", self._unknown, roles["unknown"])
        if self._ends is not None:
            self._check("post_processor", self._ends, (roles["start"], roles["separator"]))

    def _check(self, part: str, value: object, allowed: Any) -> None:
        check_one_of(self.path, part, value, (allowed,), "BERT's tokenizer has no other.")

    def _part(self, name: str) -> dict[str, Any]:
        return check_object(self.path, name, self._values.get(name))

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
                check_boolean(self.path, f"normalizer.{theirs}", options[ours])
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
                    f"Received: {shown(token)}: {shown(index)}."
                )
        tokens: list[str | None] = [None] * (max(ids.values()) + 1)
        for token, index in ids.items():
            if tokens[index] is not None:
                both = f"{shown(tokens[index])} and {shown(token)}"
                raise CheckpointError(f"{self.path}: `model.vocab` gives {both} the id {index}.")
            tokens[index] = token
        return [token or "" for token in tokens]

    def _read_added_tokens(self) -> list[dict[str, Any]]:
        added = self._values.get("added_tokens") or []
        if not isinstance(added, list) or not all(is_added_token(token) for token in added):
            raise CheckpointError(f"{self.path}: `added_tokens` must be a list of JSON objects.")
        return sorted(added, key=lambda token: token["id"] if isinstance(token.get("id"), int) else 0)

    def _read_ends(self) -> tuple[str, str]:
        """The tokens before and after a text, by the template."""
        value = self._values.get("post_processor")
        kind = value.get("type") if isinstance(value, dict) else value
        value = value if isinstance(value, dict) else {}
        ids: dict[Any, Any] = {token.get("content"): token.get("id") for token in self.added_tokens}
        ids |= {token: index for index, token in enumerate(self._tokens)}
        if kind in ("BertProcessing", "RobertaProcessing"):
            self.num_pair_separators = 1 if kind == "BertProcessing" else 2
            return processor_ends(self.path, value, ids)
        check_one_of(self.path, "post_processor.type", kind, ("TemplateProcessing",), _ADD_TEMPLATE)
        single = template(value.get("single"))
        is_triple = isinstance(single, list) and len(single) == 3
        is_named = is_triple and all(isinstance(part, tuple) and isinstance(part[0], str) for part in single)
        start, separator = (single[0][0], single[2][0]) if is_named else _ENDS
        items = [(start, 0), ("A", 0), (separator, 0), ("B", 1), (separator, 1)]
        self._check("post_processor.single", single, items[:3])
        self._check("post_processor.pair", template(value.get("pair")), items)
        # Tokens that are not in the vocabulary are refused with it.
        check_template_ids(self.path, value, {token: ids[token] for token in (start, separator) if token in ids})
        return start, separator


def stored_model(path: Path) -> str:
    """The type of the model in a `tokenizer.json`: `"Unigram"`, `"BPE"`, or else `"WordPiece"`."""
    content = read_file(path)
    if _UNIGRAM.search(content):
        return "Unigram"
    return "BPE" if _BPE.search(content) else "WordPiece"


def only_part(value: Any, key: str) -> Any:
    """The only part of a sequence of one part, None for an empty one; any other value as it is.

    Examples:
        >>> only_part({"type": "Sequence", "normalizers": [{"type": "BertNormalizer"}]}, "normalizers")
        {'type': 'BertNormalizer'}
    """
    if not isinstance(value, dict) or value.get("type") != "Sequence" or not isinstance(value.get(key), list):
        return value
    parts = [part for part in value[key] if only_part(part, key) is not None]
    return None if not parts else only_part(parts[0], key) if len(parts) == 1 else value


def pads_left(values: Mapping[str, Any]) -> bool:
    """Whether the content of a `tokenizer.json` states padding on the left."""
    padding = values.get("padding")
    return isinstance(padding, dict) and padding.get("direction") == "Left"


def check_sides(path: Path, config: Mapping[str, Any], *, pads_left: bool) -> None:
    """Refuses the settings of `tokenizer_config.json` that every tokenizer of this package has with one value only.

    Args:
        path: the file, for errors.
        config: its content.
        pads_left: whether `tokenizer.json` states padding on the left, which counts where `config` states no side.
    """
    for key, allowed in _FIXED.items():
        check_one_of(path, key, config.get(key, allowed[0]), allowed)
    if pads_left and "padding_side" not in config:
        check_one_of(path.with_name("tokenizer.json"), "padding.direction", "Left", ("Right",))


def processor_ends(path: Path, value: Mapping[str, Any], ids: Mapping[str, Any]) -> tuple[str, str]:
    """The tokens before and after a text of a `BertProcessing` or `RobertaProcessing`, with the vocabulary's ids."""
    pairs = [value.get("cls"), value.get("sep")]
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str) or ids.get(pair[0]) != pair[1]:
            raise CheckpointError(
                f"{path}: `post_processor` must name `cls` and `sep`, with their ids of the vocabulary. "
                f"Received: {shown(pairs)}."
            )
    return pairs[0][0], pairs[1][0]  # type: ignore[index]


def check_template_ids(path: Path, value: Mapping[str, Any], ids: Mapping[str, Any]) -> None:
    """Checks that a template writes each special token as its one id of the vocabulary."""
    stated = check_object(path, "post_processor.special_tokens", value.get("special_tokens"))
    for token, index in ids.items():
        entry = stated.get(token)
        found = entry.get("ids") if isinstance(entry, dict) else entry
        check_one_of(path, f"post_processor.special_tokens.{token}.ids", found, ([index],), "It is the vocabulary's.")


def template_names(items: Any) -> Any:
    """The names of the items of a template, None for what is not one; any value but a list as it is."""
    found = template(items)
    return [part[0] if isinstance(part, tuple) else None for part in found] if isinstance(found, list) else found


def template(items: Any) -> Any:
    """The items of a template as pairs of a name and a segment; any other value is returned as it is."""
    try:
        return [(part["id"], part["type_id"]) for item in items for part in item.values()]
    except (TypeError, KeyError, AttributeError):
        return items
