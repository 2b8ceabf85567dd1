"""`TorchFile`: the tensors of a `pytorch_model.bin`, read without running code from the pickle."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, damaged, first_names
from keras_bert_layers.checkpoints.files.lfs_pointer import check_not_pointer
from keras_bert_layers.checkpoints.files.tensor_file import TensorInfo, stored_dtype
from keras_bert_layers.checkpoints.files.torch_entries import weights_entry

# Before 2.6 a prepared file could run code with weights_only=True too: CVE-2025-32434.
SAFE_TORCH = (2, 6)

CONVERT = (
    "Use a checkpoint with model.safetensors, which holds tensors only; or make one where torch and transformers are "
    'installed: CLASS.from_pretrained("DIRECTORY").save_pretrained("NEW_DIRECTORY"), where CLASS is what '
    "`architectures` in config.json names (AutoModel would drop the head), and the same with AutoTokenizer."
)
_SAVE_AGAIN = (
    "If you wrote the file yourself, save the tensors alone: "
    'torch.save(torch.load(FILE, weights_only=False)["state_dict"], NEW_FILE).'
)

_DTYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float64": "F64", "int64": "I64"}
_NAMES_IN_A_NOTE = 8


class TorchFile:
    """The tensors of a `pytorch_model.bin`, or of what a training loop saved with `torch.save`.

    The file is a Python pickle, and an ordinary unpickler runs any program that its author put in. So it is read with
    `torch.load(weights_only=True)` only, which builds tensors and refuses everything else. torch must be installed;
    this package does not depend on it. `notes` names the entry with the weights and what is beside them, if the file
    holds more than tensors; see `weights_entry`.

    Args:
        path: the file.

    Raises:
        CheckpointError: torch is not installed or too old to be safe; the file is damaged, holds objects of other
            classes, no tensors or the weights of several models.
    """

    def __init__(self, path: Path):
        self.path = path
        check_not_pointer(path)
        entry = weights_entry(path, _load(path))
        self._tensors = entry.tensors
        self.infos = {name: _info(tensor) for name, tensor in entry.tensors.items()}
        self.notes: list[str] = []
        if entry.path:
            self.notes.append(f"the weights are the entry {entry.path!r} of {path.name}")
        if entry.others:
            self.notes.append(f"not read beside the weights: {first_names(entry.others, _NAMES_IN_A_NOTE)}")

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor of a float dtype as float32; see `TensorFile.read`."""
        stored_dtype(self.path, name, self.infos[name].dtype)
        return self._tensors[name].detach().float().numpy()


def _info(tensor: Any) -> TensorInfo:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return TensorInfo(_DTYPES.get(dtype, dtype), tuple(tensor.shape))


def _load(path: Path) -> Any:
    """The pickled dictionary."""
    torch = _safe_torch(path)
    # Mapped if the format allows it (a zip, since torch 1.6): the checkpoint is not in memory twice.
    mapped = zipfile.is_zipfile(path)
    what = f"{path}: torch.load(weights_only=True) refuses this file: it is damaged or holds objects of other classes"
    kinds = (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, AttributeError)
    with damaged(what, kinds, _SAVE_AGAIN):
        return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)


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
