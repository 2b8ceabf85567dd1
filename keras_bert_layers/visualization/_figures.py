"""Figures of matplotlib, which is imported when the first one is made."""

from __future__ import annotations

import functools
import unicodedata
from typing import Any

# matplotlib's own font, and others that machines have for scripts which it lacks.
_FAMILIES = (
    "DejaVu Sans",
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Noto Sans Devanagari",
    "Noto Sans Bengali",
    "Noto Sans Thai",
    "Hiragino Sans",
    "PingFang SC",
    "Arial Unicode MS",
)

# Stands for a character that no font here has.
_MISSING = "\u25af"


def new_figure(width: float, height: float) -> Any:
    """An empty `matplotlib.figure.Figure` of a size in inches, of which no global state knows.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "matplotlib":
            raise
        raise ModuleNotFoundError(
            "`visualization`: a figure needs matplotlib, which is not installed here. Install it with "
            "`pip install matplotlib`, or look at `html()`, which needs nothing.",
            name="matplotlib",
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def write(axes: Any, x: float, y: float, text: str, **options: Any) -> Any:
    """Text in a figure as it is: dollars are dollars, and what no font has is a box."""
    families = [options.pop("family", _FAMILIES[0]), *_families()]
    return axes.text(x, y, drawable(text), parse_math=False, family=families, **options)


def plain(artist: Any, text: str) -> None:
    """Puts text as it is in the place of what a title or another text of a figure holds."""
    artist.set_text(drawable(text))
    artist.set_parse_math(False)
    artist.set_family(list(_families()))


def label_ticks(axis: Any, labels: list[str], **options: Any) -> None:
    """Tokens at the places 0, 1, 2, ... of an axis."""
    axis.set_ticks(range(len(labels)), [""] * len(labels), **options)
    for artist, label in zip(axis.get_ticklabels(), labels, strict=True):
        plain(artist, label)


def drawable(text: str) -> str:
    """The text with a box for each character that no font has, and without what cannot be seen."""
    return "".join(_drawable_character(character) for character in text)


@functools.cache
def _drawable_character(character: str) -> str:
    if unicodedata.category(character) in ("Cc", "Cf", "Cs"):
        return " " if character.isspace() else ""
    return character if any(font.get_char_index(ord(character)) for font in _fonts()) else _MISSING


@functools.cache
def _families() -> tuple[str, ...]:
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    return tuple(family for family in _FAMILIES if family in installed)


@functools.cache
def _fonts() -> tuple[Any, ...]:
    from matplotlib.font_manager import findfont, get_font

    return tuple(get_font(findfont(family)) for family in _families())
