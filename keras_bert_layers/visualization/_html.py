"""Pieces of HTML that the pictures are made of. Whatever comes from a text, a model or a user is escaped here."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from keras_bert_layers.visualization._style import style_sheet

# The page may show what is in it and nothing else: no script runs, nothing is asked of another machine.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def escape(text: object) -> str:
    """Text as text, also inside of an attribute, and without the blank lines at which Markdown ends a block."""
    return html.escape(str(text), quote=True).replace("\n", "&#10;")


def isolated(text: object) -> str:
    """Foreign text whose direction and language do not reach what stands round it."""
    return f'<bdi translate="no">{escape(text)}</bdi>'


def token(name: object) -> str:
    """An entry of a vocabulary, which is written from left to right whatever its letters are."""
    return f'<bdi dir="ltr" translate="no">{escape(name)}</bdi>'


def page(title: str, note: str, body: str) -> str:
    """A whole page that stands by itself."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n:root {{ color-scheme: light dark; }}\n"
        f"body {{ margin: 0.75rem; font-size: 1rem; }}\n{style_sheet()}</style>\n</head>\n<body>\n<main>\n"
        f"{_figure(f'<h1>{escape(title)}</h1>', note, body)}</main>\n</body>\n</html>\n"
    )


def fragment(title: str, note: str, body: str) -> str:
    """The same as a part of another page."""
    sheet = "".join(line.strip() + " " for line in style_sheet().splitlines())  # one line: Markdown ends at a blank one
    return f"<style>{sheet}</style>\n{_figure(f'<strong>{escape(title)}</strong>', note, body)}"


def _figure(heading: str, note: str, body: str) -> str:
    paragraph = f"<p>{escape(note)}</p>" if note else ""
    return f'<figure class="kbl-picture">\n<figcaption>{heading}{paragraph}</figcaption>\n{body}\n</figure>\n'


def scroll(label: str, content: str) -> str:
    """Content that may be wider than the screen, and is moved by keyboard too."""
    return f'<div class="scroll" role="group" aria-label="{escape(label)}" tabindex="0">\n{content}\n</div>'


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML; the first column and the first row are headers.

    Args:
        caption: text above the table.
        header: what is in the cells of the first row.
        rows: what is in the first cell, and behind it whole cells, `<td>` and `</td>` included.
    """
    top = "".join(f'<th scope="col">{cell}</th>' for cell in header)
    lines = [f'<tr><th scope="row">{first}</th>{"".join(cells)}</tr>' for first, *cells in rows]
    body = "\n".join(lines)
    return (
        f'<table class="kbl-table">\n<caption><span>{escape(caption)}</span></caption>\n<thead><tr>{top}</tr></thead>\n'
        f"<tbody>{body}</tbody>\n</table>"
    )


def number(text: object) -> str:
    """A cell with a number in it."""
    return f'<td class="number">{escape(text)}</td>'


def details(summary: str, content: str) -> str:
    """What is there on request."""
    return f"<details>\n<summary>{escape(summary)}</summary>\n{content}\n</details>"


def drawing(width: float, height: float, *, label: str, content: str) -> str:
    """A drawing with a text that says what it shows."""
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img" '
        f'aria-label="{escape(label)}">\n{content}\n</svg>'
    )


def percent(share: float) -> str:
    """A share in percent, with a decimal where it would be 0 otherwise."""
    value = 100 * share
    return f"{value:.0f} %" if value >= 0.95 or value < 0.05 else f"{value:.1f} %"
