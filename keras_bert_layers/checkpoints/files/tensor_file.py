"""`TensorFile`: the interface of all readers of stored tensors, and the checks that they share."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError

STORED_DTYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8"}
"""The dtypes that a weight may be stored in, and NumPy's dtype for their bytes."""
FLOAT_DTYPES = tuple(STORED_DTYPES)
DAMAGED_CURE = "Download or copy the file again and compare its size and checksum."

# https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md: the first line, and the largest size of a pointer.
_POINTER_LINE = b"version https://git-lfs.github.com/spec/"
_MAX_POINTER_BYTES = 1024


class TensorInfo(NamedTuple):
    """The dtype and the shape of a stored tensor, known before its values are read.

    Args:
        dtype: the dtype by its name in safetensors: `"F32"`, `"F16"`, `"BF16"`, `"F64"`, `"I64"`, ...
        shape: the shape as stored.
    """

    dtype: str
    shape: tuple[int, ...]


def stored_dtype(path: object, name: str, dtype: str) -> np.dtype:
    """NumPy's dtype for the bytes of a tensor; CheckpointError for a dtype that a weight may not be stored in."""
    if dtype not in STORED_DTYPES:
        raise CheckpointError(
            f"{path}: tensor {name!r} must hold floats, one of {FLOAT_DTYPES}. Received: {dtype}. "
            "Quantised checkpoints cannot be read."
        )
    return np.dtype(STORED_DTYPES[dtype])


def to_float32(array: np.ndarray, dtype: str) -> np.ndarray:
    """Converts a stored array to float32; float16 and bfloat16 without loss."""
    if dtype == "BF16":  # the upper half of a float32
        array = (array.view("<u2").astype("<u4") << 16).view("<f4")
    with np.errstate(over="ignore"):  # a float64 too large becomes infinity, which loading refuses
        return array.astype(np.float32, copy=False)


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
        if path.stat().st_size > _MAX_POINTER_BYTES:
            return
        with path.open("rb") as file:
            start = file.read(len(_POINTER_LINE))
    except OSError:
        return
    if start == _POINTER_LINE:
        raise CheckpointError(
            f"{path}: must be the file itself. Found: a git-lfs pointer to it. "
            "Run `git lfs install && git lfs pull` in the clone."
        )


class TensorFile(Protocol):
    """Named tensors that are read one at a time, so that a checkpoint is never in memory twice."""

    @property
    def infos(self) -> Mapping[str, TensorInfo]:
        """Dtype and shape of each tensor, by its stored name."""
        ...

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor of a float dtype, in its stored shape, as float32.

        float16 and bfloat16 are converted without loss. CheckpointError if the dtype is not a float or the tensor is
        damaged.
        """
        ...


def read_into(tensors: TensorFile, name: str, place: np.ndarray) -> None:
    """Reads one tensor into a float32 array of its shape, without an array in between if the file's reader can.

    Memory that is touched for the first time costs more than the reading.

    Args:
        tensors: the file; its method `read_into`, if it has one, takes the other arguments.
        name: the stored name.
        place: the array.

    Raises:
        CheckpointError: as `TensorFile.read`.
    """
    if reader := getattr(tensors, "read_into", None):
        reader(name, place)
    else:
        place[...] = tensors.read(name)
