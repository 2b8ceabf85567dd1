"""`Tf1Checkpoint`: the tensors of a TensorFlow checkpoint, read one at a time and without TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from keras_bert_layers.checkpoints.bundle_index import STORED_DTYPES, BundleEntry, index_bytes, read_index
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.crc32c import masked_crc32c
from keras_bert_layers.checkpoints.index_table import DAMAGED_CURE
from keras_bert_layers.checkpoints.tensor_file import FLOAT_DTYPES, TensorFile, TensorInfo

_Result = TypeVar("_Result")


class Tf1Checkpoint:
    """The tensors of a TensorFlow checkpoint, as `tf.train.Saver` writes it and every BERT by Google has it.

    A checkpoint is a prefix, such as `bert_model.ckpt`, and files that begin with it: `.index` gives each tensor's
    dtype, shape and place, and `.data-00000-of-00001` (or several) the numbers, one tensor behind the other. Opening
    reads the index and compares it with its checksums and with the files' sizes. Numbers are read by `read` only, which
    compares each tensor's checksum. The `.meta` file, a graph, is not looked at.

    The format is read here and not by TensorFlow: Google's checkpoints load under every backend of Keras, and what is
    damaged ends in an error that names the file.

    Args:
        prefix: the path without `.index`.

    Raises:
        CheckpointError: a file is missing, truncated or damaged, or holds variables in parts.

    Examples:
        >>> import tempfile, pathlib
        >>> prefix = pathlib.Path(tempfile.mkdtemp(), "bert_model.ckpt")
        >>> class Ones:
        ...     infos = {"bert/pooler/dense/bias": TensorInfo("F32", (3,))}
        ...     def read(self, name):
        ...         return np.ones(3, "float32")
        >>> write_tf1_checkpoint(prefix, Ones())
        >>> checkpoint = Tf1Checkpoint(prefix)
        >>> checkpoint.infos
        {'bert/pooler/dense/bias': TensorInfo(dtype='F32', shape=(3,))}
        >>> checkpoint.read("bert/pooler/dense/bias")
        array([1., 1., 1.], dtype=float32)

    References:
        tensorflow/core/util/tensor_bundle/tensor_bundle.h.
    """

    def __init__(self, prefix: Path):
        self.path = index_path(prefix)
        self._prefix = prefix
        self._num_shards, self._entries = _opened(self.path, read_index)
        self._check_sizes()
        self.infos = {name: entry.info for name, entry in self._entries.items()}

    def read(self, name: str) -> np.ndarray:
        """One tensor of a float format as float32.

        Args:
            name: a key of `infos` with a dtype in `FLOAT_DTYPES`.

        Returns:
            A float32 array of the stored shape. float16 and bfloat16 become float32 without loss.

        Raises:
            CheckpointError: the tensor is not of floats, or its numbers do not have the checksum that the index says.
        """
        entry = self._entries[name]
        dtype, shape = entry.info
        path = data_path(self._prefix, entry.shard, self._num_shards)
        if dtype not in FLOAT_DTYPES:
            raise CheckpointError(f"{path}: tensor {name!r} must be one of {FLOAT_DTYPES}. Received: {dtype}.")
        stored = np.dtype(STORED_DTYPES[dtype])
        count = entry.size // stored.itemsize
        array = _opened(path, lambda file: np.fromfile(file, dtype=stored, count=count, offset=entry.offset))
        if array.size != count or masked_crc32c(array) != entry.crc:
            raise CheckpointError(f"{path}: tensor {name!r} is damaged: its checksum is wrong. {DAMAGED_CURE}")
        if dtype == "BF16":  # the upper half of a float32
            array = (array.astype("<u4") << 16).view("<f4")
        return array.astype(np.float32, copy=False).reshape(shape)

    def _check_sizes(self) -> None:
        """Every file of numbers is there, and long enough for the tensors in it."""
        ends: dict[int, int] = {}
        for entry in self._entries.values():
            ends[entry.shard] = max(ends.get(entry.shard, 0), entry.offset + entry.size)
        for shard, end in sorted(ends.items()):
            path = data_path(self._prefix, shard, self._num_shards)
            size = _opened(path, os.path.getsize)
            if size < end:
                raise CheckpointError(
                    f"{path}: the file is truncated: it must have {end} bytes. Received: {size} bytes. {DAMAGED_CURE}"
                )


def write_tf1_checkpoint(prefix: Path, tensors: TensorFile) -> None:
    """Writes tensors as a TensorFlow checkpoint with one file of numbers, as Google's releases have it.

    One tensor is in memory at a time. The bytes depend on the tensors alone, and are those that `tf.train.Saver`
    writes for the same names and numbers.

    Args:
        prefix: the path without `.index`; files that are there are replaced.
        tensors: what to write; the names stay, the numbers are stored as float32.

    Raises:
        OSError: a file cannot be written.
    """
    entries: dict[str, BundleEntry] = {}
    with data_path(prefix, 0, 1).open("wb") as file:
        for name in sorted(tensors.infos, key=str.encode):
            shape = tensors.infos[name].shape
            array = np.ascontiguousarray(tensors.read(name), dtype="<f4")
            entries[name] = BundleEntry(
                TensorInfo("F32", shape), 0, offset=file.tell(), size=array.nbytes, crc=masked_crc32c(array)
            )
            file.write(array.data)
    index_path(prefix).write_bytes(index_bytes(entries))


def index_checksum(prefix: Path) -> int:
    """A number that stands for a checkpoint's names and numbers: the index holds the checksum of each tensor.

    Raises:
        CheckpointError: the index is missing or cannot be read.
    """
    return _opened(index_path(prefix), lambda path: masked_crc32c(path.read_bytes()))


def index_path(prefix: Path) -> Path:
    """The file that says where each tensor is."""
    return prefix.with_name(f"{prefix.name}.index")


def data_path(prefix: Path, shard: int, num_shards: int) -> Path:
    """A file of numbers."""
    return prefix.with_name(f"{prefix.name}.data-{shard:05}-of-{num_shards:05}")


def _opened(path: Path, read: Callable[[Path], _Result]) -> _Result:
    """What `read` gives for a file; errors name it."""
    try:
        return read(path)
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: the file is missing. Copy all files of the checkpoint.") from error
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}.") from error
