"""What the tests of files share."""

import pytest

from keras_bert_layers.checkpoints.files.tensor_file import TensorInfo


class Arrays:
    """Arrays in memory as a `TensorFile`."""

    def __init__(self, arrays):
        self.arrays = arrays
        self.infos = {name: TensorInfo("F32", array.shape) for name, array in arrays.items()}

    def read(self, name):
        return self.arrays[name]


@pytest.fixture(scope="session")
def in_memory():
    """A function that makes a `TensorFile` of arrays."""
    return Arrays
