"""README: its facts match the project, its figures the benchmarks, and its picture the output of its program."""

import importlib.util
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "pictures" / "attention.svg"
# Another machine may round an end of a line to another tenth of a point.
POINTS = 0.11


@pytest.fixture(scope="module")
def readme():
    return (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_facts_at_the_top_are_true(readme, project):
    facts = dict(re.findall(r"\*\*(\w+(?: \w+)?)\*\* ([^·*]+?)\s*(?:·|\n\n)", readme))
    assert list(facts) == ["Python", "Keras", "Runs on", "Licence"]
    versions = [name.split(" :: ")[-1] for name in project["classifiers"] if "Python :: 3." in name]
    lowest, above = map(int, re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"]).groups())
    (tensorflow,) = [name for name in project["dependencies"] if name.startswith("tensorflow>=")]
    without_tensorflow = int(re.search(r"; python_version < '3\.(\d+)'$", tensorflow)[1])
    assert versions == [f"3.{minor}" for minor in range(lowest, without_tensorflow)]
    assert (facts["Python"], above) == (
        f"{', '.join(versions)}; 3.{without_tensorflow} without TensorFlow",
        without_tensorflow + 1,
    )
    assert any(re.match(rf"keras>={facts['Keras']}\.", name) for name in project["dependencies"])
    assert facts["Licence"] == project["license"]


def test_the_picture_asks_no_other_machine(readme):
    assert f"]({PICTURE.relative_to(ROOT)})" in readme
    names = r"http://(www\.w3\.org|purl\.org|creativecommons\.org)/|https://matplotlib\.org/"  # of formats, never asked
    picture = re.sub(names, "", PICTURE.read_text(encoding="utf-8"))
    assert not re.search(r"https?://|<script|@import", picture)
    assert "dc:date" not in picture


def test_the_two_commands_are_on_the_first_screen(readme):
    assert len(readme.encode()) <= 7000, "tables belong into the documentation"
    commands = [number for number, line in enumerate(readme.splitlines()) if line.startswith("python3 -m pip install")]
    assert len(commands) == 2
    assert commands[-1] < 40


def test_figures_are_those_of_the_benchmarks(readme):
    rows = re.findall(r"^\| ([^|]+) \| ([^|]*\d[^|]*) \|$", readme, re.MULTILINE)
    assert len(rows) == 3
    lines = (ROOT / "docs" / "benchmarks" / "index.md").read_text(encoding="utf-8").splitlines()
    for what, figure in rows:
        first_words = re.split("[,:]", what)[0]
        values = set(re.findall(r"\d+(?:\.\d+)?", figure))
        found = [line for line in lines if first_words in line and values <= set(re.findall(r"\d+(?:\.\d+)?", line))]
        assert found, f"docs/benchmarks/index.md has no line with {first_words} and {sorted(values)}"


def test_the_first_page_of_the_site_has_the_same_figures_and_code(readme):
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    figures = [re.findall(r"^\| [^|]+ \| ([^|]*\d[^|]*) \|$", text, re.MULTILINE)[:3] for text in (readme, page)]
    numbers = [[re.findall(r"\d+(?:\.\d+)?", figure) for figure in found] for found in figures]
    assert numbers[0][1:] == numbers[1][1:]
    assert numbers[0][0] == numbers[1][0] == ["0"]
    code = [re.search(r"^classifier = .*?^```", text, re.MULTILINE | re.DOTALL)[0] for text in (readme, page)]
    assert code[0] == code[1]
    assert code[0].count("\n") == 3


@pytest.mark.slow
def test_the_picture_is_what_its_program_makes(minilm, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra `visualization`")
    program = PICTURE.with_name("make_attention_picture.py")
    spec = importlib.util.spec_from_file_location("make_attention_picture", program)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.make(tmp_path / "attention.svg")
    made, shipped = (path.read_text(encoding="utf-8") for path in (tmp_path / "attention.svg", PICTURE))
    assert words(made) == words(shipped)
    assert words(made)[3:8] == ["[CLS]", "[CLS]", "the", "the", "cat"]
    ours, theirs = corners(made), corners(shipped)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=POINTS)
    assert len(ours) > 200, "four numbers for each line"


def words(page):
    """The texts of a drawing, which matplotlib draws as outlines and names in comments."""
    return re.findall(r"<!-- (.*?) -->", page)


def corners(page):
    """The coordinates of all lines and areas of a drawing, except those of letters."""
    paths = re.findall(r'<path d="([^"]+)"', page)
    return np.array(re.findall(r"-?[\d.]+", " ".join(paths)), float)
