"""The one error of everything that is wrong with a checkpoint's files."""

from __future__ import annotations


class CheckpointError(ValueError):
    """A checkpoint cannot be read: a file is missing, damaged, or says what this package does not implement.

    The text names the file and, where there is one, the tensor or key; it says what was expected, what was found and
    what to do. It is a `ValueError`, so that code that does not know this class still catches it.

    Examples:
        >>> from keras_bert_layers.checkpoints import CheckpointError, load_backbone
        >>> try:
        ...     load_backbone("no/such/directory")
        ... except CheckpointError as error:
        ...     print(str(error).partition(" Received")[0])
        `load_backbone`: `source` must be an existing directory.
    """
