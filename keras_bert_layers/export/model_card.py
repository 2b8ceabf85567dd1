"""What an exported model is, beside it in a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any

import keras

from keras_bert_layers._internal.lazy import tf

_FILE = "model_card.json"
_WEIGHTS = Path("variables") / "variables.data-00000-of-00001"
_PACKAGES = ("keras-bert-layers", "keras", "tensorflow", "tensorflow-text")


def read_model_card(path: str | PathLike[str]) -> dict[str, Any]:
    """What an exported model is: its task and labels, tokenizer, sizes, signatures, and what made it.

    Args:
        path: the folder of a SavedModel that `task.export` or `write_saved_model` wrote.

    Returns:
        The content of its `model_card.json`:

        - of every model: `"signatures"`, name -> `"inputs"` and `"outputs"`, each name -> `"dtype"` and `"shape"`, an
          axis of any size being None; `"weights_sha256"`, the hash of the file of weights;
          `"oldest_tensorflow_serving"`, the first that has all operations of the graph; `"packages"`, the versions of
          what wrote it;
        - of a task besides: `"task"`, its class; `"options"`, its constructor's arguments, labels among them;
          `"backbone"`, its config; `"dtype"`; and, with a preprocessor, `"preprocessing"`: `"max_length"`,
          `"max_bytes"`, `"vocabulary_size"`, `"vocabulary_sha256"`, and the tokenizer's arguments.

    Raises:
        FileNotFoundError: there is no such file.

    Examples:
        >>> import tempfile, keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=7, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> folder = tempfile.mkdtemp()
        >>> exported = kbl.BertClassifier(kbl.BertBackbone(config), 3).export(folder)
        >>> card = read_model_card(exported)
        >>> card["task"], card["signatures"]["token_ids"]["outputs"]["logits"]
        ('BertClassifier', {'dtype': 'float32', 'shape': [None, 3]})
    """
    path = Path(path) / _FILE
    if not path.is_file():
        raise FileNotFoundError(
            "`read_model_card`: `path` must be a SavedModel that this package wrote. "
            f"Received: path={str(path.parent)!r}, which holds no {_FILE}."
        )
    card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return card


def write_model_card(folder: Path, facts: Mapping[str, Any], saved: Any, serving_version: str) -> None:
    """Writes the card of a SavedModel beside it.

    Args:
        folder: where it is.
        facts: what is known of the model but its graph.
        saved: its `SavedModel` message.
        serving_version: the oldest TensorFlow Serving that can run it.
    """
    card = {
        **facts,
        "signatures": {
            name: {
                "inputs": _tensors(signature.inputs),
                "outputs": _tensors(signature.outputs),
            }
            for name, signature in saved.meta_graphs[0].signature_def.items()
            if not name.startswith("__")
        },
        "weights_sha256": _hash_of(folder / _WEIGHTS),
        "oldest_tensorflow_serving": serving_version,
        "packages": {name: _version(name) for name in _PACKAGES},
    }
    content = json.dumps(card, indent=2, sort_keys=True, ensure_ascii=False)
    (folder / _FILE).write_text(content + "\n", encoding="utf-8")


def _tensors(tensors: Any) -> dict[str, Any]:
    return {
        name: {
            "dtype": tf.as_dtype(tensor.dtype).name,
            "shape": [None if dim.size < 0 else dim.size for dim in tensor.tensor_shape.dim],
        }
        for name, tensor in tensors.items()
    }


def _hash_of(path: Path) -> str | None:
    """SHA-256 as `sha256sum` prints it; None where a model has no weights."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return str(keras.__version__) if package == "keras" else None
