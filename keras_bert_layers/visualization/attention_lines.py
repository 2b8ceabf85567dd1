"""Attention as lines from token to token."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization._figures import plain, write
from keras_bert_layers.visualization._one_head import OneHead

# Thinner than this a line says nothing.
_FAINTEST = 0.03

_ROW = 26  # height of a token, in pixels
_LETTER = 8.5  # width of a letter, in pixels
_GAP = 130  # where the lines are, in pixels
_NUM_LARGEST = 3


class AttentionLines(OneHead):
    """The attention of one head as lines: from each token on the left to those it looks at, on the right.

    The stronger a line, the larger its share. On the page, a choice shows the lines of one token alone, and a table
    names the tokens that each one looks at most.

    Args:
        tokens: one label a token.
        weights: float `(sequence, sequence)`, in [0, 1]; `[i, j]` is how much i looks at j.
        title: heading.
        note: what there is to see.

    Raises:
        ValueError: the shapes do not fit, or a weight is out of range.

    Examples:
        >>> picture = AttentionLines(["un", "##happy"], [[0.25, 0.75], [0.5, 0.5]])
        >>> picture.html().count("<line")
        4

    References:
        Vig 2019, arXiv:1906.05714, section 3.1 (the attention-head view).
    """

    _note = "Each line goes from a token to one that it looks at. The stronger the line, the larger its share."

    def _body(self) -> str:
        drawn = self._drawing()
        name = "kbl-" + hashlib.sha256((self.title + drawn).encode()).hexdigest()[:12]
        return f'<div id="{name}">\n{self._choice(name)}\n{drawn}\n</div>\n{self._largest()}'

    def _choice(self, name: str) -> str:
        """One token to look from, or all: radio buttons, and the rules that they switch."""
        labels = ["all tokens", *self.tokens]
        buttons = "\n".join(
            f'<label><input type="radio" name="{name}" value="{value}"{" checked" if value < 0 else ""}> '
            f"{html.token(label) if value >= 0 else label}</label>"
            for value, label in enumerate(labels, start=-1)
        )
        rules = "".join(
            f'#{name}:has([value="{value}"]:checked) g:not(.f{value}) {{ display: none; }} '
            for value in range(len(self.tokens))
        )
        return f"<style>{rules}</style>\n<fieldset><legend>Look from</legend>\n{buttons}\n</fieldset>"

    def _drawing(self) -> str:
        side = _LETTER * max(len(token) for token in self.tokens) + 12
        width, height = 2 * side + _GAP, _ROW * (len(self.tokens) + 1)
        parts = [_text(side, 0, "end", "from"), _text(side + _GAP, 0, "start", "to")]
        for place, token in enumerate(self.tokens, start=1):
            parts += [_text(side, place, "end", token), _text(side + _GAP, place, "start", token)]
        for looking, row in enumerate(self.weights.tolist()):
            lines = "".join(
                f'<line class="c0" x1="{side:g}" y1="{_height(looking + 1):g}" x2="{side + _GAP:g}" '
                f'y2="{_height(seen + 1):g}" stroke-width="{_width(share):.2f}" opacity="{_opacity(share):.2f}"/>'
                for seen, share in enumerate(row)
                if share >= _FAINTEST
            )
            parts.append(f'<g class="f{looking}">{lines}</g>')
        label = "Lines from each token to those it looks at; the table below has the largest shares."
        return html.scroll("Lines", html.drawing(width, height, label=label, content="\n".join(parts)))

    def _largest(self) -> str:
        """The table of the largest shares."""
        num_largest = min(_NUM_LARGEST, len(self.tokens))
        rows = []
        for token, row in zip(self.tokens, self.weights, strict=True):
            seen = np.argsort(-row, kind="stable")[:num_largest]
            cells = [f"<td>{html.token(self.tokens[place])} {html.percent(float(row[place]))}</td>" for place in seen]
            rows.append([html.token(token), *cells])
        header = ["from", *("most to", "then to", "then to")[:num_largest]]
        table = html.table("Where the largest shares of each token's attention go.", header, rows)
        return html.details("The numbers", html.scroll("The numbers", table))

    def _size(self) -> tuple[float, float]:
        return 2.5 + 0.16 * max(len(token) for token in self.tokens), 0.8 + 0.28 * len(self.tokens)

    def _draw(self, figure: Any) -> None:
        axes = figure.subplots()
        for looking, row in enumerate(self.weights.tolist()):
            for seen, share in enumerate(row):
                if share >= _FAINTEST:
                    style = {"alpha": _opacity(share), "linewidth": _width(share)}
                    axes.plot([0, 1], [looking, seen], color=colors.ACCENT.light, **style)
        for place, token in enumerate(self.tokens):
            write(axes, -0.03, place, token, ha="right", va="center")
            write(axes, 1.03, place, token, ha="left", va="center")
        plain(axes.title, self.title)
        axes.set(xlim=(-0.8, 1.8), ylim=(len(self.tokens) - 0.4, -0.6))
        axes.set_axis_off()


def _opacity(share: float) -> float:
    return 0.15 + 0.85 * share


def _width(share: float) -> float:
    return 0.5 + 3.5 * share


def _height(place: int) -> float:
    return _ROW * (place + 0.5)


def _text(x: float, place: int, anchor: str, text: str) -> str:
    shift = -6 if anchor == "end" else 6
    return (
        f'<text class="token" x="{x + shift:g}" y="{_height(place) + 5:g}" text-anchor="{anchor}" font-size="14">'
        f"{html.escape(text)}</text>"
    )
