"""`check_not_pointer`: refuses a git-lfs pointer in place of a file."""

from __future__ import annotations

from pathlib import Path

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError

# https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md: the first line, and the largest size of a pointer.
_FIRST_LINE = b"version https://git-lfs.github.com/spec/"
_MAX_BYTES = 1024


def check_not_pointer(path: Path) -> None:
    """CheckpointError if a file is a git-lfs pointer: a few lines of text that stand for a file on a server.

    A clone without git-lfs has pointers where the large files of the repository belong.

    Args:
        path: the file; it may be missing, which other errors report.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "model.safetensors")
        >>> _ = path.write_bytes(b"version https://git-lfs.github.com/spec/v1")
        >>> try:
        ...     check_not_pointer(path)
        ... except CheckpointError as error:
        ...     print(str(error).partition(": ")[2])
        must be the file itself. Found: a git-lfs pointer to it. Run `git lfs install && git lfs pull` in the clone.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            return
        with path.open("rb") as file:
            start = file.read(len(_FIRST_LINE))
    except OSError:
        return
    if start == _FIRST_LINE:
        raise CheckpointError(
            f"{path}: must be the file itself. Found: a git-lfs pointer to it. "
            "Run `git lfs install && git lfs pull` in the clone."
        )
