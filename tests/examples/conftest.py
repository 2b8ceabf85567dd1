"""Runs the programs of examples/, and imports their modules."""

import importlib
import subprocess
import sys
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


@pytest.fixture(scope="session")
def import_example():
    """A function that imports a module of examples/ or examples/serving/ by its name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES / "serving"))
        patch.syspath_prepend(str(EXAMPLES))
        yield importlib.import_module
