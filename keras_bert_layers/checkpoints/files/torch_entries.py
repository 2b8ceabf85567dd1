"""`weights_entry`: finds the tensors of a model among what a training loop saved with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError

# The depth of {"checkpoint": {"model": {...}}}.
_MAX_DEPTH = 3
_NAMES_IN_AN_ERROR = 8
# Every encoder of this package's layouts has this tensor, and optimizers and losses do not.
_SIGN = "word_embeddings.weight"


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
        last = models[0].path or models[1].path
        raise CheckpointError(
            f"{path}: must hold one model. Found: the weights of {len(models)}, in the entries {names}. Save the one "
            f"that you want alone: torch.save(torch.load(FILE, weights_only=True){_subscript(last)}, NEW_FILE)."
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


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _subscript(path: str) -> str:
    return "".join(f"[{key!r}]" for key in path.split("/"))
