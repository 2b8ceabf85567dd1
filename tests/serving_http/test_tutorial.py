"""`docs/tutorials/serving.md`: its shell commands as a reader types them, but for the container's and gRPC's."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

psutil = pytest.importorskip("psutil", reason="the extra `serving` brings it")

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorials" / "serving.md"
BLOCK = re.compile(r"^```bash\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
SECONDS_TO_START = 120

pytestmark = pytest.mark.serving


class Reader:
    """Somebody who works in a folder with `models` in it and an environment for servers, and has a checkout at home."""

    def __init__(self, folder):
        # The whole environment: a Python whose folder alone is linked does not find its packages.
        (folder / "serving-env").symlink_to(sys.prefix, target_is_directory=True)
        (folder / "keras_bert_layers").symlink_to(ROOT, target_is_directory=True)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.options = {
            "cwd": folder,
            "env": {**os.environ, "PATH": path, "HOME": str(folder), "BENTOML_HOME": str(folder / "bentoml")},
        }

    def start(self, command, log):
        return subprocess.Popen(["bash", "-c", f"exec env {command}"], stdout=log, stderr=log, **self.options)

    def run(self, command):
        return subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, timeout=120, check=True, **self.options
        ).stdout


@pytest.fixture
def commands():
    """The page's commands, each in its block, with the output behind it."""
    blocks = [match.groups() for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]
    left_out = re.compile(r"docker|grpc_client|pip install -e")
    installed = re.compile(r"^(python3 -m venv|\S*/pip) .*\n", re.MULTILINE)
    return [(installed.sub("", body), shown) for body, shown in blocks if not left_out.search(body)]


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl, as the page does")
def test_commands(commands, models, versions, inspected, tmp_path):
    pytest.importorskip("bentoml")
    (look, shown), (files, _), (state, _), (serve, _), (ready, _), (ask, _), (client, _), (again, _) = commands
    reader = Reader(tmp_path)
    assert inspected(look, tmp_path) == shown
    assert {"compose.yaml", "service.py"} <= set(reader.run(files).split())
    log = (tmp_path / "log").open("w")
    server = reader.start(serve.replace("$CHECKOUT", str(tmp_path / "keras_bert_layers")), log)
    family = []
    try:
        end = time.monotonic() + SECONDS_TO_START
        while reader.run(f"{ready.strip()} || true").strip() != "200":
            assert time.monotonic() < end, (tmp_path / "log").read_text()
            time.sleep(0.5)
        family = psutil.Process(server.pid).children(recursive=True)
        outputs = json.loads(reader.run(ask))["outputs"]
        assert sorted(outputs) == ["bytes_cut", "label", "probabilities"]
        assert json.loads(reader.run(client)) == outputs
        assert states(reader.run(state)) == {"1": "AVAILABLE"}
        shutil.copytree(versions / "second", tmp_path / "half")
        (tmp_path / "half").rename(models / "sentiment" / "2")
        while states(reader.run(again)).get("2") != "AVAILABLE":
            assert time.monotonic() < end + SECONDS_TO_START, (tmp_path / "log").read_text()
            time.sleep(0.5)
        assert set(json.loads(reader.run(ask))["outputs"]["label"]) <= {"no", "yes"}
        (models / "sentiment" / "2").rename(tmp_path / "elsewhere")
        while set(json.loads(reader.run(ask))["outputs"]["label"]) & {"no", "yes"}:
            assert time.monotonic() < end + 2 * SECONDS_TO_START, "moving a version away must bring back the one before"
            time.sleep(0.5)
    finally:
        server.terminate()
        server.wait(60)
        log.close()
        assert not any(member.is_running() for member in family), "the server left a process behind"


def states(answer):
    """Version -> state, as the server reports them of a model."""
    return {version["version"]: version["state"] for version in json.loads(answer)["model_version_status"]}
