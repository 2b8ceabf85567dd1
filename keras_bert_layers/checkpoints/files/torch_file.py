"""Reads the tensors of a `pytorch_model.bin`, or of a training loop's checkpoint, without running code from it."""

import contextlib
import pickle
import pickletools
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, damaged, first_names
from keras_bert_layers.checkpoints.files.tensor_file import DAMAGED_CURE, TensorInfo, check_not_pointer, stored_dtype

# The depth of {"checkpoint": {"model": {...}}}.
_MAX_DEPTH = 3
_NAMES_IN_AN_ERROR = 8
# Every encoder of this package's layouts has this tensor, and optimizers and losses do not.
_SIGN = "word_embeddings.weight"

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
# BERT-large with its optimizer's state takes some 60,000; torch runs them in Python, 400,000 in a second.
_MAX_OPERATIONS = 1_000_000
# A file of torch before 1.6: a mark, a version, the system, the tensors and the order of their values.
_NUM_PICKLES = 5


class WeightsEntry(NamedTuple):
    """The tensors of a pickled dictionary.

    Args:
        path: the keys that lead to them, joined by "/"; "" for the dictionary itself.
        tensors: the tensors by name.
        others: the keys beside them, in the dictionaries on the way.
    """

    path: str
    tensors: dict[str, Any]
    others: tuple[str, ...]


def weights_entry(path: Path, content: Any) -> WeightsEntry:
    """Finds the tensors of a model in what `torch.load` returned.

    It is the dictionary of tensors that holds the word embeddings of an encoder; without any, the outermost one that
    holds tensors. Training loops save it as the entry `model`, `state_dict`, `model_state_dict` or `module`, beside
    numbers, texts and the state of the optimizer.

    Args:
        path: the file, for errors.
        content: the content of the file.

    Raises:
        CheckpointError: there are no tensors, or the tensors of several models.
    """
    if not isinstance(content, Mapping):
        raise CheckpointError(f"{path}: must hold a dictionary of tensors. Received: {type(content).__name__}.")
    found = [entry for entry in _entries(content, "", ()) if entry.tensors]
    models = [entry for entry in found if any(name.endswith(_SIGN) for name in entry.tensors)]
    if len(models) > 1:
        names = ", ".join(repr(entry.path) for entry in models)
        last = "".join(f"[{key!r}]" for key in (models[0].path or models[1].path).split("/"))
        raise CheckpointError(
            f"{path}: must hold one model. Found: the weights of {len(models)}, in the entries {names}. Save the one "
            f"that you want alone: torch.save(torch.load(FILE, weights_only=True){last}, NEW_FILE)."
        )
    if not found:
        keys = ", ".join(repr(key) for key in list(content)[:_NAMES_IN_AN_ERROR]) or "nothing"
        raise CheckpointError(f"{path}: must hold a dictionary of tensors. Found: {keys}.")
    return (models or found)[0]


def _entries(content: Mapping[Any, Any], path: str, others: tuple[str, ...]) -> Iterator[WeightsEntry]:
    """Every dictionary down to the deepest level, the outer ones first."""
    tensors = {name: value for name, value in content.items() if isinstance(name, str) and _is_tensor(value)}
    inner = {name: value for name, value in content.items() if isinstance(name, str) and isinstance(value, Mapping)}
    beside = tuple(str(name) for name in content if name not in tensors)
    yield WeightsEntry(path, tensors, (*others, *beside))
    if path.count("/") < _MAX_DEPTH - 1:
        for name, value in inner.items():
            siblings = tuple(str(other) for other in content if other != name)
            yield from _entries(value, f"{path}/{name}".lstrip("/"), (*others, *siblings))


def _is_tensor(value: object) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape")


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


def _info(tensor: Tensor) -> TensorInfo:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return TensorInfo(_DTYPES.get(dtype, dtype), tuple(tensor.shape))


def _load(path: Path) -> Any:
    """The pickled dictionary."""
    torch = _safe_torch(path)
    if not path.stat().st_size:
        raise CheckpointError(f"{path}: the file is empty. {DAMAGED_CURE}")
    if _num_operations(path) > _MAX_OPERATIONS:
        raise CheckpointError(f"{path}: its pickle must have at most {_MAX_OPERATIONS:,} operations. {_SAVE_AGAIN}")
    # Mapped if the format allows it (a zip, since torch 1.6): the checkpoint is not in memory twice.
    mapped = zipfile.is_zipfile(path)
    what = f"{path}: torch.load(weights_only=True) refuses this file: it is damaged or holds objects of other classes"
    kinds = (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, AttributeError)
    with damaged(what, kinds, _SAVE_AGAIN):
        return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)


def _num_operations(path: Path) -> int:
    """The operations of a file's pickles, counted without running them, up to the largest number and one."""
    count = 0
    with contextlib.suppress(Exception), contextlib.ExitStack() as stack:  # torch reports what is damaged
        streams: list[IO[bytes]] = []
        if zipfile.is_zipfile(path):
            archive = stack.enter_context(zipfile.ZipFile(path))
            streams += [archive.open(name) for name in archive.namelist() if name.endswith("data.pkl")]
        else:
            streams += [stack.enter_context(path.open("rb"))] * _NUM_PICKLES
        for stream in streams:
            for _ in pickletools.genops(stream):
                count += 1
                if count > _MAX_OPERATIONS:
                    return count
    return count


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
