"""`docs/guides/serve.md`: its shell commands, run in order, as a reader types them."""

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
PAGE = ROOT / "docs" / "guides" / "serve.md"
BLOCK = re.compile(r"^```bash\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.serving


@pytest.fixture
def commands(tmp_path):
    """Blocks of the page and the outputs behind them. The environment is this one; there is no container runtime."""
    # The whole environment: a Python whose folder alone is linked does not find its packages.
    (tmp_path / "serving-env").symlink_to(sys.prefix, target_is_directory=True)
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    page = PAGE.read_text(encoding="utf-8").partition("\n## Try models in a browser\n")[0]
    blocks = [match.groups() for match in BLOCK.finditer(page)]
    blocks = [(re.sub(r"^(python3 -m venv|\S*/pip) .*\n", "", body, flags=re.MULTILINE), out) for body, out in blocks]
    return [(body, out) for body, out in blocks if "docker" not in body]


def shell(command, folder):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "BENTOML_HOME": str(folder / "bentoml"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    return {"args": ["bash", "-c", command], "cwd": folder, "env": environment, "stdout": subprocess.PIPE, "text": True}


def run(command, folder):
    return subprocess.run(**shell(command, folder), stderr=subprocess.PIPE, timeout=120, check=True).stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl, as the page does")
def test_commands(commands, models, inspected, tmp_path):
    pytest.importorskip("bentoml")
    (look, shown), (look_at_all, names), (serve, _), (ready, _), (ask, _), (client, _), (predict, _) = commands
    assert inspected(look, tmp_path) == shown
    assert inspected(look_at_all, tmp_path) == names
    log = (tmp_path / "log").open("w")
    server = subprocess.Popen(**{**shell(f"exec env {serve}", tmp_path), "stdout": log}, stderr=log)
    family = []
    try:
        end = time.monotonic() + 120
        while subprocess.run(**shell(ready, tmp_path), check=False).stdout.strip() != "200":
            assert time.monotonic() < end, (tmp_path / "log").read_text()
            time.sleep(0.5)
        family = psutil.Process(server.pid).children(recursive=True)
        outputs = json.loads(run(ask, tmp_path))["outputs"]
        assert sorted(outputs) == ["bytes_cut", "label", "probabilities"]
        assert json.loads(run(client, tmp_path)) == outputs
        assert sorted(entry["label"] for entry in json.loads(run(predict, tmp_path))) == ["bad", "good"]
    finally:
        server.terminate()
        server.wait(60)
        log.close()
        assert not any(member.is_running() for member in family), "the server left a process behind"
