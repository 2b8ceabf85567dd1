"""The model card of an exported model: a JSON file in the folder of its SavedModel."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any

import keras

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.export._operations import nodes_of

CARD_FILE = "model_card.json"
_WEIGHTS = Path("variables") / "variables.data-00000-of-00001"
_PACKAGES = ("keras-bert-layers", "keras", "tensorflow", "tensorflow-text")


def read_model_card(path: str | PathLike[str]) -> dict[str, Any]:
    """Reads the model card of an export: task and labels, tokenizer, sizes, signatures, hashes and versions.

    To compare two exports, compare their cards: equal `"weights_sha256"` means equal weights, equal `"graph_sha256"`
    equal operations and constants, the tables of the tokenizer among them. Another version of TensorFlow or Keras may
    write other operations for the same model; see `"packages"`.

    Args:
        path: the folder of a SavedModel that `task.export` or `write_saved_model` wrote.

    Returns:
        The content of its `model_card.json`.

        For every model:

        - `"signatures"`: name -> `"inputs"` and `"outputs"`, each name -> `"dtype"` and `"shape"`; an axis of any size
          is None;
        - `"weights_sha256"`: the hash of the file of weights, as `sha256sum` prints it;
        - `"graph_sha256"`: the hash of all operations of the graph, with their attributes and constants;
        - `"oldest_tensorflow_serving"`: the first version that has all operations of the graph;
        - `"packages"`: the versions of the packages that wrote it.

        For a task also:

        - `"task"`: its class; `"options"`: its constructor's arguments, labels among them; `"backbone"`: its config;
          `"dtype"`;
        - with a preprocessor, `"preprocessing"`: `"max_length"` in tokens, `"max_bytes"` of a text that are read (None
          for all of them), `"vocabulary_size"`, `"vocabulary_sha256"` and the tokenizer's arguments.

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
    path = Path(path) / CARD_FILE
    if not path.is_file():
        raise FileNotFoundError(
            "`read_model_card`: `path` must be a SavedModel that this package wrote. "
            f"Received: path={str(path.parent)!r}, which holds no {CARD_FILE}."
        )
    card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return card


def write_model_card(folder: Path, facts: Mapping[str, Any], saved: Any, serving_version: str) -> None:
    """Writes the model card of a SavedModel.

    Args:
        folder: the folder of the SavedModel.
        facts: further entries of the card.
        saved: the `SavedModel` message.
        serving_version: the oldest TensorFlow Serving that can run it.
    """
    card = {
        **facts,
        "signatures": {
            name: {"inputs": _tensors(signature.inputs), "outputs": _tensors(signature.outputs)}
            for name, signature in saved.meta_graphs[0].signature_def.items()
            if not name.startswith("__")
        },
        "graph_sha256": hashlib.sha256(b"".join(sorted(map(_operation, nodes_of(saved))))).hexdigest(),
        "oldest_tensorflow_serving": serving_version,
        "packages": {name: _version(name) for name in _PACKAGES},
    }
    write_with_weights(folder, card)


def write_with_weights(folder: Path, card: Mapping[str, Any]) -> None:
    """Writes a model card, with the hash of the weights in the folder."""
    card = {**card, "weights_sha256": _hash_of_file(folder / _WEIGHTS)}
    content = json.dumps(card, indent=2, sort_keys=True, ensure_ascii=False)
    (folder / CARD_FILE).write_text(content + "\n", encoding="utf-8")


def _tensors(tensors: Any) -> dict[str, Any]:
    return {
        name: {
            "dtype": tf.as_dtype(tensor.dtype).name,
            "shape": [None if dim.size < 0 else dim.size for dim in tensor.tensor_shape.dim],
        }
        for name, tensor in tensors.items()
    }


def _hash_of_file(path: Path) -> str | None:
    """The SHA-256 of a file; None for a model without weights."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _operation(node: Any) -> bytes:
    """An operation and its attributes as bytes, equal in every process.

    TensorFlow writes the same graph differently each time: names hold a count of what the process traced before. So
    names are left out, and the attributes that hold names or settings of this machine; the hash sorts the operations.
    """
    parts = [re.sub(r"_\d+$", "", node.op).encode()]
    for name, value in sorted(node.attr.items()):
        is_name = value.HasField("func") or value.list.func or name in ("shared_name", "container", "config_proto")
        if not is_name and not name.startswith("_"):
            parts += [name.encode(), value.SerializeToString(deterministic=True)]
    return b"\0".join(parts)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return str(keras.__version__) if package == "keras" else None
