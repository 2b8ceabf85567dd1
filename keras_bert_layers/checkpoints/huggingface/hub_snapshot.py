"""`hub_snapshot`: downloads a checkpoint from the HuggingFace hub."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, first_line
from keras_bert_layers.checkpoints.huggingface.hub_files import blob_hash, check_hash, checkpoint_files, holds_weights

logger = logging.getLogger("keras_bert_layers.checkpoints")

# One of them is at the root of every checkpoint: of HuggingFace and KerasHub, sentence-transformers, Google.
_ROOT_FILES = ("config.json", "modules.json", "bert_config.json")
_FILES_IN_AN_ERROR = 12

Refusal = Callable[[str, str], CheckpointError]


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
        raise denial or refusal("be downloaded whole", f"{_text(error)}. Load it again.") from error
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
        found = sorted(files)
        more = ", ..." if len(found) > _FILES_IN_AN_ERROR else ""
        cure = f"Found: {', '.join(found[:_FILES_IN_AN_ERROR]) or 'nothing'}{more}."
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
