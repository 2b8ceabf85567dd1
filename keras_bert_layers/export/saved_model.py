"""One SavedModel with named signatures, written whole or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers.export import _graph as graph
from keras_bert_layers.export import _operations as operations
from keras_bert_layers.export._batching import check_batches
from keras_bert_layers.export._versions import version_folder
from keras_bert_layers.export._warm_up import Requests, write_requests
from keras_bert_layers.export.model_card import write_model_card
from keras_bert_layers.export.signature import Signature


def write_saved_model(
    path: str | PathLike[str],
    signatures: Sequence[Signature],
    *,
    version: int | str | None = None,
    serving_version: str = operations.OLDEST_SERVER,
    warm_up: Requests | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Writes `signatures`, and the variables that they use, as a TensorFlow SavedModel.

    It is written beside its folder first and renamed when complete, so that nobody meets half a model. Before, it is
    checked: a server must have every operation of the graph, none may need Python or XLA, and every input and output
    must have the batch as its first axis, so that a server can put requests together. Equal models give equal bytes.

    Args:
        path: the folder to make. A SavedModel that is there already is replaced; anything else there is left alone and
            refused.
        signatures: at least one; the one named `"serving_default"` is what a client gets who names none.
        version: write to the folder `path/version`, as TensorFlow Serving wants it: a whole number that is not there
            yet, or `"next"` for one more than the largest.
        serving_version: the oldest TensorFlow Serving that has to run it, `"2.13"` to `"2.21"`.
        warm_up: signature -> requests, each a dictionary of input -> array, that TensorFlow Serving asks before it
            serves the model; one that fails keeps it from being served. At most 1,000.
        facts: what else `read_model_card` tells of the model; of what JSON can hold.

    Returns:
        The folder that holds the model.

    Raises:
        RuntimeError: Keras runs on a backend other than TensorFlow.
        ValueError: `path` names another machine, as `gs://` does; such a path would become a local folder `gs:`. An
            operation that the server does not have; a tensor without a batch.
        FileExistsError: `path` is a file, or a folder that is not a SavedModel; the version is there.
        ModuleNotFoundError: `warm_up` without tensorflow-serving-api.

    References:
        `keras.export.ExportArchive`, which saves functions and variables in the same way, but in an order that differs
        each time; `tf.saved_model.save` of a Keras 3 model loses variables in the C++ loader.
    """
    path = check_destination(path, version)
    operations.check_serving_version(serving_version)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
        unfinished = Path(folder) / "model"
        graph.save_functions(unfinished, signatures)
        saved = graph.read_graph(unfinished)
        graph.write_graph(unfinished, saved)
        needed = operations.check_operations(saved, serving_version)
        check_batches(saved)
        write_model_card(unfinished, facts or {}, saved, needed)
        if warm_up:
            write_requests(unfinished, warm_up)
        if path.exists():
            path.rename(Path(folder) / "replaced")
        unfinished.rename(path)
    return path


def check_destination(path: str | PathLike[str], version: int | str | None = None) -> Path:
    """The folder to make, if a SavedModel can be written there; what `write_saved_model` raises otherwise."""
    if keras.backend.backend() != "tensorflow":
        raise RuntimeError(
            "`export`: a SavedModel with strings can be written on the TensorFlow backend only. Received: "
            f"KERAS_BACKEND={keras.backend.backend()!r}. Save the model with `model.save('model.keras')`, start again "
            "with KERAS_BACKEND=tensorflow, load it, and export."
        )
    if "://" in str(path):
        cure = "Export to a local folder, and copy it there."
        raise ValueError(checks.message("export", "path", "be a local folder", str(path), cure))
    path = Path(path)
    if version is not None:
        _refuse_versions_beside(path)
        path = version_folder(path, version)
    if path.exists() and not _may_be_replaced(path):
        raise FileExistsError(
            f"`export`: `path` must be new, an empty folder, or a SavedModel to replace. Received: path={str(path)!r}, "
            "which holds something else."
        )
    return path


def _refuse_versions_beside(path: Path) -> None:
    """Refuses a folder for versions that is no folder, or a SavedModel itself."""
    if path.exists() and (not path.is_dir() or (path / graph.GRAPH).exists()):
        raise FileExistsError(
            f"`export`: `path` must be a folder of versions where `version` is given. Received: path={str(path)!r}, "
            "which is something else."
        )


def _may_be_replaced(path: Path) -> bool:
    """Whether nothing but a SavedModel would be lost."""
    return path.is_dir() and ((path / graph.GRAPH).is_file() or not any(path.iterdir()))
