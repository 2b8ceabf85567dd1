"""`keras-bert-layers convert`: one model, other files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keras_bert_layers._cli.destination import destination
from keras_bert_layers._cli.models import ENCODER, TASKS, LoadedModel, load_model
from keras_bert_layers._cli.terminal import progress, tell

OWNER = "convert"
HELP = "read a checkpoint and write it in another layout"
DESCRIPTION = """\
Reads a checkpoint of any layout and writes it in another. A checkpoint that states a task keeps its trained head;
of any other the encoder is written. Nothing half-written is ever left: DEST appears whole or not at all.

SOURCE is a directory in HuggingFace's, sentence-transformers', Google's or KerasHub's layout; a .keras file; a name
as hf://owner/name or hf://owner/name@REVISION; or a preset such as bert_base_uncased.

layouts:
  huggingface   a directory for transformers, and for sentence-transformers where the model embeds sentences
  google        a directory with bert_config.json, bert_model.ckpt.* and vocab.txt
  kerashub      a directory for keras_hub's from_preset
  keras         one .keras file, for keras.models.load_model and load_task
  saved-model   a TensorFlow SavedModel that takes strings; for a checkpoint with a task"""
EXAMPLES = """\
examples:
  keras-bert-layers convert uncased_L-12_H-768_A-12 bert-base --to huggingface
  keras-bert-layers convert hf://google-bert/bert-base-uncased bert.keras --to keras
  keras-bert-layers convert my-classifier served/1 --to saved-model
  keras-bert-layers convert all-MiniLM-L6-v2 minilm --to google --task encoder"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("source", metavar="SOURCE", help="the checkpoint to read")
    parser.add_argument("dest", metavar="DEST", type=Path, help="where to write: nothing, or an empty directory")
    parser.add_argument("--to", required=True, choices=list(_WRITERS), metavar="LAYOUT", help=f"{', '.join(_WRITERS)}")
    parser.add_argument(
        "--task",
        choices=[*TASKS, ENCODER],
        metavar="TASK",
        help=f"which of the checkpoint's trained tasks to write; {ENCODER} for the encoder alone",
    )
    parser.add_argument("--no-tokenizer", action="store_true", help="read and write weights and config only")
    parser.add_argument("--force", action="store_true", help="replace the model that is at DEST")


def run(arguments: argparse.Namespace) -> int:
    """Converts; 0."""
    if arguments.to == "keras" and arguments.dest.suffix != ".keras":
        raise ValueError(f"`{OWNER}`: DEST must end in .keras for --to keras. Received: {arguments.dest}.")
    from keras_bert_layers.checkpoints._progress import watched

    with destination(arguments.dest, replace=arguments.force) as place:
        loaded = load_model(arguments.source, arguments.task, owner=OWNER, tokenizer=not arguments.no_tokenizer)
        size = loaded.model.count_params() * 4
        with progress(f"Writing {arguments.dest}", size, unit="B") as advance, watched(advance):
            _WRITERS[arguments.to](loaded, place)
    kind = type(loaded.model).__name__
    sys.stdout.write(f"{arguments.dest}: {kind}, {loaded.model.count_params():,} parameters\n")
    return 0


def _to_keras(loaded: LoadedModel, place: Path) -> None:
    if loaded.task is None and loaded.preprocessor is not None:
        tell("warning", "the .keras file of an encoder has no tokenizer: a task has its own, see --task.")
    loaded.model.save(place)


def _to_saved_model(loaded: LoadedModel, place: Path) -> None:
    if loaded.task is None or loaded.preprocessor is None:
        raise ValueError(
            f"`{OWNER}`: a SavedModel needs a task and a tokenizer. For the vectors of an encoder: "
            "--task sentence_encoder."
        )
    loaded.model.export(place)


def _to_huggingface(loaded: LoadedModel, place: Path) -> None:
    from keras_bert_layers.checkpoints import save_huggingface

    save_huggingface(loaded.model, place, preprocessor=loaded.preprocessor)


def _to_google(loaded: LoadedModel, place: Path) -> None:
    from keras_bert_layers.checkpoints import save_google

    save_google(loaded.model, place, preprocessor=loaded.preprocessor)


def _to_kerashub(loaded: LoadedModel, place: Path) -> None:
    from keras_bert_layers.checkpoints.save_kerashub import save_kerashub

    save_kerashub(loaded.model, place, preprocessor=loaded.preprocessor)


_WRITERS: dict[str, Callable[[LoadedModel, Path], Any]] = {
    "keras": _to_keras,
    "huggingface": _to_huggingface,
    "google": _to_google,
    "kerashub": _to_kerashub,
    "saved-model": _to_saved_model,
}
