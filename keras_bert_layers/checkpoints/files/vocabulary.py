"""Vocabulary files: one token per line."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, naming
from keras_bert_layers.checkpoints.files.json_file import read_file
from keras_bert_layers.preprocessing.word_piece.vocabulary import REQUIRED_TOKENS, load_vocabulary

# 31 % of the pieces of bert-base-cased with a Latin letter have a capital one, and none of bert-base-uncased.
CASED_SHARE = 0.01


def read_vocabulary(
    path: Path, read: Callable[[Path], Any] = Path, *, required: Collection[str] = REQUIRED_TOKENS
) -> list[str]:
    """Reads the tokens of a vocabulary file.

    Args:
        path: an existing file.
        read: from the path to an argument for `load_vocabulary`: the path itself, or the tokens.
        required: tokens that must be there.

    Raises:
        CheckpointError: the file is too large, or not a vocabulary.
    """
    read_file(path)
    with naming(path):
        return load_vocabulary(read(path), required=required)


def check_num_tokens(path: Path, num_tokens: int, num_embeddings: int, key: str) -> None:
    """CheckpointError for more tokens than embeddings. Fewer are common: matrices are padded to a round size."""
    if num_tokens > num_embeddings:
        raise CheckpointError(
            f"{path}: must not hold more tokens than {key} of {num_embeddings}. Received: {num_tokens} tokens. "
            "Vocabulary and weights do not belong together."
        )


def cased_share(tokens: Sequence[str]) -> float | None:
    """The share of tokens with capital letters among those with Latin letters; None without any.

    Names in brackets, such as [CLS], are left out.
    """
    words = [token for token in tokens if token[:1] not in ("[", "<")]
    words = [word for word in words if any("a" <= letter.lower() <= "z" for letter in word)]
    return sum(word != word.lower() for word in words) / len(words) if words else None


def vocabulary_bytes(tokens: Sequence[str]) -> bytes:
    """The content of a vocabulary file."""
    return "".join(f"{token}\n" for token in tokens).encode()
