"""README: what it says of the project is what the project says of itself, and its picture is what its program makes."""

import base64
import importlib.util
import io
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "pictures" / "input.svg"
# Steps of 256 in a colour: another machine rounds a number to its neighbour.
COLOR_STEPS = 2


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
    assert facts["Python"] == ", ".join(versions)
    lowest, above = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"]).groups()
    assert versions == [f"3.{minor}" for minor in range(int(lowest), int(above))]
    assert any(re.match(rf"keras>={facts['Keras']}\.", name) for name in project["dependencies"])
    assert facts["Licence"] == project["license"]


def test_the_picture_asks_no_other_machine(readme):
    assert f"]({PICTURE.relative_to(ROOT)})" in readme
    names = r"http://(www\.w3\.org|purl\.org|creativecommons\.org)/|https://matplotlib\.org/"  # of formats, never asked
    picture = re.sub(names, "", PICTURE.read_text(encoding="utf-8"))
    assert not re.search(r"https?://|<script|@import", picture)
    assert "dc:date" not in picture


@pytest.mark.slow
def test_the_picture_is_what_its_program_makes(minilm, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra `visualization`")
    program = PICTURE.with_name("make_input_picture.py")
    spec = importlib.util.spec_from_file_location("make_input_picture", program)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.make(tmp_path / "input.svg")
    made, shipped = (path.read_text(encoding="utf-8") for path in (tmp_path / "input.svg", PICTURE))
    assert words(made) == words(shipped)
    assert words(made)[:5] == ["[CLS]", "the", "king", "##fish", "##er"]
    (ours,), (theirs,) = images(made), images(shipped)  # matplotlib puts all strips into one
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=COLOR_STEPS / 255)
    assert ours.std() > 0.05, "not all of one colour"


def words(page):
    """The texts of a drawing, which matplotlib draws as outlines and names in comments."""
    return re.findall(r"<!-- (.*?) -->", page)


def images(page):
    """The images inside of a drawing."""
    from matplotlib.image import imread

    found = re.findall(r'"data:image/png;base64,\s*([^"]+)"', page)
    return [imread(io.BytesIO(base64.b64decode(data)), format="png") for data in found]
