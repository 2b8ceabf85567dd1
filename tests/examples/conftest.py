"""Runs the programs of examples/, and imports their modules."""

import contextlib
import importlib
import io
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="session")
def run_example():
    """A function that runs an example in a process of its own, and returns the finished process."""

    def run(name, *arguments):
        command = [sys.executable, EXAMPLES / f"{name}.py", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def run_example_here(monkeypatch, eagerly):
    """The same in this process, which has imported TensorFlow already, and eagerly: an example takes a few steps.

    `test_quickstart.py` runs one in graphs, and their exports are graphs here too.
    """

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [str(EXAMPLES / f"{name}.py"), *arguments])
        monkeypatch.syspath_prepend(str(EXAMPLES))
        code, stdout, stderr = 0, io.StringIO(), io.StringIO()
        with (
            contextlib.redirect_stdout(stdout),
            contextlib.redirect_stderr(stderr),
            warnings.catch_warnings(),
            eagerly(),
        ):
            warnings.simplefilter("ignore")  # they end nothing for a user
            try:
                runpy.run_path(sys.argv[0], run_name="__main__")
            except SystemExit as end:
                code = end.code if isinstance(end.code, int | None) else 1
                if code == 1 and not isinstance(end.code, int):
                    print(end.code, file=stderr)
        return subprocess.CompletedProcess(sys.argv, code or 0, stdout.getvalue(), stderr.getvalue())

    return run


@pytest.fixture(scope="session")
def import_example():
    """A function that imports a module of examples/ or examples/serving/ by its name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES / "serving"))
        patch.syspath_prepend(str(EXAMPLES))
        yield importlib.import_module
