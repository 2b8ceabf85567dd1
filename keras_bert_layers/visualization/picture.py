"""`Picture`: the base class of visualizations, as HTML pages and as matplotlib figures."""

from abc import ABC, abstractmethod
from os import PathLike
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.files.atomic_write import atomic_write
from keras_bert_layers.visualization import _html
from keras_bert_layers.visualization._figures import draw

_SUFFIXES = (".html", ".pdf", ".png", ".svg")


class Picture(ABC):
    """The base of visualizations: values that were computed once, as an HTML page and as a matplotlib figure.

    A notebook shows a picture that is the last expression of a cell, without matplotlib. A page is one file, which runs
    no script and sends no request. It works with a keyboard and a screen reader, on a phone, and on light and dark
    backgrounds. A table or a text beside every drawing states the same facts.

    A subclass holds the values and builds HTML elements of them in `_body`. The page is these elements; the figure
    draws them, except what is folded away on the page.

    Args:
        title: heading of the page and of the figure.
        note: one or two sentences on what the picture shows; may be empty.
    """

    def __init__(self, *, title: str, note: str = ""):
        self.title = title
        self.note = note

    def html(self) -> str:
        """Returns the HTML page; write it to a file as UTF-8."""
        return _html.page(self.title, self.note, self._body())

    def figure(self) -> Any:
        """Returns a new `matplotlib.figure.Figure`.

        Raises:
            ModuleNotFoundError: matplotlib is not installed; the extra `visualization` installs it.
        """
        return draw(self.title, self._body())

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes the page or the figure to a file.

        Args:
            path: a file that ends in `.html`, or in `.pdf`, `.png` or `.svg` for the figure. A file that is there is
                replaced when the new one is complete.

        Returns:
            The path.

        Raises:
            ValueError: the name of the file ends in something else.
            OSError: the file cannot be written; one that was there is kept.
            ModuleNotFoundError: a figure needs matplotlib, which is not installed.
        """
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix not in _SUFFIXES:
            raise ValueError(checks.message(type(self).__name__, "path", f"end in one of {list(_SUFFIXES)}", str(path)))
        with atomic_write(path, owner=type(self).__name__, argument="path") as unfinished:
            if suffix == ".html":
                unfinished.write_text(self.html(), encoding="utf-8")
            else:
                self.figure().savefig(unfinished)
        return path

    def _repr_html_(self) -> str:
        """Returns what a notebook shows."""
        return _html.fragment(self.title, self.note, self._body())

    @abstractmethod
    def _body(self) -> list[_html.Element]:
        """The elements of the picture, below its title and note."""
