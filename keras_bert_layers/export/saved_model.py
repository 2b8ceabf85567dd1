"""One SavedModel with named signatures, written whole or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.shared_graphs import shared_graphs
from keras_bert_layers.export.signature import Signature


def write_saved_model(path: str | PathLike[str], signatures: Sequence[Signature]) -> Path:
    """Writes `signatures`, and the variables that they use, as a TensorFlow SavedModel.

    It is written beside `path` first and renamed when complete, so `path` never holds half a model. A SavedModel that
    is there already is replaced; anything else there is left alone and refused.

    Args:
        path: the folder to make.
        signatures: at least one; the one named `"serving_default"` is what a client gets who names none.

    Returns:
        The folder.

    Raises:
        RuntimeError: Keras runs on a backend other than TensorFlow.
        ValueError: `path` names another machine, as `gs://` does; such a path would become a local folder `gs:`.
        FileExistsError: `path` is a file, or a folder that is not a SavedModel.

    References:
        `keras.export.ExportArchive`; `tf.saved_model.save` of a Keras 3 model loses variables in the C++ loader.
    """
    path = check_destination(path)
    # The archive finds the variables that its endpoints use; one that tracks the model too writes them twice.
    archive = keras.export.ExportArchive()
    for signature in signatures:
        specs = [tf.TensorSpec(shape, dtype, name=name) for name, (shape, dtype) in signature.inputs.items()]
        archive.add_endpoint(signature.name, signature.function, input_signature=specs)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
        unfinished = Path(folder) / "model"
        with shared_graphs():
            archive.write_out(str(unfinished), verbose=False)
        if path.exists():
            path.rename(Path(folder) / "replaced")
        unfinished.rename(path)
    return path


def check_destination(path: str | PathLike[str]) -> Path:
    """The folder, if a SavedModel can be written there; what `write_saved_model` raises otherwise."""
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
    if path.exists() and not _may_be_replaced(path):
        raise FileExistsError(
            f"`export`: `path` must be new, an empty folder, or a SavedModel to replace. Received: path={str(path)!r}, "
            "which holds something else."
        )
    return path


def _may_be_replaced(path: Path) -> bool:
    """Whether nothing but a SavedModel would be lost."""
    return path.is_dir() and ((path / "saved_model.pb").is_file() or not any(path.iterdir()))
