"""`read_keras_file`: loads the model of a `.keras` file without running code from it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, damaged
from keras_bert_layers.checkpoints.files.json_file import MAX_JSON_BYTES, check_parts

if TYPE_CHECKING:
    import keras

# Keras stores without compression, and trained weights hardly compress; zeros compress to a thousandth.
MAX_RATIO = 50
MAX_SMALL_BYTES = 1024 * 1024

# Keras's names for the code of a `Lambda`, and for the layer that unpickles a module of torch.
_PROGRAMS = ("__lambda__", "TorchModuleWrapper")

# Keras's name for the weights in the archive. None takes less than four bits, under Keras's int4.
_WEIGHTS = "model.weights.h5"
_WEIGHTS_A_BYTE = 2
# HDF5's own entries for the 16 arrays of an encoder block; in Keras's files they take some ten times as much.
_BLOCK_BYTES = 16 * 256
# Far above the 24 layers of the released models with a shared block.
_MOST_CALLS = 1000

_MAX_REASON = 400
_DISTRUST = "Do not trust this file."


def read_keras_file(path: Path) -> keras.Model:
    """Loads the model that `model.save("x.keras")` wrote.

    The archive is checked before Keras reads it: no entry is outside the archive's own folder, occurs twice, or grows
    to many times its size, and no layer is a program, even if `keras.config.enable_unsafe_deserialization` would let it
    run. Then Keras loads it in safe mode: only classes of Keras and registered ones, and no weights from another file.

    Args:
        path: the file.

    Raises:
        CheckpointError: the file is damaged or hostile, or Keras refuses it in safe mode.

    References:
        `keras.models.load_model`; the archives that grow without bounds in Fifield 2019, "A better zip bomb".
    """
    import keras  # `inspect` looks at archives without it

    from keras_bert_layers.layers.initializers import replaced_weights

    check_archive(path)
    _check_config(path)
    try:
        with replaced_weights():
            return keras.models.load_model(path, safe_mode=True)
    except Exception as error:  # Keras's, h5py's and our classes' own, of many kinds
        raise CheckpointError(f"{path}: Keras refuses this file: {reason_of(error)}") from error


def check_archive(path: Path) -> None:
    """Raises CheckpointError if a `.keras` file is not an archive, or one that would do harm when it is read."""
    kinds, cure = (zipfile.BadZipFile, OSError, NotImplementedError, ValueError), "Copy it again and compare its size."
    with damaged(f"{path} is not a complete .keras file", kinds, cure), zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
    seen: set[str] = set()
    for entry in entries:
        name = PurePosixPath(entry.filename)
        if name.is_absolute() or ".." in name.parts or "\\" in entry.filename or ":" in entry.filename:
            raise CheckpointError(f"{path}: {entry.filename!r} must be inside the archive. {_DISTRUST}")
        if entry.filename in seen:
            raise CheckpointError(f"{path}: {entry.filename!r} must be in the archive once. {_DISTRUST}")
        seen.add(entry.filename)
        most = max(MAX_SMALL_BYTES, MAX_RATIO * entry.compress_size)
        if name.suffix == ".json":
            most = min(most, MAX_JSON_BYTES)
        if entry.file_size > most:
            raise CheckpointError(
                f"{path}: {entry.filename!r} must take at most {most} bytes. Received: {entry.file_size}, and "
                f"{entry.compress_size} in the archive. {_DISTRUST}"
            )
    if sum(entry.compress_size for entry in entries) > path.stat().st_size:
        raise CheckpointError(f"{path}: entries of the archive must not overlap. {_DISTRUST}")


def _check_config(path: Path) -> None:
    """Refuses programs, which a Lambda or a pickled module of torch is, and a model larger than its weights."""
    what, kinds = f"{path}: must hold a config.json that can be read", (zipfile.BadZipFile, ValueError, RecursionError)
    with damaged(what, (*kinds, KeyError)), zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".json"):  # Keras reads metadata.json too
                check_parts(f"{path}: {name}", archive.read(name))
        config = json.loads(archive.read("config.json"))
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    check_model_config(f"{path}: config.json", config, sizes.get(_WEIGHTS, 0))


def check_model_config(name: str, config: Any, stored: int) -> None:
    """CheckpointError for a serialized model that holds a program, or claims more weights than are stored.

    Args:
        name: the file, for errors.
        config: its content.
        stored: how many bytes the weights take.
    """
    left = [config]
    while left:
        part = left.pop()
        if isinstance(part, dict) and part.get("class_name") in _PROGRAMS:
            kind = part["class_name"]
            raise CheckpointError(f"{name} must not hold a program. Received: {kind!r}. {_DISTRUST}")
        if isinstance(part, dict) and _shares_block(part):
            part = {**part, "config": {**part["config"], "num_layers": 1}}
        if isinstance(part, dict) and (claimed := _claimed_bytes(part)) > stored:
            raise CheckpointError(
                f"{name} must describe the weights in the file. Received: a model that takes at least "
                f"{claimed:,} bytes, and {stored:,} bytes. {_DISTRUST}"
            )
        if isinstance(part, dict | list):
            left += part.values() if isinstance(part, dict) else part


def _shares_block(part: dict[str, Any]) -> bool:
    """Whether a part is the config of an encoder with one block for a number of layers that can be right."""
    own, parts = part.get("config"), part.get("parts")
    values = parts.get("config") if isinstance(parts, dict) else None
    if not isinstance(own, dict) or not isinstance(values, dict) or values.get("shares_block") is not True:
        return False
    return own.get("num_layers") in range(1, _MOST_CALLS)


def _claimed_bytes(part: dict[str, Any]) -> int:
    """The least bytes that the matrices and blocks of a part of a config take, before Keras makes room for them."""

    def size(key: str) -> int:
        value = part.get(key)
        return value if isinstance(value, int) and value > 0 else 0

    hidden = size("hidden_dim")
    rows = size("vocabulary_size") + size("max_sequence_length")
    layers = size("num_layers") * (4 * hidden + 2 * size("intermediate_dim")) * hidden
    heads = size("num_classes") + size("projection_dim")
    weights = rows * (size("embedding_dim") or hidden) + layers + heads
    return weights // _WEIGHTS_A_BYTE + size("num_layers") * _BLOCK_BYTES


def reason_of(error: Any) -> str:
    """The first of a chain of errors, in one line."""
    while (earlier := error.__cause__ or error.__context__) is not None and str(earlier):
        error = earlier
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:_MAX_REASON]}{'...' if len(text) > _MAX_REASON else ''}"
