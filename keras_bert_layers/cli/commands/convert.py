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
from keras_bert_layers.cli.models import ENCODER, FLOAT_BYTES, load_model
from keras_bert_layers.cli.terminal import progress
from keras_bert_layers.cli.written_models import DTYPES, LAYOUTS, ONE_FILE, check_destination, write_model

OWNER = "convert"


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
        write_model(loaded, path, arguments.to, arguments.dtype)
    sys.stdout.write(f"{dest}: {type(loaded.model).__name__}, {num_weights:,} parameters\n")
    return 0
