"""The main function that the examples share: where an example writes, and how it ends."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from keras_bert_layers.cli.terminal import quiet_start


def main(arguments: argparse.Namespace, run: Callable[[argparse.Namespace, Path], None]) -> None:
    """Calls `run(arguments, folder)`, where the folder is `arguments.output`.

    With `--smoke` it runs for one epoch, in a folder that is deleted at the end. An error in a user's file or folder,
    or a package that is not installed, ends the program with the error's message and without a traceback.
    """
    try:
        with quiet_start():
            import tensorflow  # noqa: F401
        if not arguments.smoke:
            arguments.output.mkdir(parents=True, exist_ok=True)
            run(arguments, arguments.output)
            return
        arguments.epochs = 1
        with tempfile.TemporaryDirectory() as folder:
            run(arguments, Path(folder))
    except (OSError, ValueError, ModuleNotFoundError) as error:
        sys.exit(f"{Path(sys.argv[0]).stem}: {error}")
