"""`TokenizerJson`: reads a `tokenizer.json` and refuses every tokenizer but BERT's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, naming
from keras_bert_layers.checkpoints.files import json_file
from keras_bert_layers.preprocessing.vocabulary import SPECIAL_TOKENS, load_vocabulary

_NORMALIZER = {"lowercase": "lowercase", "strip_accents": "strip_accents", "split_chinese": "handle_chinese_chars"}

# The keys of the WordPiece model: the only value of each, which is also the library's default.
_MODEL = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}

_PAIR = [("[CLS]", 0), ("A", 0), ("[SEP]", 0), ("B", 1), ("[SEP]", 1)]


class TokenizerJson:
    """A `tokenizer.json` of HuggingFace's library `tokenizers`.

    The file can describe many tokenizers. Here it must be BERT's: `BertNormalizer`, `BertPreTokenizer`, a `WordPiece`
    model with `[UNK]` and `##`, the template `[CLS] A [SEP] B [SEP]`, and no added token but the five special ones.
    Truncation and padding in the file are ignored: the preprocessor has arguments for these.

    Args:
        path: the file.

    Raises:
        CheckpointError: the file is damaged, or a part of it, which the message names, is of another tokenizer.

    References:
        https://github.com/huggingface/tokenizers, `serialization` of the Rust crate.
    """

    def __init__(self, path: Path):
        self.path = path
        self._values = json_file.read_json_object(path)
        self._check_parts()
        self.vocabulary = self._read_vocabulary()
        self.options = self._read_options()
        self._check_added_tokens()
        self._check_post_processor()

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

    def _read_vocabulary(self) -> tuple[str, ...]:
        """The tokens in order of their ids, which must be 0, 1, 2, ... without a gap."""
        ids = self._part("model").get("vocab")
        if not isinstance(ids, dict) or not ids:
            raise CheckpointError(f"{self.path}: `model.vocab` must give an id for each token.")
        tokens: list[str | None] = [None] * len(ids)
        for token, index in ids.items():
            if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(ids):
                raise CheckpointError(
                    f"{self.path}: `model.vocab` must use the ids 0 to {len(ids) - 1}. "
                    f"Received: {json_file.shown(token)}: {json_file.shown(index)}."
                )
            if tokens[index] is not None:
                both = f"{json_file.shown(tokens[index])} and {json_file.shown(token)}"
                raise CheckpointError(f"{self.path}: `model.vocab` gives {both} the id {index}.")
            tokens[index] = token
        with naming(f"{self.path}: `model.vocab`"):
            return tuple(load_vocabulary([token for token in tokens if token is not None]))

    def _check_added_tokens(self) -> None:
        added = self._values.get("added_tokens") or []
        if not isinstance(added, list) or not all(isinstance(token, dict) for token in added):
            raise CheckpointError(f"{self.path}: `added_tokens` must be a list of JSON objects.")
        for token in added:
            content = token.get("content")
            json_file.check_one_of(self.path, "added_tokens", content, SPECIAL_TOKENS, "BertTokenizer has no others.")
            if content not in self.vocabulary or self.vocabulary.index(content) != token.get("id"):
                raise CheckpointError(f"{self.path}: the added token {content} must have its id of `model.vocab`.")
            for key in ("lstrip", "rstrip", "single_word", "normalized"):
                self._check(f"added_tokens {content} {key}", token.get(key, False), False)

    def _check_post_processor(self) -> None:
        """Checks the template; without one, transformers uses BERT's."""
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
    """The items of a template as pairs of a name and a segment; any other value is returned as it is."""
    try:
        return [(part["id"], part["type_id"]) for item in items for part in item.values()]
    except (TypeError, KeyError, AttributeError):
        return items
