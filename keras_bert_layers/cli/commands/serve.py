"""Serve an exported model on this machine, with TensorFlow Serving's REST interface.

For trying a model, and for programs on this machine. It listens on 127.0.0.1 only, with neither a password nor
encryption, and answers one request at a time, of at most 1,024 rows and 10 seconds. In production, run TensorFlow
Serving on the same directory.

DIR is what train wrote, a directory of versions (1, 2 and so on, of which the highest is served), a SavedModel, an
.onnx file, or a .keras file, which needs no TensorFlow on other backends of Keras.

- POST /v1/models/NAME:predict   {"inputs": {"text": [...]}} or {"instances": [{"text": "..."}]}
- GET /v1/models/NAME            the version and its state
- GET /v1/models/NAME/metadata   the signatures, with the dtypes and shapes of inputs and outputs

Examples:
  keras-bert-layers serve sentiment
  keras-bert-layers serve sentiment.onnx --name sentiment
  curl http://127.0.0.1:8501/v1/models/sentiment:predict --data '{"inputs": {"text": ["A warm, funny film."]}}'
"""

import argparse
from pathlib import Path

from keras_bert_layers.cli.exported_models import open_exported
from keras_bert_layers.cli.local_server import serve_until_interrupted

OWNER = "serve"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="the model to serve")
    parser.add_argument("--name", help="the model's name in addresses (default: the name of DIR)")
    parser.add_argument("--port", type=int, default=8501, metavar="N", help="the port to listen on (default: 8501)")


def run(arguments: argparse.Namespace) -> int:
    """Serves until Ctrl-C, and returns 0."""
    name = arguments.name or arguments.folder.absolute().name
    model = open_exported(arguments.folder, name, owner=OWNER)
    model.warm_up()

    def announce(address: str) -> str:
        return f"{address}/v1/models/{name}:predict; Ctrl-C stops it"

    serve_until_interrupted(arguments.port, model.answer, announce, owner=OWNER)
    return 0
