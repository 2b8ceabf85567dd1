"""TensorFlow 2.19 runs models that were exported by the installed TensorFlow, in C and in Python.

It needs an environment of its own, which pip makes in a minute or two. A folder named by the variable
`KERAS_BERT_LAYERS_TENSORFLOW_2_19` keeps it for the next run.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from c_api.cases import CASES
from c_api.installation import Installation
from c_api.server_process import ServerProcess

pytestmark = pytest.mark.exhaustive

VERSION = "2.19"
VARIABLE = "KERAS_BERT_LAYERS_TENSORFLOW_2_19"
PACKAGES = [f"tensorflow=={VERSION}.*", f"tensorflow-text=={VERSION}.*"]


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """TensorFlow 2.19 in an environment of its own."""
    folder = Path(os.environ.get(VARIABLE) or tmp_path_factory.mktemp("tensorflow") / "environment")
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    packages = Path(
        subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
    )
    if not (packages / "tensorflow_text").is_dir():
        made = subprocess.run(
            [python, "-m", "pip", "install", "-q", *PACKAGES], capture_output=True, text=True, check=False
        )
        if made.returncode:
            pytest.skip(f"pip cannot install {PACKAGES}: {made.stderr[-300:]}")
    return Installation(packages, str(python))


@pytest.fixture(scope="module")
def old_server(old, tmp_path_factory):
    command = old.compile_server(tmp_path_factory.mktemp("old"))
    if command is None:
        pytest.skip("no C compiler")
    return command


@pytest.mark.parametrize("name", CASES)
def test_tasks_in_c(name, served_task, old, old_server, asked_as_keras):
    served = served_task(name)
    with ServerProcess(old_server, served.model, libraries=old.text_libraries(older=True)) as server:
        assert server.version.startswith(VERSION)
        asked_as_keras(served, server, f"TensorFlow {VERSION}")


@pytest.mark.parametrize("name", ["token_classifier"])
def test_tasks_in_python(name, served_task, old, asked_as_keras):
    served = served_task(name)
    with ServerProcess(old.stand_in(), served.model, libraries=old.text_libraries()) as server:
        assert server.version.startswith(VERSION)
        asked_as_keras(served, server, f"TensorFlow {VERSION}, Python")
