"""The wheel holds all that the package needs, and every file names the same version."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SMOKE = """
import sys
import keras_bert_layers as kbl
assert kbl.__file__.startswith(sys.argv[1]), kbl.__file__
tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "film"], reference="huggingface")
assert tokenizer(["Good film!"]).to_list() == [[5, 6, 1]]
config = kbl.BertConfig(vocabulary_size=7, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
task = kbl.BertClassifier(kbl.BertBackbone(config), 2, preprocessor=kbl.BertPreprocessor(tokenizer, max_length=9))
task.export(sys.argv[1] + "/model", warm_up=False)
print(task.answer(["a good film"])["probabilities"].shape, kbl.__version__)
"""


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_one_version(project):
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(r"^version: (.+)$", citation, re.M)[1] == project["version"]
    assert f"## [{project['version']}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.mark.slow
def test_the_wheel_works_alone(project, tmp_path):
    source = tmp_path / "source"
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "keras_bert_layers", source / "keras_bert_layers", ignore=unwanted)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", tmp_path, source], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("keras_bert_layers/")}
    files = (path for path in (ROOT / "keras_bert_layers").rglob("*") if path.is_file() and path.suffix != ".pyc")
    assert held == {path.relative_to(ROOT).as_posix() for path in files}
    alone = tmp_path / "alone"
    subprocess.run([*pip, "install", "--no-deps", "--target", alone, wheel], check=True)
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, sys.argv[1])\n{SMOKE}", str(alone)]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[-2] == f"(1, 2) {project['version']}"
