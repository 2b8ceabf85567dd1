"""`TokenizerJson`: reads a `tokenizer.json` and refuses every tokenizer but BERT's."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, naming
from keras_bert_layers.checkpoints.files.json_file import (
    check_boolean,
    check_object,
    check_one_of,
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
        self._values = read_json_object(path)
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
