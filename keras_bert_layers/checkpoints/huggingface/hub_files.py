"""The files of a repository that belong to a checkpoint, and the checks of their hashes."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, naming

# A module of sentence-transformers has its own folder: 1_Pooling, 2_Dense; in the oldest layout BERT too: 0_BERT.
_FOLDER = re.compile(r"(?:(?P<folder>\d+_\w+)/)?(?P<name>[^/]+)", re.ASCII)

_SMALL = re.compile(
    r"(?:config|bert_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens"
    r"|modules|sentence_bert_config|config_sentence_transformers"  # sentence-transformers
    r"|adapter_config"  # PEFT
    r"|metadata|preprocessor|task)\.json"  # KerasHub
    r"|vocab\.txt|(?:sentencepiece|sentencepiece\.bpe|spiece|tokenizer)\.model"
)
_KERASHUB_VOCABULARY = "assets/tokenizer/vocabulary.txt"

# The first kind of weights that a folder has is used. Pickles, which can hold programs, are last.
_WEIGHTS = (
    re.compile(r"model\.safetensors"),
    re.compile(r"model\.safetensors\.index\.json|model-\d{5}-of-\d{5}\.safetensors"),
    re.compile(r"(?:model|task)\.weights\.h5"),
    re.compile(r"bert_model\.ckpt\.(?:index|data-\d{5}-of-\d{5})"),
    re.compile(r"pytorch_model\.bin"),
    re.compile(r"pytorch_model\.bin\.index\.json|pytorch_model-\d{5}-of-\d{5}\.bin"),
    re.compile(r"tf_model\.h5"),
    # Variants, such as model.fp16.safetensors, whole and in shards.
    re.compile(r"model\.[^.]+\.safetensors|model\.safetensors\.index\.[^.]+\.json"),
    re.compile(r"pytorch_model\.[^.]+\.bin|pytorch_model\.bin\.index\.[^.]+\.json"),
    re.compile(r"(?!adapter_model\.).+\.safetensors"),
)
_ADAPTER = re.compile(r"adapter_model\.(?:safetensors|bin)")

_SHA1_DIGITS, _SHA256_DIGITS = 40, 64


def checkpoint_files(names: Iterable[str], *, weights: bool = True) -> list[str]:
    """The files of a repository that this package reads: no files of other frameworks, and the weights only once.

    Args:
        names: the repository's files, as paths with "/".
        weights: whether to include the weights.

    Returns:
        Their names: configs, vocabularies and, in each folder, the weights of one kind: safetensors, else KerasHub's
        files, else Google's checkpoint, else PyTorch's pickle, else TensorFlow's HDF5 file, else variants; and the
        adapter of PEFT.

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
    """Whether there are weights among a checkpoint's files, if only those of an adapter."""
    files = [name.rpartition("/")[2] for name in names]
    return any(_weight_files([file]) or _ADAPTER.fullmatch(file) for file in files)


def _weight_files(names: list[str]) -> list[str]:
    kinds = ([name for name in names if kind.fullmatch(name)] for kind in _WEIGHTS)
    adapter = [name for name in names if _ADAPTER.fullmatch(name) and "adapter_config.json" in names]
    return next((found for found in kinds if found), []) + adapter


def blob_hash(path: Path) -> str | None:
    """The hash of a file in huggingface_hub's cache; None if the cache has no links, as on Windows.

    The cache's snapshots are links to blobs, whose names are the hub's hashes.

    References:
        https://huggingface.co/docs/huggingface_hub/guides/manage-cache
    """
    name = path.readlink().name if path.is_symlink() else ""
    return name if re.fullmatch(rf"[0-9a-f]{{{_SHA1_DIGITS}}}|[0-9a-f]{{{_SHA256_DIGITS}}}", name) else None


def check_hash(path: Path, expected: str) -> None:
    """Compares a file with the hash that the hub states.

    A process hashes a file once, and again if its size or its time of change differs. Nothing is stored on the disk, so
    a new process hashes it again and also finds errors of the disk.

    Args:
        path: the file.
        expected: the SHA-256 of a file in large file storage (64 hexadecimal digits), or git's hash of a blob (40).

    Raises:
        CheckpointError: the hashes differ, or the file cannot be read.
    """
    with naming(path):
        stat = path.stat()
        found = _hash(path.resolve(), len(expected), stat.st_size, stat.st_mtime_ns)
    if found != expected:
        kind = "SHA-256" if len(expected) == _SHA256_DIGITS else "git hash"
        raise CheckpointError(
            f"{path}: must have the {kind} that the hub states, {expected}. Received: {found}. "
            "The file was damaged in transit or on the disk."
        )


@functools.lru_cache(maxsize=256)
def _hash(path: Path, num_digits: int, size: int, time: int) -> str:
    """A file's hash; size and time are part of the cache's key, for files that change."""
    with path.open("rb") as file:
        if num_digits == _SHA256_DIGITS:
            return hashlib.file_digest(file, "sha256").hexdigest()
        # git, "Git Objects": the hash of a header with the size, and of the content.
        digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        return hashlib.file_digest(file, lambda: digest).hexdigest()
