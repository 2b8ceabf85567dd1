"""JSON files of a checkpoint: reading with errors that name the file, checks of values, and writing."""

import json
import os
import reprlib
import stat
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, damaged, naming
from keras_bert_layers.checkpoints.files.tensor_file import check_not_pointer

# The largest JSON file of a BERT is the tokenizer.json of LaBSE's 501,153 pieces, some 13 MB. The values of a hostile
# file take up to 30 times as much memory as the file.
MAX_JSON_BYTES = 32 * 1024 * 1024
# The same file has some 30 objects and lists. A million empty ones take a second to read, and 100 MB.
MAX_JSON_PARTS = 1_000_000
# A tokenizer.json has 6 levels. Python's own `repr` and `==` fail from about 900 levels on.
MAX_JSON_DEPTH = 64
# The longest file name of common file systems.
_MAX_NAME_BYTES = 255
# Of an error; what is allowed may come from a file.
_LONGEST_RULE = 500

_shown = reprlib.Repr()
_shown.maxstring = _shown.maxother = _shown.maxlong = 80
_shown.maxlist = _shown.maxdict = 8


def read_file(path: Path, most: int = MAX_JSON_BYTES) -> bytes:
    """Reads a file from outside: a regular one, links followed, of at most `most` bytes.

    A pipe is not waited for, and a file without an end, such as a link to `/dev/zero`, is not read.

    Raises:
        CheckpointError: it is another kind of file, larger, a git-lfs pointer, or cannot be read.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with naming(path), os.fdopen(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise CheckpointError(f"{path}: must be a regular file.")
        content = file.read(min(most, status.st_size) + 1)
    size = max(len(content), status.st_size)
    if size > most or len(content) > status.st_size:  # what has more than it states has no end
        raise CheckpointError(f"{path}: must take at most {most} bytes. Received: {size} bytes or more.")
    check_not_pointer(path)
    return content


def is_there(path: Path) -> bool:
    """Whether there is such a file; CheckpointError for one that cannot be read, such as a pipe or a broken link."""
    if path.is_file() or path.is_dir() or not os.path.lexists(path):
        return path.is_file()
    raise CheckpointError(f"{path}: must be a regular file.")


def read_json(path: Path) -> Any:
    """Reads a JSON file.

    Args:
        path: the file.

    Returns:
        The value.

    Raises:
        CheckpointError: the file cannot be read, is larger than `MAX_JSON_BYTES`, is not JSON, holds more objects and
            lists than `MAX_JSON_PARTS`, or is nested deeper than `MAX_JSON_DEPTH`.
    """
    content = read_file(path)
    check_parts(path, content)
    with damaged(f"{path}: must be valid JSON. Received", (ValueError, RecursionError)):
        value = json.loads(content)
    if _is_deep(value):
        raise CheckpointError(f"{path}: must be valid JSON of at most {MAX_JSON_DEPTH} levels.")
    return value


def check_parts(path: object, content: bytes) -> None:
    """CheckpointError for JSON with more objects and lists than `MAX_JSON_PARTS`, before it is parsed."""
    if content.count(b"{") + content.count(b"[") > MAX_JSON_PARTS:
        raise CheckpointError(f"{path}: must hold at most {MAX_JSON_PARTS:,} objects and lists.")


def read_json_object(path: Path) -> dict[str, Any]:
    """Reads a JSON file that holds an object; CheckpointError for any other value."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: must hold a JSON object. Received: a {type(value).__name__}.")
    return value


def check_integer(path: Path, key: str, value: object, *, least: int) -> int:
    """The value of a key, if it is an integer of at least `least`; CheckpointError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise CheckpointError(f"{path}: `{key}` must be an integer of at least {least}. Received: {value!r}.")
    return value


def check_fraction(path: Path, key: str, value: object) -> float:
    """The value of a key, if it is a number of at least 0 and less than 1; CheckpointError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        rule = "a number of at least 0 and less than 1"
        raise CheckpointError(f"{path}: `{key}` must be {rule}. Received: {shown(value)}.")
    return value


def check_boolean(path: Path, key: str, value: object) -> bool:
    """The value of a key, if it is true or false; CheckpointError otherwise."""
    if not isinstance(value, bool):
        raise CheckpointError(f"{path}: `{key}` must be true or false. Received: {value!r}.")
    return value


def check_object(path: Path, key: str, value: object) -> dict[str, Any]:
    """The value of a key, if it is a JSON object; CheckpointError otherwise."""
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: `{key}` must be a JSON object. Received: {shown(value)}.")
    return value


def check_one_of(path: Path, key: str, value: object, allowed: Sequence[Any], cure: str = "") -> Any:
    """The value of a key, if it is one of the allowed ones; CheckpointError otherwise. True is not 1 here."""
    if not any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in allowed):
        rule = repr(allowed[0]) if len(allowed) == 1 else f"one of {list(allowed)}"
        rule = rule if len(rule) <= _LONGEST_RULE else f"{rule[:_LONGEST_RULE]}..."
        raise CheckpointError(f"{path}: `{key}` must be {rule}. Received: {shown(value)}. {cure}".rstrip())
    return value


def check_known(path: Path, values: Mapping[str, Any], known: Collection[str]) -> None:
    """CheckpointError for a key that is not among `known`."""
    for key, value in values.items():
        if key not in known:
            raise CheckpointError(f"{path}: `{key}` must be a known key. Received: {key}={shown(value)}.")


def is_added_token(token: Any) -> bool:
    """Whether a value is the object of an added token, by its content and its id."""
    is_named = isinstance(token, dict) and isinstance(token.get("content", ""), str)
    return is_named and isinstance(token.get("id") or 0, int)


def is_file_name(value: object) -> bool:
    """Whether a value is "" or a valid file name without folders, so that it cannot lead out of the directory."""
    if not isinstance(value, str) or len(value.encode(errors="replace")) > _MAX_NAME_BYTES:
        return False
    return Path(value).name == value != ".." and "\\" not in value and "\0" not in value


def optional_json(path: Path) -> dict[str, Any]:
    """Reads a JSON file that holds an object; returns an empty one if there is no such file."""
    return read_json_object(path) if is_there(path) else {}


def write_json(path: Path, value: object) -> None:
    """Writes a value as UTF-8 JSON, indented by two spaces, with a newline at the end."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    path.write_bytes(f"{text}\n".encode())


def shown(value: object) -> str:
    """Returns the `repr` of a value from a file, shortened if it is long.

    Examples:
        >>> shown([0, "a"])
        "[0, 'a']"
        >>> len(shown(["x" * 1000] * 1000)) < 1000
        True
    """
    return _shown.repr(value)


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(MAX_JSON_DEPTH):
        inner = [part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list)]
        level = [part for parts in inner for part in parts if isinstance(part, dict | list)]
    return bool(level)
