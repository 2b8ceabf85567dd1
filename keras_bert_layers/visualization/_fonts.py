"""Fonts of figures: what they draw for a character, and how wide it is."""

from __future__ import annotations

import functools
import unicodedata
from typing import Any

# matplotlib's own fonts, and others that machines have for scripts which these lack.
_SANS, _MONO = "DejaVu Sans", "DejaVu Sans Mono"
_OTHERS = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Noto Sans Devanagari",
    "Noto Sans Bengali",
    "Noto Sans Thai",
    "Hiragino Sans",
    "PingFang SC",
    "Arial Unicode MS",
)
_MISSING = "\u25af"  # stands for a character that no font has
_SIZE = 64  # any; widths are shares of it


@functools.cache
def families(mono: bool) -> list[str]:
    """The installed fonts to look for a character in, in order."""
    from matplotlib.font_manager import fontManager

    return [*([_MONO] if mono else []), _SANS, *sorted({*_OTHERS} & {*fontManager.get_font_names()}, key=_OTHERS.index)]


def drawable(text: str) -> str:
    """The text with a box for each character that no font has, and without invisible characters."""
    return "".join(_glyph(character, False, False)[0] for character in text)


def length_of(text: str, size: float, mono: bool, bold: bool) -> float:
    """The length of a text in points."""
    return size * sum(_glyph(character, mono, bold)[1] for character in text)


@functools.cache
def _glyph(character: str, mono: bool, bold: bool) -> tuple[str, float]:
    """What is drawn for a character, and its width as a share of the font size."""
    if unicodedata.category(character) in ("Cc", "Cf", "Cs"):
        if not character.isspace():
            return "", 0
        character = " "
    found = [font for font in _fonts(mono, bold) if font.get_char_index(ord(character))]
    if not found:
        return _glyph(_MISSING, mono, bold)
    return character, found[0].load_char(ord(character)).linearHoriAdvance / 65536 / _SIZE


@functools.cache
def _fonts(mono: bool, bold: bool) -> list[Any]:
    from matplotlib.font_manager import FontProperties, findfont
    from matplotlib.ft2font import FT2Font

    weight = "bold" if bold else "normal"
    fonts = [FT2Font(findfont(FontProperties(family=family, weight=weight))) for family in families(mono)]
    for font in fonts:
        font.set_size(_SIZE, 72)
    return fonts
