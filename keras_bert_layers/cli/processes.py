"""Training in several processes of one job: how they find each other, and which one writes."""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import keras


def add_process_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments by which the processes of a job find each other."""
    group = parser.add_argument_group("several processes with KERAS_BACKEND=jax, where no launcher says so")
    add = group.add_argument
    add("--coordinator", metavar="HOST:PORT", help="the address of the first process")
    add("--num-processes", type=int, metavar="N", help="how many processes there are")
    add("--process-id", type=int, metavar="N", help="the index of this process, from 0 on")


def join_processes(arguments: argparse.Namespace) -> bool:
    """Joins the processes of a job and takes all of its devices; on TensorFlow, there is one. Returns if it is first.

    Raises:
        RuntimeError: several processes, and Keras does not run on JAX.
        ValueError: some of the arguments are missing.
    """
    import keras

    from keras_bert_layers import distribution

    given = (arguments.coordinator, arguments.num_processes, arguments.process_id)
    if keras.backend.backend() == "jax" or given != (None, None, None):
        distribution.initialize(*given)
    return distribution.is_first_process()


@contextlib.contextmanager
def files_of_first(path: Path) -> Iterator[Path]:
    """Where a process saves a model: at the path in the first one, and in a folder that is deleted in the others.

    JAX lets all processes of a job compute the same, and saving a model computes. At the end all wait for the first:
    they may read its files, and a process that ends takes the job with it after a time.
    """
    from keras_bert_layers.distribution import first_process_first, is_first_process

    with tempfile.TemporaryDirectory() as folder:
        yield path if is_first_process() else Path(folder)
        first_process_first(lambda: None)


def export(model: keras.Model, saved: Path, path: Path) -> bool:
    """Writes a SavedModel: of a model, or on other backends than TensorFlow of what it was saved to.

    Returns:
        Whether one was written; not so where tensorflow-text is not installed.
    """
    import keras

    from keras_bert_layers.preprocessing.engines.engine import text_engine

    if not text_engine().IN_GRAPH:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    if keras.backend.backend() == "tensorflow":
        model.export(path)
        return True
    command = [sys.executable, "-m", "keras_bert_layers", "convert", str(saved), str(path), "--to", "saved-model"]
    # On a processor: an accelerator's memory is JAX's.
    variables = {**os.environ, "KERAS_BACKEND": "tensorflow", "CUDA_VISIBLE_DEVICES": "-1"}
    if subprocess.run(command, env=variables, check=False, stdout=subprocess.DEVNULL).returncode:
        raise ValueError(f"`train`: {saved} was not exported; the error is above.")
    return True
