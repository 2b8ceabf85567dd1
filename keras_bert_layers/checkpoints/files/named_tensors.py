"""`NamedTensors`: the tensors of a file under other names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile, TensorInfo


class NamedTensors:
    """The tensors of a file under other names, as a `TensorFile`.

    Args:
        file: the file.
        names: another name -> the file's name.

    Examples:
        >>> class Ones:
        ...     infos = {"model.bias": TensorInfo("F32", (3,))}
        ...     def read(self, name):
        ...         return np.ones(3, "float32")
        >>> NamedTensors(Ones(), {"bias": "model.bias"}).read("bias")
        array([1., 1., 1.], dtype=float32)
    """

    def __init__(self, file: TensorFile, names: Mapping[str, str]):
        self._file = file
        self._names = names
        self.infos: dict[str, TensorInfo] = {name: file.infos[stored] for name, stored in names.items()}

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor of a float dtype as float32, in its stored shape."""
        return self._file.read(self._names[name])


def renamed(file: TensorFile, rename: Callable[[str], str], where: object) -> TensorFile:
    """The tensors of a file, each under its new name; the file itself if no name changes.

    Args:
        file: the file.
        rename: from a name in the file to the new one.
        where: the file, for errors.

    Raises:
        CheckpointError: two tensors would have the same name.
    """
    names: dict[str, str] = {}
    for stored in file.infos:
        name = rename(stored)
        if name in names:
            raise CheckpointError(
                f"{where}: must hold one model. Found: the tensors {names[name]!r} and {stored!r}, which are the same "
                "weight of two. Save the one that you want alone."
            )
        names[name] = stored
    return file if all(name == stored for name, stored in names.items()) else NamedTensors(file, names)
