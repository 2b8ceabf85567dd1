"""`FactsPicture`: what is in a table of texts and labels, one fact below the other."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization.picture import Picture

# In pixels: the bars of a histogram, the letters beside it, and the bars in a table; all of them fit on a phone.
_LEFT, _TOP, _RIGHT, _BOTTOM, _LETTER = 60, 44, 312, 204, 7
_LONGEST_BAR, _THICKNESS = 140, 14
_MOST_BARS, _MOST_ROWS, _NAME, _TEXT = 30, 100, 36, 300  # letters of names and texts


class Fact(NamedTuple):
    """A fact in words, and what there is to draw or to copy.

    Args:
        line: the words.
        header: the names of the columns of `bars` or `rows`; or of `values`, what they are and what has them.
        bars: name -> a value from 0 on, and how it is written.
        values: numbers `(n,)`, for a histogram.
        limit: a whole number to draw beside `values`, which are then whole numbers from 1, of any size.
        rows: cells, the last of each row a text.
        num_printed: how many of the first rows a terminal may show.
        code: lines to copy.
    """

    line: str
    header: Sequence[str] = ()
    bars: Mapping[str, tuple[float, str]] = {}
    values: Sequence[float] | np.ndarray = ()
    limit: int | None = None
    rows: Sequence[tuple[Any, ...]] = ()
    num_printed: int = 0
    code: Sequence[str] = ()


class FactsPicture(Picture):
    """Facts in words, with bars, histograms, tables of texts, and lines to copy.

    Args:
        facts: the facts in order.
        title: heading.
        note: what the picture shows.

    Examples:
        >>> fact = Fact("tokens: 3 at most", ("tokens", "texts"), values=[2, 3], limit=2)
        >>> "50 % above the limit of 2" in FactsPicture([fact]).html()
        True
    """

    def __init__(self, facts: Sequence[Fact], *, title: str = "What is in a file", note: str = ""):
        super().__init__(title=title, note=note)
        self.facts = list(facts)

    def _body(self) -> list[html.Element]:
        body = []
        for fact in self.facts:
            body.append(html.element("p", fact.line))
            if fact.bars:
                body.append(_bars(fact))
            if len(fact.values):
                body += _histogram(fact)
            if fact.rows:
                body.append(_rows(fact))
            if fact.code:
                body.append(html.scroll(fact.line, html.element("pre", html.token("\n".join(fact.code)))))
        return body


def _bars(fact: Fact) -> html.Element:
    """A table with a bar beside each value, which screen readers skip."""
    longest = max(value for value, _ in fact.bars.values()) or 1
    rows = []
    for name, (value, written) in list(fact.bars.items())[:_MOST_BARS]:
        drawn = html.drawing(_LONGEST_BAR, _THICKNESS, [html.bar(0, 0, _LONGEST_BAR * value / longest, _THICKNESS)])
        rows.append([html.isolated(_shortened(name, _NAME)), html.number(written), drawn])
    return html.table(_caption(fact, len(rows)), [*fact.header, "compared"], rows)


def _rows(fact: Fact) -> html.Element:
    rows = []
    for *cells, text in fact.rows[:_MOST_ROWS]:
        shown = html.isolated(_shortened(text, _TEXT))
        style = "min-width: 9em; overflow-wrap: anywhere"  # a phone is narrow, and a word may be long
        wide = html.element("td", shown, class_="wrap", style=style)
        rows.append([*(html.isolated(_shortened(str(cell), _NAME)) for cell in cells), wide])
    return html.table(_caption(fact, len(rows)), fact.header, rows)


def _caption(fact: Fact, shown: int) -> str:
    return f"{fact.line.partition(':')[0]}: {shown:,} of {len(fact.bars) or len(fact.rows):,} shown"


def _shortened(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def _histogram(fact: Fact) -> list[html.Element]:
    """Bars of equal width, each of a range to which its upper end belongs, and the table of them."""
    values, (name, unit) = np.asarray(fact.values), fact.header
    ends = _ends(values, fact.limit)
    counts = np.bincount(np.maximum(np.searchsorted(ends, values), 1) - 1, minlength=len(ends) - 1)
    heights = (_BOTTOM - _TOP) * counts / counts.max()
    written = [f"{end:,.0f}" if fact.limit else f"{end:.3g}" for end in ends]
    places = np.linspace(_LEFT, _RIGHT, len(ends))
    parts = [
        html.label(0, 14, unit),
        *(html.label(_LEFT - 6, y, n, anchor="end") for y, n in ((_TOP + 4, f"{counts.max():,}"), (_BOTTOM + 4, "0"))),
        html.label((_LEFT + _RIGHT) / 2, _BOTTOM + 38, name, anchor="middle"),
        *(html.bar(x + 1, _BOTTOM - y, places[1] - _LEFT - 2, y) for x, y in zip(places, heights, strict=False)),
        html.line([(_LEFT, _TOP - 10), (_LEFT, _BOTTOM), (_RIGHT, _BOTTOM)], "axis"),
    ]
    labeled, most = int(np.searchsorted(ends, fact.limit or 0)), counts.argmax()
    described = f"{len(values):,} {unit}, most often from {written[most]} to {written[most + 1]}"
    if fact.limit:
        above = f"{html.percent((values > fact.limit).mean())} above the limit of {fact.limit:,}"
        x = places[labeled]
        parts.append(html.line([(x, 34), (x, _BOTTOM)], "c1", stroke_width=2, stroke_dasharray="6 4"))
        parts.append(html.label(max(x, _LETTER * len(above)), 28, above, anchor="end"))
        described += f"; {above}"
    between = 2 * -(-len(ends) // 10)
    for index in range(labeled % between, len(ends), between):
        parts.append(html.label(places[index], _BOTTOM + 18, written[index], anchor="middle"))
    rows = [[f"{a} to {b}", html.number(f"{n:,}")] for a, b, n in zip(written, written[1:], counts, strict=False)]
    table = html.table("The upper end belongs to a range, the lower one to the range before.", fact.header, rows)
    return [html.scroll(name, html.drawing(_RIGHT + 20, _BOTTOM + 48, parts, label=described)), html.folded(table)]


def _ends(values: np.ndarray, limit: int | None) -> np.ndarray:
    """The ends of ranges: twelve of equal width, or two for each doubling, with the limit among the ends."""
    if limit is None:
        return np.linspace(values.min(), values.max(), 13)
    ends = np.unique(np.round(limit * 2.0 ** (np.arange(-40, 41) / 2)))
    first, last = np.searchsorted(ends, [min(values.min(), limit), max(values.max(), limit)])
    return ends[max(first - 1, 0) : last + 1]
