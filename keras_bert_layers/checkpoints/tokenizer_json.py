"""`TokenizerJson`: a `tokenizer.json`, refused where it describes anything but BERT's tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.json_file import read_json_object, shown
from keras_bert_layers.preprocessing.vocabulary import SPECIAL_TOKENS, load_vocabulary

_NORMALIZER = {"lowercase": "lowercase", "strip_accents": "strip_accents", "split_chinese": "handle_chinese_chars"}

# What the WordPiece model must say, and what the library takes where it says nothing.
_MODEL = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}

_PAIR = [("[CLS]", 0), ("A", 0), ("[SEP]", 0), ("B", 1), ("[SEP]", 1)]


class TokenizerJson:
    """A `tokenizer.json` of HuggingFace's library `tokenizers`.

    The file can describe many tokenizers. Here it must be BERT's: `BertNormalizer`, `BertPreTokenizer`, a `WordPiece`
    model with `[UNK]` and `##`, `[CLS] A [SEP] B [SEP]` round the texts, and no added token but the five special ones.
    Truncation and padding in the file are ignored: the preprocessor's arguments say these.

    Args:
        path: the file.

    Raises:
        CheckpointError: the file is damaged, or a part of it is another tokenizer's; the part is named.

    References:
        https://github.com/huggingface/tokenizers, `serialization` of the Rust crate.
    """

    def __init__(self, path: Path):
        self.path = path
        self._values = read_json_object(path)
        self._check_parts()
        self.vocabulary = self._read_vocabulary()
        self.options = self._read_options()
        self._check_added_tokens()
        self._check_post_processor()

    def _check(self, part: str, value: Any, allowed: Any) -> None:
        if value != allowed or isinstance(value, bool) != isinstance(allowed, bool):
            raise CheckpointError(
                f"{self.path}: `{part}` must be {allowed!r}, as in BERT's tokenizer. Received: {shown(value)}."
            )

    def _part(self, name: str) -> dict[str, Any]:
        value = self._values.get(name)
        if not isinstance(value, dict):
            raise CheckpointError(f"{self.path}: `{name}` must be a JSON object. Received: {shown(value)}.")
        return value

    def _check_parts(self) -> None:
        self._check("normalizer.type", self._part("normalizer").get("type"), "BertNormalizer")
        self._check("normalizer.clean_text", self._part("normalizer").get("clean_text", True), True)
        self._check("pre_tokenizer.type", self._part("pre_tokenizer").get("type"), "BertPreTokenizer")
        for key, standard in _MODEL.items():
            self._check(f"model.{key}", self._part("model").get(key, standard), standard)

    def _read_options(self) -> dict[str, Any]:
        normalizer = self._part("normalizer")
        options = {ours: normalizer.get(theirs) for ours, theirs in _NORMALIZER.items()}
        for ours, theirs in _NORMALIZER.items():
            allowed = (True, False, None) if ours == "strip_accents" else (True, False)
            if not any(options[ours] is value for value in allowed):
                raise CheckpointError(
                    f"{self.path}: `normalizer.{theirs}` must be true or false. Received: {shown(options[ours])}."
                )
        return options

    def _read_vocabulary(self) -> tuple[str, ...]:
        """The tokens by id; ids must be 0, 1, 2, ... without a gap."""
        ids = self._part("model").get("vocab")
        if not isinstance(ids, dict) or not ids:
            raise CheckpointError(f"{self.path}: `model.vocab` must give an id for each token.")
        tokens: list[str | None] = [None] * len(ids)
        for token, index in ids.items():
            if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(ids):
                raise CheckpointError(
                    f"{self.path}: `model.vocab` must use the ids 0 to {len(ids) - 1}. "
                    f"Received: {shown(token)}: {shown(index)}."
                )
            if tokens[index] is not None:
                both = f"{shown(tokens[index])} and {shown(token)}"
                raise CheckpointError(f"{self.path}: `model.vocab` gives {both} the id {index}.")
            tokens[index] = token
        try:
            return tuple(load_vocabulary([token for token in tokens if token is not None]))
        except ValueError as error:
            raise CheckpointError(f"{self.path}: `model.vocab`: {error}") from error

    def _check_added_tokens(self) -> None:
        added = self._values.get("added_tokens") or []
        if not isinstance(added, list) or not all(isinstance(token, dict) for token in added):
            raise CheckpointError(f"{self.path}: `added_tokens` must be a list of JSON objects.")
        for token in added:
            content = token.get("content")
            if content not in SPECIAL_TOKENS:
                raise CheckpointError(
                    f"{self.path}: `added_tokens` must be among {list(SPECIAL_TOKENS)}; BertTokenizer has no others. "
                    f"Received: {shown(content)}."
                )
            if content not in self.vocabulary or self.vocabulary.index(content) != token.get("id"):
                raise CheckpointError(f"{self.path}: the added token {content} must have its id of `model.vocab`.")
            for key in ("lstrip", "rstrip", "single_word", "normalized"):
                self._check(f"added_tokens {content} {key}", token.get(key, False), False)

    def _check_post_processor(self) -> None:
        """None is BERT's own template too: transformers puts it there."""
        value = self._values.get("post_processor")
        if value is None:
            return
        kind = value.get("type") if isinstance(value, dict) else value
        if kind == "BertProcessing":
            for role, token in (("cls", "[CLS]"), ("sep", "[SEP]")):
                pair = value.get(role)
                self._check(f"post_processor.{role}", pair[0] if isinstance(pair, list) and pair else pair, token)
            return
        self._check("post_processor.type", kind, "TemplateProcessing")
        self._check("post_processor.single", _template(value.get("single")), _PAIR[:3])
        self._check("post_processor.pair", _template(value.get("pair")), _PAIR)


def _template(items: Any) -> Any:
    """A template's items as pairs of a name and a segment; what is no template, as it stands."""
    try:
        return [(part["id"], part["type_id"]) for item in items for part in item.values()]
    except (TypeError, KeyError, AttributeError):
        return items
