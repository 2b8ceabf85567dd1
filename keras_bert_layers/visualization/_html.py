"""HTML pages and the elements of pictures (HTML and SVG); text of users and models is escaped."""

import html
import re
import string
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, tostring

from keras_bert_layers.visualization import _colors as colors


def style_sheet() -> str:
    """The rules, all of them for the figure alone, so that a notebook or a site keeps its own style.

    `light-dark` follows the `color-scheme` of the page: what the reader prefers, or what a switch of the site sets. The
    classes `s0` to `s8` are shades of weights, `c0` to `c5` categories.
    """
    figure = "figure.kbl-picture"
    names = ("SURFACE", "TEXT", "MUTED", "BORDER", "ACCENT")
    variables = " ".join(f"--{name.lower()}: {getattr(colors, name).css()};" for name in names)
    rules = f"{figure} {{ {variables} }}\n" + Path(__file__).with_name("picture.css").read_text(encoding="utf-8")
    for step in range(colors.NUM_STEPS):
        background, text = colors.step_colors(step)
        rules += f"{figure} td.s{step} {{ background: {background.css()}; color: {text.css()}; }}\n"
    for style, color in colors.STYLES.items():
        rules += f"{figure} svg .{style} {{ stroke: {color.css()}; fill: {color.css()}; }}\n"
    for index in range(len(colors.CATEGORIES)):
        rules += f"{figure} mark.c{index} {{ background: {colors.tint(index).css()}; }}\n"
    return rules


Point = tuple[float, float]


def page(title: str, note: str, body: Iterable[Element]) -> str:
    """A complete page. Its policy allows what is in it and nothing else: no script, no request."""
    template = string.Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    figure = _figure(element("h1", title), note, body)
    return template.substitute(title=html.escape(_allowed(title)), style=style_sheet(), figure=figure)


def fragment(title: str, note: str, body: Iterable[Element]) -> str:
    """The same as a part of another page, without the empty lines at which Markdown ends a block of HTML."""
    style = " ".join(line.strip() for line in style_sheet().splitlines())
    return f"<style>{style}</style>\n{_figure(element('strong', title), note, body)}\n"


def _figure(heading: Element, note: str, body: Iterable[Element]) -> str:
    caption = element("figcaption", heading, *([element("p", note)] if note else []))
    figure = element("figure", caption, *body, class_="kbl-picture")
    return _allowed(tostring(figure, encoding="unicode", method="html")).replace("\n", "&#10;")


def _allowed(text: str) -> str:
    """The text with U+FFFD for each control character or lone surrogate, which no page may hold."""
    return re.sub(r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", text)


def element(tag: str, *content: Any, **attributes: object) -> Element:
    """An element that contains text and other elements.

    Args:
        tag: its name.
        *content: strings and elements.
        **attributes: `stroke_width` and `class_` name `stroke-width` and `class`.
    """
    made = Element(tag, {name.strip("_").replace("_", "-"): str(value) for name, value in attributes.items()})
    for part in content:
        if isinstance(part, Element):
            made.append(part)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + part
        else:
            made.text = (made.text or "") + part
    return made


def isolated(text: str, **attributes: object) -> Element:
    """Text of a user, whose language and direction do not affect the text around it."""
    return element("bdi", text, **attributes, translate="no")


def token(name: str) -> Element:
    """A token, which is written from left to right in every script."""
    return isolated(name, dir="ltr")


def turned(name: str) -> Element:
    """A token as the narrow header of a column, written from the bottom to the top."""
    return element("span", token(name), class_="turned")


def number(text: str, style: str = "") -> Element:
    """A table cell for a number."""
    return element("td", text, class_=f"number {style}".strip())


def scroll(label: str, *content: Element) -> Element:
    """A box for content that may be wider than the screen; it scrolls by keyboard too."""
    return element("div", *content, class_="scroll", role="group", aria_label=label, tabindex=0)


def table(caption: str, header: Sequence[Element | str], rows: Iterable[Sequence[Any]]) -> Element:
    """A table whose first row and first column are headers.

    Args:
        caption: text above the table.
        header: contents of the first row.
        rows: contents of the others; a `td` element is taken as it is.
    """
    head = element("tr", *(element("th", name, scope="col") for name in header))
    body = []
    for first, *cells in rows:
        made = [cell if getattr(cell, "tag", "") == "td" else element("td", cell) for cell in cells]
        body.append(element("tr", element("th", first, scope="row"), *made))
    parts = element("caption", element("span", caption)), element("thead", head), element("tbody", *body)
    return scroll(caption, element("table", *parts, class_="kbl-table"))


def folded(content: Element) -> Element:
    """Content that a page shows on request, and a figure leaves out."""
    return element("details", element("summary", "The numbers"), content)


def percent(share: float) -> str:
    """A share in percent, with a decimal if it would be 0 without."""
    value = 100 * share
    return f"{value:.0f} %" if value >= 0.95 or value < 0.05 else f"{value:.1f} %"


def drawing(width: float, height: float, parts: Iterable[Element], *, label: str = "") -> Element:
    """A drawing; `label` describes it to a screen reader, which skips a drawing without one."""
    role = {"role": "img", "aria-label": label} if label else {"aria-hidden": "true"}
    size = {"viewBox": f"0 0 {width:g} {height:g}", "width": f"{width:g}", "height": f"{height:g}"}
    return element("svg", *parts, **size, **role)


def line(points: Iterable[Point], style: str = "c0", **attributes: object) -> Element:
    """A line through points."""
    return element("polyline", class_=style, **attributes, points=_written(points))


def area(corners: Iterable[Point], style: str = "c0") -> Element:
    """A filled polygon."""
    return element("polygon", class_=style, points=_written(corners))


def bar(left: float, top: float, width: float, height: float, style: str = "c0") -> Element:
    """A filled rectangle."""
    right, bottom = left + width, top + height
    return area([(left, top), (right, top), (right, bottom), (left, bottom)], style)


def disc(x: float, y: float, radius: float, style: str = "c0") -> Element:
    """A filled circle."""
    return element("circle", class_=style, cx=f"{x:.1f}", cy=f"{y:.1f}", r=radius)


def label(x: float, y: float, text: str, *, anchor: str = "start", size: int = 13, **attributes: object) -> Element:
    """Text at a point of its base line."""
    position = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor, "font-size": size}
    return element("text", text, **attributes, **position)


def _written(points: Iterable[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
