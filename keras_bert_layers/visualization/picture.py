"""What every picture can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from os import PathLike
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.visualization import _html
from keras_bert_layers.visualization._figures import new_figure

_FIGURE_SUFFIXES = (".pdf", ".png", ".svg")


class Picture(ABC):
    """Numbers that were computed once, and two ways to look at them: a figure and a page.

    The last expression of a notebook's cell shows itself; it needs no matplotlib. A page stands by itself: one file, no
    script, nothing is asked of a network. It can be used with a keyboard and a screen reader, on a phone, and in light
    and dark surroundings. Every drawing has the same facts as text or table beside it.

    A subclass holds the numbers, and says how they look in `_body` and `_draw`.

    Args:
        title: heading of the page, and of the figure.
        note: a sentence or two on what there is to see; may be empty.
    """

    def __init__(self, *, title: str, note: str = ""):
        self.title = title
        self.note = note

    def html(self) -> str:
        """A whole page, UTF-8 once written to a file."""
        return _html.page(self.title, self.note, self._body())

    def figure(self) -> Any:
        """A new `matplotlib.figure.Figure`.

        Raises:
            ModuleNotFoundError: matplotlib, which the extra `visualization` installs, is not there.
        """
        figure = new_figure(*self._size())
        self._draw(figure)
        return figure

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes the page or the figure.

        Args:
            path: a file that ends in `.html`, or in `.pdf`, `.png` or `.svg` for the figure. Its folder must exist.

        Returns:
            The path.

        Raises:
            ValueError: the file's name ends in something else.
            ModuleNotFoundError: a figure, without matplotlib.
        """
        path = Path(path)
        suffixes = (".html", *_FIGURE_SUFFIXES)
        if path.suffix.lower() not in suffixes:
            raise ValueError(checks.message(type(self).__name__, "path", f"end in one of {list(suffixes)}", str(path)))
        if path.suffix.lower() == ".html":
            path.write_text(self.html(), encoding="utf-8")
        else:
            self.figure().savefig(path)
        return path

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return _html.fragment(self.title, self.note, self._body())

    @abstractmethod
    def _body(self) -> str:
        """The picture as HTML, its caption apart."""

    @abstractmethod
    def _size(self) -> tuple[float, float]:
        """Width and height of the figure, in inches."""

    @abstractmethod
    def _draw(self, figure: Any) -> None:
        """Draws on an empty figure."""
