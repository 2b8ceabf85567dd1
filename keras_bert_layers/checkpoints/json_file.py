"""JSON files of a checkpoint: read with errors that name the file, and written as transformers writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError

# The largest JSON file of a BERT is the tokenizer.json of 120,000 pieces, 3 MB.
MAX_JSON_BYTES = 64 * 1024 * 1024


def read_json(path: Path) -> Any:
    """The value that a JSON file holds.

    Args:
        path: the file.

    Returns:
        The value.

    Raises:
        CheckpointError: the file cannot be read, is larger than `MAX_JSON_BYTES`, or is not JSON.
    """
    try:
        size = path.stat().st_size
        if size > MAX_JSON_BYTES:
            raise CheckpointError(f"{path}: must take at most {MAX_JSON_BYTES} bytes. Received: {size} bytes.")
        return json.loads(path.read_bytes())
    except CheckpointError:
        raise
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: must be valid JSON. Received: {error}.") from error


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
