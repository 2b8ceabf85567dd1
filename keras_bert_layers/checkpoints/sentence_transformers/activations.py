"""The activations that sentence-transformers writes as import paths of torch's classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files.json_file import shown

# Dense and CrossEncoder of sentence-transformers write the import path of a class of torch.nn; these are its last part.
ACTIVATIONS = {
    **{name: name.lower() for name in ("Tanh", "ReLU", "ReLU6", "SiLU", "Mish", "Sigmoid")},
    **{"Identity": "linear", "GELU": "gelu_erf"},
}


def read_activation(path: Path, key: str, value: Any) -> str:
    """Our name of an activation; CheckpointError, with the value, for one that is not implemented.

    Args:
        path: the file, for errors.
        key: the key in it.
        value: the import path, such as `"torch.nn.modules.activation.Tanh"`.
    """
    name = value.rpartition(".")[2] if isinstance(value, str) and value.startswith("torch.") else None
    if name not in ACTIVATIONS:
        raise CheckpointError(
            f"{path}: `{key}` must be one of torch.nn's {list(ACTIVATIONS)}. Received: {shown(value)}. "
            "Load the encoder with `load_backbone`, and add the rest in Keras."
        )
    return ACTIVATIONS[name]


def written_activation(activation: str) -> str:
    """The import path of one of the values of `ACTIVATIONS`."""
    (name,) = (theirs for theirs, ours in ACTIVATIONS.items() if ours == activation)
    return f"torch.nn.modules.{'linear' if name == 'Identity' else 'activation'}.{name}"
