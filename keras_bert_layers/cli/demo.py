"""Try a model in a browser, on a page of this machine.

The page has a field for each text of the model, and shows its answer: words for masks, marked entities, the answer in
its text, or a table. It listens on 127.0.0.1 only, runs no script, and needs nothing but this package.

DIR is what train wrote, or a .keras file, a checkpoint with a trained head, or hf://owner/name.

Examples:
  keras-bert-layers demo sentiment
  keras-bert-layers demo hf://owner/name --port 8000
"""

from __future__ import annotations

import argparse
from pathlib import Path

from keras_bert_layers.checkpoints.task_table import TASKS
from keras_bert_layers.cli.local_server import serve_until_interrupted
from keras_bert_layers.cli.models import load_model

OWNER = "demo"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("folder", metavar="DIR", help="the model to try")
    parser.add_argument("--task", choices=TASKS, metavar="TASK", help="which of the checkpoint's trained tasks to run")
    parser.add_argument("--port", type=int, default=7860, metavar="N", help="the port to listen on (default: 7860)")


def run(arguments: argparse.Namespace) -> int:
    """Shows the page until Ctrl-C, and returns 0."""
    loaded = load_model(arguments.folder, arguments.task, owner=OWNER)
    if loaded.task is None or loaded.preprocessor is None:
        cure = "For embeddings: --task sentence_encoder."
        raise ValueError(f"`{OWNER}`: DIR must have a task and a tokenizer. Received: {arguments.folder}. {cure}")
    from keras_bert_layers.cli.demo_page import DemoPage

    page = DemoPage(loaded.model, name=Path(arguments.folder).name)

    def announce(address: str) -> str:
        return f"open {address}/ in a browser; Ctrl-C stops it"

    serve_until_interrupted(arguments.port, page.answer, announce, owner=OWNER)
    return 0
