"""`TorchFile`: the tensors of a `pytorch_model.bin`, read without running code from the pickle."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, damaged
from keras_bert_layers.checkpoints.files.tensor_file import TensorInfo, stored_dtype

# Before 2.6 a prepared file could run code with weights_only=True too: CVE-2025-32434.
SAFE_TORCH = (2, 6)

CONVERT = (
    "Use a checkpoint with model.safetensors, which holds tensors only; or make one where torch and transformers "
    'are installed: AutoModel.from_pretrained("DIRECTORY").save_pretrained("NEW_DIRECTORY").'
)

_DTYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float64": "F64", "int64": "I64"}


class TorchFile:
    """The tensors of a `pytorch_model.bin`.

    The file is a Python pickle, and an ordinary unpickler runs any program that its author put in. So it is read with
    `torch.load(weights_only=True)` only, which builds tensors and refuses everything else. torch must be installed;
    this package does not depend on it.

    Args:
        path: the file.

    Raises:
        CheckpointError: torch is not installed or too old to be safe; the file is damaged, or holds more than tensors.
    """

    def __init__(self, path: Path):
        self.path = path
        self._tensors = _load(path)
        self.infos = {name: self._info(name, tensor) for name, tensor in self._tensors.items()}

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor of a float dtype as float32; see `TensorFile.read`."""
        stored_dtype(self.path, name, self.infos[name].dtype)
        return self._tensors[name].detach().float().numpy()

    def _info(self, name: str, tensor: Any) -> TensorInfo:
        if not hasattr(tensor, "dtype") or not hasattr(tensor, "shape"):
            raise CheckpointError(
                f"{self.path}: {name!r} must be a tensor. Received: {type(tensor).__name__}. {CONVERT}"
            )
        dtype = str(tensor.dtype).removeprefix("torch.")
        return TensorInfo(_DTYPES.get(dtype, dtype), tuple(tensor.shape))


def _load(path: Path) -> dict[str, Any]:
    """The pickled dictionary of tensors."""
    torch = _safe_torch(path)
    # Mapped if the format allows it (a zip, since torch 1.6): the checkpoint is not in memory twice.
    mapped = zipfile.is_zipfile(path)
    what = f"{path}: torch.load(weights_only=True) refuses this file: it is damaged or holds more than tensors"
    kinds = (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, AttributeError)
    with damaged(what, kinds, CONVERT):
        tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    if not isinstance(tensors, dict):
        raise CheckpointError(
            f"{path}: must hold a dictionary of tensors. Received: {type(tensors).__name__}. {CONVERT}"
        )
    return tensors


def _safe_torch(path: Path) -> Any:
    """The module torch; CheckpointError if it is not installed or does not read a hostile file safely."""
    try:
        import torch
    except ModuleNotFoundError as error:
        raise CheckpointError(
            f"{path}: this file is a pickle, which can run any program; it is read with "
            f"torch.load(weights_only=True) only, and torch is not installed. {CONVERT}"
        ) from error
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < SAFE_TORCH:
        raise CheckpointError(
            f"{path}: this file is a pickle; torch older than 2.6 runs code from it even with weights_only=True. "
            f"Received: torch {torch.__version__}. {CONVERT}"
        )
    return torch
