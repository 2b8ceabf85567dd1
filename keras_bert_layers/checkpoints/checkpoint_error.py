"""`CheckpointError`: the error of everything that is wrong with a checkpoint's files."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path


class CheckpointError(ValueError):
    """A checkpoint cannot be read: a file is missing or damaged, or needs something that is not implemented here.

    The message names the file and, where there is one, the tensor or key. It states what was expected, what was found
    and what to do. The class is a `ValueError`, so code that does not know it still catches it.

    Examples:
        >>> from keras_bert_layers.checkpoints import CheckpointError, load_backbone
        >>> try:
        ...     load_backbone("no/such/directory")
        ... except CheckpointError as error:
        ...     print(str(error).partition(" Received")[0])
        `load_backbone`: `source` must be an existing directory.
    """


@contextlib.contextmanager
def naming(path: object) -> Iterator[None]:
    """Turns an error about a file's content, or about reading it, into a `CheckpointError` that names the file."""
    try:
        yield
    except CheckpointError:
        raise
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: the file is missing. Copy all files of the checkpoint.") from error
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}.") from error
    except (ValueError, TypeError) as error:
        raise CheckpointError(f"{path}: {error}") from error
    except (LookupError, AttributeError, ArithmeticError, RecursionError) as error:  # a value of another kind
        raise CheckpointError(f"{path}: cannot be read: {type(error).__name__}: {first_line(error)}.") from error


@contextlib.contextmanager
def damaged(what: str, kinds: type[Exception] | tuple[type[Exception], ...], cure: str = "") -> Iterator[None]:
    """Turns a library's error about a damaged file into a `CheckpointError` with its reason and a cure."""
    try:
        yield
    except CheckpointError:
        raise
    except kinds as error:
        raise CheckpointError(f"{what}: {first_line(error)}. {cure}".rstrip()) from error


def first_line(error: Exception) -> str:
    """The first line of another library's error, without its full stop; the class of an error without a text."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(". ")


def first_names(names: Sequence[str], most: int) -> str:
    """The first `most` names and the number of the others: an optimizer alone has two names for every weight."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def missing(folder: Path, file: str, cure: str = "", *, owner: str) -> CheckpointError:
    """The error for a folder without a file that it needs; it lists what the folder holds.

    Args:
        folder: the folder.
        file: the file, or a description of several.
        cure: what to do.
        owner: the public function that was called.
    """
    found = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
    return CheckpointError(f"`{owner}`: {folder} must hold {file}. Found: {found}. {cure}".rstrip())
