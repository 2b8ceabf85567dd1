"""`tokenizer_options`: reads the tokenizer files of a HuggingFace directory, of any kind of tokenizer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.files.json_file import optional_json
from keras_bert_layers.checkpoints.files.vocabulary import check_num_tokens
from keras_bert_layers.checkpoints.huggingface.tokenizer.byte_level import MERGES, byte_level_options
from keras_bert_layers.checkpoints.huggingface.tokenizer.json_file import stored_model
from keras_bert_layers.checkpoints.huggingface.tokenizer.sentence_piece import model_file, sentence_piece_options
from keras_bert_layers.checkpoints.huggingface.tokenizer.special_tokens import fit_embeddings
from keras_bert_layers.checkpoints.huggingface.tokenizer.word_piece import word_piece_options
from keras_bert_layers.checkpoints.sentence_transformers.modules import text_settings


def tokenizer_options(
    folder: Path, config: Mapping[str, Any], model_config: Mapping[str, Any], default_class: str | None = None
) -> dict[str, Any]:
    """The arguments of the tokenizer, of which `scores` or `merges` name the class.

    Args:
        folder: the directory with the tokenizer files.
        config: the content of `tokenizer_config.json`; empty if there is none.
        model_config: the content of `config.json`; empty if there is none.
        default_class: the class of tokenizer of the model type.

    Raises:
        CheckpointError: see `word_piece_options`, `byte_level_options` and `sentence_piece_options`; there are more
            tokens than embeddings.
    """
    num_embeddings = model_config.get("vocab_size")
    kind = _kind(folder)
    if kind == "WordPiece":
        options = word_piece_options(folder, config, default_class)
        if isinstance(num_embeddings, int):
            options = fit_embeddings(folder, options, num_embeddings)
        return {**options, "reference": "huggingface"}
    if kind == "BPE":
        options = byte_level_options(folder, config, default_class)
    else:
        options = sentence_piece_options(folder, config, default_class)
    if isinstance(num_embeddings, int):
        check_num_tokens(folder, len(options["vocabulary"]), num_embeddings, "config.json's vocab_size")
    return options


def _kind(folder: Path) -> str:
    """The kind of tokenizer, by `tokenizer.json`, or else by the files that are there."""
    if (folder / "tokenizer.json").is_file():
        return stored_model(folder / "tokenizer.json")
    if (folder / MERGES).is_file():
        return "BPE"
    has_words = (folder / "vocab.txt").is_file()
    return "Unigram" if not has_words and model_file(folder) is not None else "WordPiece"


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
