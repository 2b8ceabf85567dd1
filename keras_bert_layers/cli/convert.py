"""Read a checkpoint and write it in another layout.

A checkpoint with a trained head keeps it; otherwise the encoder is written. Nothing half-written is ever left: DEST
is written completely or not at all.

SOURCE is a directory in HuggingFace's, sentence-transformers', Google's or KerasHub's layout; a .keras file; a
directory of distribution.Backup; a name, hf://owner/name or hf://owner/name@REVISION; or a preset such as
bert_base_uncased.

layouts:
  huggingface   a directory for transformers, and for sentence-transformers if the model embeds sentences
  google        a directory with bert_config.json, bert_model.ckpt.* and vocab.txt
  kerashub      a directory for keras_hub's from_preset
  keras         one .keras file, for keras.models.load_model and load_task
  saved-model   a TensorFlow SavedModel that takes strings; for a checkpoint with a task
  onnx          one .onnx file that takes strings, for ONNX Runtime

Examples:
  keras-bert-layers convert uncased_L-12_H-768_A-12 bert-base --to huggingface
  keras-bert-layers convert hf://google-bert/bert-base-uncased bert.keras --to keras
  keras-bert-layers convert my-classifier served/1 --to saved-model
  keras-bert-layers convert all-MiniLM-L6-v2 minilm.onnx --to onnx --dtype int8
  keras-bert-layers convert all-MiniLM-L6-v2 minilm --to google --task encoder
"""

import argparse
import sys
from pathlib import Path

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.files.atomic_write import atomic_write
from keras_bert_layers.checkpoints.task_table import TASKS
from keras_bert_layers.cli.models import ENCODER, FLOAT_BYTES, MODEL, PROGRAM_FILE, LoadedModel, load_model
from keras_bert_layers.cli.terminal import progress, report

OWNER = "convert"

LAYOUTS = ("keras", "huggingface", "google", "kerashub", "saved-model", "onnx")

ONE_FILE = ("keras", "onnx")

EXPORTS = {"saved-model": ("a SavedModel", {}), "onnx": ("an ONNX file", {"format": "onnx", "verbose": False})}

DTYPES = {"saved-model": ("float32", "bfloat16"), "onnx": ("float32", "int8")}

# Every checkpoint, every SavedModel, every directory of `train` and every tokenizer has one of these files.
_MODEL_FILES = ("config.json", "bert_config.json", "modules.json", PROGRAM_FILE, MODEL, "tokenizer_config.json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("source", metavar="SOURCE", help="the checkpoint to read")
    parser.add_argument("dest", metavar="DEST", type=Path, help="where to write: a new path, or an empty directory")
    parser.add_argument("--to", required=True, choices=LAYOUTS, metavar="LAYOUT", help=", ".join(LAYOUTS))
    shown = f"which of the checkpoint's trained tasks to write; {ENCODER} for the encoder alone"
    parser.add_argument("--task", choices=[*TASKS, ENCODER], metavar="TASK", help=shown)
    dtypes = "; ".join(f"{' or '.join(names)} for {layout}" for layout, names in DTYPES.items())
    parser.add_argument("--dtype", metavar="DTYPE", help=f"of the weights: {dtypes} (default: the model's)")
    parser.add_argument("--no-tokenizer", action="store_true", help="read and write weights and config only")
    parser.add_argument("--force", action="store_true", help="replace the model at DEST")


def run(arguments: argparse.Namespace) -> int:
    """Converts, and returns 0."""
    if arguments.to in ONE_FILE and arguments.dest.suffix != f".{arguments.to}":
        rule = f"DEST must end in .{arguments.to} for --to {arguments.to}"
        raise ValueError(f"`{OWNER}`: {rule}. Received: {arguments.dest}.")
    if arguments.dtype not in (None, *(dtypes := DTYPES.get(arguments.to, ()))):
        rule = f"be one of {list(dtypes)} for --to {arguments.to}" if dtypes else f"be left out for --to {arguments.to}"
        raise ValueError(checks.message(OWNER, "--dtype", rule, arguments.dtype))
    from keras_bert_layers.checkpoints.weights.reports import watched

    dest, replace = arguments.dest, arguments.force
    check_destination(dest, replace=replace, owner=OWNER)
    loaded = load_model(arguments.source, arguments.task, owner=OWNER, tokenizer=not arguments.no_tokenizer)
    num_weights = loaded.model.count_params()
    with (
        atomic_write(dest, owner=OWNER, argument="DEST", replace=replace) as path,
        progress(f"Writing {dest}", FLOAT_BYTES * num_weights, unit="B") as advance,
        watched(advance),
    ):
        write(loaded, path, arguments.to, arguments.dtype)
    sys.stdout.write(f"{dest}: {type(loaded.model).__name__}, {num_weights:,} parameters\n")
    return 0


def write(loaded: LoadedModel, path: Path, layout: str, dtype: str | None = None) -> None:
    """Writes a model in one of the layouts; `dtype` is for exports."""
    from keras_bert_layers import checkpoints

    if layout in EXPORTS:
        name, options = EXPORTS[layout]
        if not loaded.answers_texts:
            cure = "For the embeddings of an encoder: --task sentence_encoder."
            raise ValueError(f"`{OWNER}`: {name} needs a task and a tokenizer. {cure}")
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
