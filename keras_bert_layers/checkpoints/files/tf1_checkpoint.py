"""`Tf1Checkpoint`: the tensors of a TensorFlow checkpoint, read one at a time and without TensorFlow."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, naming
from keras_bert_layers.checkpoints.files.bundle_index import BundleEntry, index_bytes, read_index
from keras_bert_layers.checkpoints.files.crc32c import masked_crc32c
from keras_bert_layers.checkpoints.files.index_table import DAMAGED_CURE
from keras_bert_layers.checkpoints.files.lfs_pointer import check_not_pointer
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile, TensorInfo, stored_dtype, to_float32


class Tf1Checkpoint:
    """The tensors of a TensorFlow checkpoint, as `tf.train.Saver` writes it. Every BERT by Google is one.

    A checkpoint is a prefix, such as `bert_model.ckpt`, and files that begin with it: `.index` gives the dtype, shape
    and position of each tensor, and `.data-00000-of-00001` (or several) the values, one tensor after another. Opening
    reads the index and checks its checksums and the files' sizes. Values are read by `read` only, which checks the
    checksum of the tensor. The `.meta` file, a graph, is not read.

    TensorFlow is not needed, so Google's checkpoints load with every backend of Keras, and an error about a damaged
    file names it.

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
        check_not_pointer(self.path)
        with naming(self.path):
            self._num_shards, self._entries = read_index(self.path)
        self._check_sizes()
        self.infos = {name: entry.info for name, entry in self._entries.items()}

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor of a float dtype as float32; see `TensorFile.read`."""
        entry = self._entries[name]
        dtype, shape = entry.info
        path = data_path(self._prefix, entry.shard, self._num_shards)
        stored = stored_dtype(path, name, dtype)
        count = entry.size // stored.itemsize
        with naming(path):
            array = np.fromfile(path, dtype=stored, count=count, offset=entry.offset)
        if array.size != count or masked_crc32c(array) != entry.crc:
            raise CheckpointError(f"{path}: tensor {name!r} is damaged: its checksum is wrong. {DAMAGED_CURE}")
        return to_float32(array, dtype).reshape(shape)

    def _check_sizes(self) -> None:
        """Checks that every data file exists and is long enough for its tensors."""
        ends: dict[int, int] = {}
        for entry in self._entries.values():
            ends[entry.shard] = max(ends.get(entry.shard, 0), entry.offset + entry.size)
        for shard, end in sorted(ends.items()):
            path = data_path(self._prefix, shard, self._num_shards)
            with naming(path):
                size = path.stat().st_size
            if size < end:
                check_not_pointer(path)
                raise CheckpointError(
                    f"{path}: the file is truncated: it must have {end} bytes. Received: {size} bytes. {DAMAGED_CURE}"
                )


def write_tf1_checkpoint(prefix: Path, tensors: TensorFile) -> None:
    """Writes tensors as a TensorFlow checkpoint with one data file, like Google's releases.

    One tensor is in memory at a time. The bytes depend on the tensors alone, and are those that `tf.train.Saver`
    writes for the same names and values.

    Args:
        prefix: the path without `.index`; existing files are replaced.
        tensors: the tensors; names are kept, values are stored as float32.

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
    """A checksum of a checkpoint's names and values: its index holds the checksum of each tensor.

    Raises:
        CheckpointError: the index is missing or cannot be read.
    """
    path = index_path(prefix)
    with naming(path):
        return masked_crc32c(path.read_bytes())


def index_path(prefix: Path) -> Path:
    """The file with the position of each tensor."""
    return prefix.with_name(f"{prefix.name}.index")


def data_path(prefix: Path, shard: int, num_shards: int) -> Path:
    """A data file."""
    return prefix.with_name(f"{prefix.name}.data-{shard:05}-of-{num_shards:05}")
