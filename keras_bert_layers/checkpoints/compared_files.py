"""The files of a HuggingFace directory whose values `read_differently` compares."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from keras_bert_layers.checkpoints.files.json_file import optional_json
from keras_bert_layers.checkpoints.huggingface.directory import HuggingFaceDirectory
from keras_bert_layers.checkpoints.huggingface.families.table import default_tokenizer
from keras_bert_layers.checkpoints.huggingface.tokenizer.json_file import TokenizerClass, TokenizerJson, stored_model
from keras_bert_layers.checkpoints.huggingface.tokenizer.special_tokens import CONFIG
from keras_bert_layers.checkpoints.huggingface.tokenizer.stated_tokens import named_class
from keras_bert_layers.checkpoints.huggingface.tokenizer.word_piece import stated_options, tokenizer_class
from keras_bert_layers.checkpoints.sentence_transformers import modules


class ComparedFiles:
    """The values of a directory's files that the rules compare."""

    def __init__(self, checkpoint: HuggingFaceDirectory):
        self.root, self.folder, self.config = checkpoint.root, checkpoint.folder, checkpoint.config_values
        self.checkpoint = checkpoint
        self.tokenizer_config = optional_json(self.folder / CONFIG)
        self.stored = optional_json(self.folder / "tokenizer.json")
        self.model_type = self.config.get("model_type", "bert")
        self.length, self.lowercase = modules.text_settings(self.folder)
        self.modules = modules.read_modules(self.root) if checkpoint.is_sentence_transformers else []

    @cached_property
    def kind(self) -> str | None:
        """The kind of model in `tokenizer.json`; None without one."""
        return stored_model(self.folder / "tokenizer.json") if self.stored else None

    @cached_property
    def named_class(self) -> str:
        """The class of tokenizer that transformers takes."""
        return str(
            named_class(self.folder, self.tokenizer_config, default_tokenizer(self.config) or "BertTokenizer")[1]
        )

    @cached_property
    def token_class(self) -> TokenizerClass:
        """What this class reads of a WordPiece `tokenizer.json`."""
        return tokenizer_class(self.folder / CONFIG, self.named_class, has_json=bool(self.stored))

    @cached_property
    def word_pieces(self) -> TokenizerJson | None:
        """The `tokenizer.json` of a WordPiece model."""
        return TokenizerJson(self.folder / "tokenizer.json", self.token_class) if self.kind == "WordPiece" else None

    @property
    def options(self) -> Mapping[str, Any] | None:
        """How the class normalizes texts; None where that is not WordPiece."""
        if self.word_pieces is not None and self.token_class is not TokenizerClass.BERT:
            return self.word_pieces.options
        is_word_piece = self.kind == "WordPiece" or (not self.stored and (self.folder / "vocab.txt").is_file())
        return stated_options(self.tokenizer_config) if is_word_piece else None

    @cached_property
    def added(self) -> dict[str, Any]:
        """The added tokens of `tokenizer.json` -> their ids."""
        return {token.get("content"): token.get("id") for token in self.stored.get("added_tokens") or []}

    @cached_property
    def vocabulary(self) -> Any:
        """The tokens of the model in `tokenizer.json` -> their ids; of Unigram, pairs of a piece and a score."""
        return self.stored.get("model", {}).get("vocab", {})
