"""Which files of a repository make a checkpoint, and whether a file is the one that the hub means."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError

# A module of sentence-transformers has a folder of its own: 1_Pooling, 2_Dense; in the oldest layout BERT too: 0_BERT.
_FOLDER = re.compile(r"(?:(?P<folder>\d+_\w+)/)?(?P<name>[^/]+)", re.ASCII)

_SMALL = re.compile(
    r"(?:config|bert_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens"
    r"|modules|sentence_bert_config|config_sentence_transformers"  # sentence-transformers
    r"|metadata|preprocessor|task)\.json"  # KerasHub
    r"|vocab\.txt"
)
_KERASHUB_VOCABULARY = "assets/tokenizer/vocabulary.txt"

# A folder's weights are of the first kind of which it has any. What can hold a program stands last.
_WEIGHTS = (
    re.compile(r"model\.safetensors"),
    re.compile(r"model\.safetensors\.index\.json|model-\d{5}-of-\d{5}\.safetensors"),
    re.compile(r"(?:model|task)\.weights\.h5"),
    re.compile(r"bert_model\.ckpt\.(?:index|data-\d{5}-of-\d{5})"),
    re.compile(r"pytorch_model\.bin"),
    re.compile(r"pytorch_model\.bin\.index\.json|pytorch_model-\d{5}-of-\d{5}\.bin"),
)

_SHA1_DIGITS, _SHA256_DIGITS = 40, 64


def checkpoint_files(names: Iterable[str], *, weights: bool = True) -> list[str]:
    """The files of a repository that are read here; nothing of other frameworks, and no second copy of the weights.

    Args:
        names: the repository's files, as paths with "/".
        weights: whether the weights are wanted too.

    Returns:
        Their names: configs, vocabularies and, in each folder, the weights of one kind. safetensors go first, then
        KerasHub's files, then Google's checkpoint; PyTorch's pickle is taken only where nothing else is.

    Examples:
        >>> checkpoint_files(["README.md", "config.json", "model.safetensors", "pytorch_model.bin", "onnx/model.onnx"])
        ['config.json', 'model.safetensors']
    """
    folders: dict[str, list[str]] = {}
    for name in sorted(names):
        if match := _FOLDER.fullmatch(name):
            folders.setdefault(f"{match['folder']}/" if match["folder"] else "", []).append(match["name"])
    wanted = [_KERASHUB_VOCABULARY] if _KERASHUB_VOCABULARY in names else []
    for folder, inside in folders.items():
        wanted += [folder + name for name in inside if _SMALL.fullmatch(name)]
        wanted += [folder + name for name in _weight_files(inside) if weights]
    return sorted(wanted)


def holds_weights(names: Iterable[str]) -> bool:
    """Whether there are weights among a checkpoint's files."""
    return any(_weight_files([name.rpartition("/")[2]]) for name in names)


def _weight_files(names: list[str]) -> list[str]:
    kinds = ([name for name in names if kind.fullmatch(name)] for kind in _WEIGHTS)
    return next((found for found in kinds if found), [])


def blob_hash(path: Path) -> str | None:
    """The hash under which huggingface_hub's cache keeps a file; None where it has no links, as on Windows.

    The cache's snapshots are links to blobs that are named after the hub's hash.

    References:
        https://huggingface.co/docs/huggingface_hub/guides/manage-cache
    """
    name = path.readlink().name if path.is_symlink() else ""
    return name if re.fullmatch(rf"[0-9a-f]{{{_SHA1_DIGITS}}}|[0-9a-f]{{{_SHA256_DIGITS}}}", name) else None


def check_hash(path: Path, expected: str) -> None:
    """Compares a file's bytes with the hash that the hub states for them.

    A process reads a file once, and again only if its size or its time of change is another. A new process reads it
    anew, as loading does anyway; so there is no record on the disk that could be wrong, and a disk's errors are found.

    Args:
        path: the file.
        expected: 64 hexadecimal digits, the SHA-256 of a file in large file storage; or 40, git's hash of a blob.

    Raises:
        CheckpointError: the hashes differ, or the file cannot be read.
    """
    try:
        stat = path.stat()
        found = _hash(path.resolve(), len(expected), stat.st_size, stat.st_mtime_ns)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}.") from error
    if found != expected:
        kind = "SHA-256" if len(expected) == _SHA256_DIGITS else "git hash"
        raise CheckpointError(
            f"{path}: must have the {kind} that the hub states, {expected}. Received: {found}. "
            "The file was damaged on its way or on the disk."
        )


@functools.lru_cache(maxsize=256)
def _hash(path: Path, num_digits: int, size: int, time: int) -> str:
    """A file's hash; size and time are there to tell a changed file from the one that was read."""
    with path.open("rb") as file:
        if num_digits == _SHA256_DIGITS:
            return hashlib.file_digest(file, "sha256").hexdigest()
        # git, "Git Objects": the hash of a header with the size, and of the content.
        digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        return hashlib.file_digest(file, lambda: digest).hexdigest()
