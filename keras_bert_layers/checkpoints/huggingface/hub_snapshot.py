"""Downloads a checkpoint from the HuggingFace hub: its files, at one commit, with their hashes checked."""

import contextlib
import functools
import hashlib
import logging
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, first_line, first_names, naming

# A module of sentence-transformers has its own folder: 1_Pooling, 2_Dense; in the oldest layout BERT too: 0_BERT.
_FOLDER = re.compile(r"(?:(?P<folder>\d+_\w+)/)?(?P<name>[^/]+)", re.ASCII)

_SMALL = re.compile(
    r"(?:config|bert_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens"
    r"|modules|sentence_bert_config|config_sentence_transformers"  # sentence-transformers
    r"|adapter_config"  # PEFT
    r"|metadata|preprocessor|task)\.json"  # KerasHub
    r"|vocab\.txt|(?:sentencepiece|sentencepiece\.bpe|spiece|spm|tokenizer)\.model"
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
    # Variants, such as model.fp16.safetensors, in one file and in shards.
    re.compile(r"model\.[^.]+\.safetensors|model\.safetensors\.index\.[^.]+\.json"),
    re.compile(r"pytorch_model\.[^.]+\.bin|pytorch_model\.bin\.index\.[^.]+\.json"),
    re.compile(r"(?!adapter_model\.).+\.safetensors"),
)
# The folders of adapters of which a name chooses one; checkpoints of a training have numbers.
_ADAPTER_FOLDER = re.compile(
    r"(?P<folder>[A-Za-z][A-Za-z_.-]*)/(?P<name>adapter_(?:config\.json|model\.(?:safetensors|bin)))"
)
_ADAPTER = re.compile(r"adapter_model\.(?:safetensors|bin)")

_SHA1_DIGITS, _SHA256_DIGITS = 40, 64

logger = logging.getLogger("keras_bert_layers.checkpoints")

# One of them is at the root of every checkpoint: of HuggingFace and KerasHub, sentence-transformers, Google.
_ROOT_FILES = ("config.json", "modules.json", "bert_config.json")
_FILES_IN_AN_ERROR = 12

Refusal = Callable[[str, str], CheckpointError]


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
        if match := _FOLDER.fullmatch(name) or _ADAPTER_FOLDER.fullmatch(name):
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


def hub_snapshot(repository: str, revision: str | None, *, weights: bool, refusal: Refusal) -> Path:
    """Downloads the files of a checkpoint at one commit of its repository into huggingface_hub's cache.

    The hub resolves the revision to a commit. If it cannot be reached (no network, or `HF_HUB_OFFLINE=1`), the cached
    commit is used. Every file is compared with the hub's hash before it is used, a cached one too. The commit is logged
    at level INFO (logger `keras_bert_layers.checkpoints`), and is the last part of the path.

    Args:
        repository: `"owner/name"`.
        revision: a branch, tag or commit; None for the main branch.
        weights: whether to download the weights too, or only configs and vocabularies.
        refusal: creates the error from a rule and a cure.

    Returns:
        The snapshot's directory.

    Raises:
        CheckpointError: the hub cannot be reached and the checkpoint is not in the cache; there is no such repository
            or revision, or it is private or gated; it holds no checkpoint that this package reads; the download failed;
            the hash of a file is not the hub's.
    """
    from huggingface_hub import HfApi, constants, errors, snapshot_download

    # The library of the connection, and so the class of its errors, differs between releases. A ValueError is an answer
    # that is not JSON, such as the page of a proxy.
    unreachable: tuple[type[Exception], ...] = (OSError, ValueError, *errors.HfHubHTTPError.__bases__)
    try:
        timeout = constants.HF_HUB_ETAG_TIMEOUT
        info = HfApi().model_info(repository, revision=revision, files_metadata=True, timeout=timeout)
    except unreachable as error:
        if denial := _denial(error, repository, revision, refusal):
            raise denial from error
        level = logging.INFO if isinstance(error, errors.OfflineModeIsEnabled) else logging.WARNING
        return _cached(repository, revision, weights=weights, reason=_text(error), level=level, refusal=refusal)
    hashes = _stated_hashes(info, weights, refusal)
    try:
        # By the revision's own name, so that the cache stores its commit for use without a network.
        folder = Path(snapshot_download(repository, revision=revision, allow_patterns=list(hashes)))
    except unreachable as error:
        denial = _denial(error, repository, revision, refusal)
        raise denial or refusal("be downloaded completely", f"{_text(error)}. Load it again.") from error
    if folder.name != info.sha:
        raise refusal("stay as it is while it is loaded", f"It went from {info.sha} to {folder.name}. Load it again.")
    logger.info("hf://%s is at commit %s: %s", repository, info.sha, folder)
    for name, expected in hashes.items():
        _check(folder / name, expected, online=True)
    return folder


def _denial(error: Exception, repository: str, revision: str | None, refusal: Refusal) -> CheckpointError | None:
    """The error for a denial by the hub, with a cure; None for any other failure."""
    from huggingface_hub import constants, errors

    log_in = "log in with `hf auth login`, or set HF_TOKEN"
    if isinstance(error, errors.GatedRepoError):
        cure = f"Ask for access at {constants.ENDPOINT}/{repository}, then {log_in}."
        return refusal("be a repository that you may read; it is gated", cure)
    if isinstance(error, errors.RepositoryNotFoundError):
        return refusal("name a repository of the hub", f"{repository} does not exist, or it is private: then {log_in}.")
    if isinstance(error, errors.RevisionNotFoundError):
        return refusal("name a revision of the repository", f"{repository} has no branch, tag or commit {revision!r}.")
    if isinstance(error, errors.HFValidationError):
        return refusal("name a repository as the hub allows it", f"{_text(error)}.")
    return None


def _stated_hashes(info: Any, weights: bool, refusal: Refusal) -> dict[str, str]:
    """The hub's hash of each file to download: of its content in large file storage, else git's."""
    files = {file.rfilename: file for file in info.siblings or ()}
    wanted = checkpoint_files(files, weights=weights)
    if not wanted or (weights and not holds_weights(wanted)):
        cure = f"Found: {first_names(sorted(files), _FILES_IN_AN_ERROR) or 'nothing'}."
        raise refusal("name a repository with a checkpoint that this package reads", cure)
    hashes = {name: files[name].lfs.sha256 if files[name].lfs else files[name].blob_id for name in wanted}
    without_hash = [name for name, stated in hashes.items() if not stated]
    if without_hash:
        cure = f"There is no hash of {', '.join(without_hash)}."
        raise refusal("be on a hub that states the hash of every file", cure)
    return hashes


def _cached(repository: str, revision: str | None, *, weights: bool, reason: str, level: int, refusal: Refusal) -> Path:
    """The cached snapshot, checked against the hashes in the names of its blobs."""
    from huggingface_hub import try_to_load_from_cache

    paths = [try_to_load_from_cache(repository, name, revision=revision) for name in _ROOT_FILES]
    folder = next((Path(path).parent for path in paths if isinstance(path, str)), None)
    names = [] if folder is None else [path.relative_to(folder).as_posix() for path in folder.rglob("*")]
    wanted = checkpoint_files(names, weights=weights)
    if folder is None or (weights and not holds_weights(wanted)):
        cure = f"{reason}. Load it once while there is a network, or give a local directory."
        raise refusal("be in huggingface_hub's cache while the hub cannot be reached", cure)
    logger.log(level, "hf://%s is taken from the cache, at commit %s: %s. %s.", repository, folder.name, folder, reason)
    for name in wanted:
        expected = blob_hash(folder / name)
        if expected is None:
            logger.log(level, "%s is not checked: this cache does not store the hub's hashes.", folder / name)
        else:
            _check(folder / name, expected, online=False)
    return folder


def _check(path: Path, expected: str, *, online: bool) -> None:
    """Checks a hash, and removes a damaged file from the cache if it can be replaced: the cache itself does not."""
    try:
        check_hash(path, expected)
    except CheckpointError as error:
        cure = "Remove it from the cache, and load again where there is a network."
        if online:
            with contextlib.suppress(OSError):
                path.resolve().unlink(missing_ok=True)
                path.unlink(missing_ok=True)
                cure = "It was removed from the cache. Load again to download it again."
        raise CheckpointError(f"{error} {cure}") from error


def _text(error: Exception) -> str:
    """The first line of an error of another library, with its class."""
    return f"{type(error).__name__}: {first_line(error)}"
