"""Writing a SavedModel with named signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.written_whole import written_whole
from keras_bert_layers.export import _graph as graph
from keras_bert_layers.export import _operations as operations
from keras_bert_layers.export._batching import check_batches
from keras_bert_layers.export._versions import NEXT, version_folder
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

    The model is written to a temporary folder and renamed when it is complete, so that no server loads half a model.
    It is checked first: the server must have every operation of the graph, no operation may need Python or XLA, and
    the first axis of every input and output must be the batch, so that a server can batch requests.

    Args:
        path: the folder to write. An existing SavedModel is replaced; a folder with anything else is refused.
        signatures: at least one. Clients that name no signature get `"serving_default"`, or the first one without it.
        version: write to the folder `path/version`, as TensorFlow Serving expects: a new whole number, or `"next"` for
            one more than the largest.
        serving_version: the oldest TensorFlow Serving that has to run the model, `"2.13"` to `"2.21"`.
        warm_up: signature -> requests, each a dictionary of input -> array, that TensorFlow Serving runs before it
            serves the model. If one fails, the model is not served. At most 1,000.
        facts: further entries of the model card, which `read_model_card` reads; must be JSON.

    Returns:
        The folder that holds the model.

    Raises:
        RuntimeError: Keras runs on a backend other than TensorFlow.
        ValueError: `path` is on another machine, such as `gs://`; the server does not have an operation; a tensor has
            no batch axis.
        FileExistsError: `path` is a file, or a folder that is not a SavedModel; the version exists.
        OSError: the folder cannot be written; the disk is full, for example. What was there is unchanged.
        ModuleNotFoundError: `warm_up` needs tensorflow-serving-api, which is not installed.

    References:
        `keras.export.ExportArchive` saves functions and variables in the same way, but in an order that differs each
        time. `tf.saved_model.save` of a Keras 3 model loses variables in the C++ loader.
    """
    folder = check_destination(path, version)
    operations.check_serving_version(serving_version)
    try:
        with written_whole(folder, owner="export", argument="path", replace=version is None) as unfinished:
            _write(unfinished, signatures, serving_version, warm_up, facts or {})
    except FileExistsError:
        if version != NEXT:
            raise
        # Another process has taken the number in the meantime.
        return write_saved_model(
            path, signatures, version=version, serving_version=serving_version, warm_up=warm_up, facts=facts
        )
    return folder


def _write(
    folder: Path,
    signatures: Sequence[Signature],
    serving_version: str,
    warm_up: Requests | None,
    facts: Mapping[str, Any],
) -> None:
    graph.save_functions(folder, signatures)
    saved = graph.finish_graph(folder)
    needed = operations.check_operations(saved, serving_version)
    check_batches(saved)
    write_model_card(folder, facts, saved, needed)
    if warm_up:
        write_requests(folder, warm_up)


def check_destination(path: str | PathLike[str], version: int | str | None = None) -> Path:
    """The folder to write, if a SavedModel can be written there; raises what `write_saved_model` raises otherwise."""
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
        if path.exists() and (not path.is_dir() or (path / graph.GRAPH).exists()):
            raise FileExistsError(
                "`export`: `path` must be a folder of versions where `version` is given. Received: "
                f"path={str(path)!r}, which is something else."
            )
        path = version_folder(path, version)
    if path.exists() and not _may_be_replaced(path):
        raise FileExistsError(
            f"`export`: `path` must be new, an empty folder, or a SavedModel to replace. Received: path={str(path)!r}, "
            "which holds something else."
        )
    return path


def _may_be_replaced(path: Path) -> bool:
    """Whether the path is an empty folder or a SavedModel."""
    return path.is_dir() and ((path / graph.GRAPH).is_file() or not any(path.iterdir()))
