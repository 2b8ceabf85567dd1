"""Matplotlib figures from the HTML elements of a picture; matplotlib is imported for the first figure."""

import base64
import functools
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any
from xml.etree.ElementTree import Element

from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization._colors import Color

# matplotlib's own fonts, and others that machines have for scripts which these lack.
_SANS, _MONO = "DejaVu Sans", "DejaVu Sans Mono"
_OTHERS = "Noto Sans CJK JP, Noto Sans CJK SC, Noto Sans Devanagari, Noto Sans Bengali, Noto Sans Thai, Hiragino Sans, "
_OTHERS += "PingFang SC, Arial Unicode MS"
_MISSING = "\u25af"  # stands for a character that no font has
_SIZE = 64  # any; widths are shares of it


@functools.cache
def families(mono: bool) -> list[str]:
    """The installed fonts to look for a character in, in order."""
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    return [*([_MONO] if mono else []), _SANS, *(name for name in _OTHERS.split(", ") if name in installed)]


def drawable(text: str) -> str:
    """The text with a box for each character that no font has, and without invisible characters."""
    return "".join(_glyph(character, False, False)[0] for character in text)


def length_of(text: str, size: float, mono: bool, bold: bool) -> float:
    """The length of a text in points."""
    return size * sum(_glyph(character, mono, bold)[1] for character in text)


@functools.cache
def _glyph(character: str, mono: bool, bold: bool) -> tuple[str, float]:
    """The glyph to draw for a character, and its width as a share of the font size."""
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


# A pixel of the page is a point of the figure.
_POINTS_PER_INCH, _DOTS_PER_INCH = 72, 144
_MARGIN, _GAP, _PADDING, _LONGEST_LINE = 12, 10, 5, 640
_LINE_HEIGHT = 1.4  # of the font size
_FONT_SIZE, _FONT_SIZES = 11, {"h1": 16, "p": 14, "small": 9, "sub": 8}
_SIDES = {"start": "left", "middle": "center", "end": "right"}
Extent = tuple[float, float]  # right and bottom of what is drawn
Font = tuple[float, bool, bool]  # size, whether of equal width, whether bold


def draw(title: str, body: Iterable[Element]) -> Any:
    """Draws the elements of a picture, except folded ones, one below the other.

    Returns:
        A `matplotlib.figure.Figure`, which no global state of matplotlib holds.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "`visualization`: a figure needs matplotlib, which is not installed here. Install it with "
            "`pip install matplotlib`, or look at `html()`, which needs nothing.",
            name="matplotlib",
        ) from error
    figure = Figure(dpi=_DOTS_PER_INCH)
    # Between areas and texts, which are the figure's own: axes would clip each of them, and take most of the time.
    canvas = _Canvas(figure.add_axes((0, 0, 1, 1), autoscale_on=False, zorder=1.5))
    heading = Element("h1")
    heading.text = title
    right, bottom = canvas.blocks([heading, *body], 0)
    figure.set_size_inches((right + 2 * _MARGIN) / _POINTS_PER_INCH, (bottom + _MARGIN) / _POINTS_PER_INCH)
    canvas.axes.set(xlim=(-_MARGIN, right + _MARGIN), ylim=(bottom, -_MARGIN))
    canvas.axes.set_axis_off()
    return figure


class _Canvas:
    """Axes whose unit is a point, with the origin at the top left. Methods return the extent of what they draw."""

    def __init__(self, axes: Any):
        from matplotlib.image import imread
        from matplotlib.patches import Polygon

        self.axes, self.figure, self.read, self.polygon = axes, axes.figure, imread, Polygon

    def blocks(self, blocks: Iterable[Element], top: float) -> Extent:
        """Draws blocks of a page below each other, except what is folded or works on a page only."""
        paint: dict[str, Any] = {
            "div": self.blocks,
            "svg": self.drawing,
            "table": self.table,
            "p": self.flow,
            "h1": self.flow,
        }
        widest = 0.0
        for block in blocks:
            if block.tag in paint:
                right, bottom = paint[block.tag](block, top)
                widest, top = max(widest, right), bottom + (0 if block.tag == "div" else _GAP)
        return widest, top

    def table(self, table: Element, top: float) -> Extent:
        """Draws a table below its caption."""
        rows = [list(row) for row in table.iter("tr")]
        sizes = [[self.flow(cell, 0, visible=False) for cell in row] for row in rows]
        widths = [max(width for width, _ in column) + 2 * _PADDING for column in zip(*sizes, strict=True)]
        right, top = self.flow(table[0], top)
        for row, row_sizes in zip(rows, sizes, strict=True):
            left, row_height = 0.0, max(height for _, height in row_sizes) + _PADDING
            for cell, (width, height), column_width in zip(row, row_sizes, widths, strict=True):
                kind, _, step = cell.get("class", "").partition(" ")
                background, color = colors.step_colors(int(step[1:])) if step else (colors.SURFACE, colors.TEXT)
                self.box(left, top, (column_width, row_height), background, edge=colors.BORDER.light)
                start = column_width - _PADDING - width if kind == "number" else _PADDING
                self.flow(cell, top + (row_height - height) / 2, left + start, color=color)
                left += column_width
            right, top = max(right, left), top + row_height
        return right, top

    def flow(
        self, content: Element, top: float, left: float = 0, *, color: Color = colors.TEXT, visible: bool = True
    ) -> Extent:
        """Writes text line by line, with drawings on lines of their own; only measures it if not `visible`."""
        x, right, height = left, left, 0.0
        for piece, parents in _pieces(content):
            if isinstance(piece, Element):
                end, top = self.drawing(piece, top + height, left, visible=visible)
                x, right, height = left, max(right, end), 0.0
                continue
            tags = {parent.tag: parent.get("class", "") for parent in parents}
            size = next((_FONT_SIZES[tag] for tag in tags if tag in _FONT_SIZES), _FONT_SIZE)
            font: Font = size, "bdi" in tags and "p" not in tags, not tags.keys().isdisjoint(("h1", "th", "small"))
            height = max(height, size * _LINE_HEIGHT)
            fits = x + length_of(piece, *font) <= left + _LONGEST_LINE
            for word in [piece] if fits else re.findall(r"\s+|\S+", piece):
                length = length_of(word, *font)
                if left < x > left + _LONGEST_LINE - length and not word.isspace():
                    x, top = left, top + height
                base = top + height / _LINE_HEIGHT * 1.1 + (4 if "sub" in tags else 0)
                if visible and "mark" in tags:
                    self.box(x, top, (length, height), colors.tint(int(tags["mark"][1:])))
                if visible:
                    self.text(x, base, word, font, colors.MUTED if "caption" in tags else color)
                x += length
                right = max(right, x)
        return right, top + height

    def drawing(self, svg: Element, top: float, left: float = 0, *, visible: bool = True) -> Extent:
        """Draws an SVG."""
        for shape in svg.iter() if visible else ():
            number = functools.partial(_number, shape)
            color = colors.STYLES.get(shape.get("class", "").split(" ")[0], colors.TEXT)
            pairs = [point.split(",") for point in shape.get("points", "").split()]
            points = [(left + float(x), top + float(y)) for x, y in pairs]
            if shape.tag == "polyline":
                dash = "--" if shape.get("stroke-dasharray") else "-"
                options = {"color": color.light, "linewidth": number("stroke-width"), "alpha": number("opacity")}
                self.axes.plot(*zip(*points, strict=True), dash, **options)
            elif shape.tag == "polygon" and points:
                self.area(points, color)
            elif shape.tag == "circle":
                point = left + number("cx"), top + number("cy")
                self.axes.plot(*point, "o", color=color.light, markersize=2 * number("r"), markeredgewidth=0)
            elif shape.tag == "image":
                extent = left, left + number("width"), top + number("height"), top
                pixels = self.read(io.BytesIO(base64.b64decode(shape.get("href", "").partition(",")[2])), format="png")
                self.axes.imshow(pixels, extent=extent, aspect="auto", interpolation="nearest", zorder=2)
            elif shape.tag == "text":
                turn, side = 90 if shape.get("transform") else 0, _SIDES[shape.get("text-anchor", "start")]
                font = 0.9 * number("font-size"), shape.get("class") == "token", False
                self.text(left + number("x"), top + number("y"), shape.text or "", font, ha=side, rotation=turn)
        return left + _number(svg, "width"), top + _number(svg, "height")

    def box(self, x: float, y: float, size: Extent, color: Color, *, edge: str = "none") -> None:
        """Draws a filled rectangle."""
        right, bottom = x + size[0], y + size[1]
        self.area([(x, y), (right, y), (right, bottom), (x, bottom)], color, edge=edge)

    def area(self, corners: list[tuple[float, float]], color: Color, *, edge: str = "none") -> None:
        """Draws a filled polygon."""
        options = {"facecolor": color.light, "edgecolor": edge, "linewidth": 0.75, "transform": self.axes.transData}
        self.figure.add_artist(self.polygon(corners, **options))

    def text(self, x: float, y: float, text: str, font: Font, color: Color = colors.TEXT, **options: Any) -> None:
        """Writes text as it is, dollars included."""
        size, mono, bold = font
        options |= {"color": color.light, "size": size, "weight": "bold" if bold else "normal"}
        options |= {"family": families(mono), "transform": self.axes.transData}
        self.figure.text(x, y, drawable(text), parse_math=False, **options)


def _pieces(node: Element, parents: tuple[Element, ...] = ()) -> Iterator[tuple[str | Element, tuple[Element, ...]]]:
    """The texts, SVGs and line breaks in an element, each with the elements around it, the innermost first."""
    if node.tag in ("svg", "br"):
        yield node, parents
        return
    parents = (node, *parents)
    if node.text:
        yield node.text, parents
    for child in node:
        yield from _pieces(child, parents)
        if child.tail:
            yield child.tail, parents


def _number(element: Element, attribute: str) -> float:
    return float(element.get(attribute, 1))
