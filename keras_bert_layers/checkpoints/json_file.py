"""JSON files of a checkpoint: read with errors that name the file, and written as transformers writes them."""

from __future__ import annotations

import json
import reprlib
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError

# The largest JSON file of a BERT is the tokenizer.json of LaBSE's 501,153 pieces, some 13 MB. The values of a hostile
# file take up to 30 times as much memory as the file.
MAX_JSON_BYTES = 32 * 1024 * 1024
# A tokenizer.json goes 6 levels deep. Beyond some 900, Python's own `repr` and `==` fail.
MAX_JSON_DEPTH = 64

_shown = reprlib.Repr()
_shown.maxstring = _shown.maxother = _shown.maxlong = 80
_shown.maxlist = _shown.maxdict = 8


def read_json(path: Path) -> Any:
    """The value that a JSON file holds.

    Args:
        path: the file.

    Returns:
        The value.

    Raises:
        CheckpointError: the file cannot be read, is larger than `MAX_JSON_BYTES`, is not JSON, or goes deeper than
            `MAX_JSON_DEPTH`.
    """
    try:
        size = path.stat().st_size
        if size > MAX_JSON_BYTES:
            raise CheckpointError(f"{path}: must take at most {MAX_JSON_BYTES} bytes. Received: {size} bytes.")
        value = json.loads(path.read_bytes())
    except CheckpointError:
        raise
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: must be valid JSON. Received: {error}.") from error
    if _is_deep(value):
        raise CheckpointError(f"{path}: must be valid JSON of at most {MAX_JSON_DEPTH} levels.")
    return value


def read_json_object(path: Path) -> dict[str, Any]:
    """The JSON object that a file holds; CheckpointError for anything else."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: must hold a JSON object. Received: a {type(value).__name__}.")
    return value


def write_json(path: Path, value: Any) -> None:
    """Writes a value as UTF-8 JSON, with two blanks a level and a line's end."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    path.write_bytes(f"{text}\n".encode())


def shown(value: Any) -> str:
    """`repr` of a value that came from a file, cut short where it is long.

    Examples:
        >>> shown([0, "a"])
        "[0, 'a']"
        >>> len(shown(["x" * 1000] * 1000)) < 1000
        True
    """
    return _shown.repr(value)


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_JSON_DEPTH):
        inner = [part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list)]
        level = [part for parts in inner for part in parts if isinstance(part, dict | list)]
    return bool(level)
