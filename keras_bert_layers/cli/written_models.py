"""Writing models for commands: the layouts, and the paths where a command may write."""

from __future__ import annotations

from pathlib import Path

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.files.disk_space import check_writable
from keras_bert_layers.cli.models import MODEL, PROGRAM_FILE, LoadedModel
from keras_bert_layers.cli.terminal import report

LAYOUTS = ("keras", "huggingface", "google", "kerashub", "saved-model", "onnx")

ONE_FILE = ("keras", "onnx")

EXPORTS = {"saved-model": ("a SavedModel", {}), "onnx": ("an ONNX file", {"format": "onnx", "verbose": False})}

DTYPES = {"saved-model": ("float32", "bfloat16"), "onnx": ("float32", "int8")}

# Every checkpoint, every SavedModel, every directory of `train` and every tokenizer has one of these files.
_MODEL_FILES = ("config.json", "bert_config.json", "modules.json", PROGRAM_FILE, MODEL, "tokenizer_config.json")


def write_model(loaded: LoadedModel, path: Path, layout: str, dtype: str | None = None) -> None:
    """Writes a model in one of the layouts; `dtype` is for exports."""
    from keras_bert_layers import checkpoints

    if layout in EXPORTS:
        name, options = EXPORTS[layout]
        if not loaded.answers_texts:
            cure = "For the embeddings of an encoder: --task sentence_encoder."
            raise ValueError(f"`convert`: {name} needs a task and a tokenizer. {cure}")
        loaded.model.export(path, dtype=dtype, **options)
    elif layout == "keras":
        if loaded.task is None and loaded.preprocessor is not None:
            report("warning", "the .keras file of an encoder has no tokenizer; that of a task has one, see --task.")
        loaded.model.save(path)
    else:
        getattr(checkpoints, f"save_{layout}")(loaded.model, path, preprocessor=loaded.preprocessor)


def check_destination(path: Path, *, replace: bool, owner: str, argument: str = "DEST") -> None:
    """Refuses a path where a command may not write.

    Args:
        path: a path that does not exist, an empty directory, or a model to replace.
        replace: whether a model at `path` may be replaced: a `.keras` file, a checkpoint's directory, or a SavedModel.
        owner: the command, for errors.
        argument: its argument that holds `path`.

    Raises:
        ValueError: `path` is not local.
        FileExistsError: `path` exists and may not be replaced.
        OSError: its folder cannot be written to.
    """
    if "://" in str(path) or str(path).startswith(("gs:/", "hf:/", "s3:/")):
        cure = "Write to a local path, and copy it from there."
        raise ValueError(checks.message(owner, argument, "be a local path", str(path), cure))
    path = path.absolute()
    if any(path.iterdir()) if path.is_dir() else path.exists() or path.is_symlink():
        if not replace:
            raise FileExistsError(f"`{owner}`: {argument} must be new. {path} exists; --force replaces it.")
        is_file = path.suffix == ".keras" and path.is_file()
        is_folder = path.is_dir() and not path.is_symlink() and any((path / name).is_file() for name in _MODEL_FILES)
        if not (is_file or is_folder):
            raise FileExistsError(f"`{owner}`: --force replaces models only. {path} is not a model.")
    check_writable(path, owner=owner, argument=argument)
