"""`AttentionLines`: the attention of one head as lines from token to token."""

import hashlib
from xml.etree.ElementTree import tostring

import numpy as np

from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization.attention_map import OneHead

# A thinner line cannot be seen.
_FAINTEST = 0.03

_ROW = 26  # height of a token, in pixels
_LETTER = 8.5  # width of a letter, in pixels
_GAP = 130  # width of the lines, in pixels
_NUM_LARGEST = 3


class AttentionLines(OneHead):
    """The attention of one head as lines, from each token on the left to those it attends to, on the right.

    The stronger a line, the larger its share. A reader of the page can choose the lines of one token, and a table names
    the tokens that each token attends to most.

    Args:
        tokens: the tokens.
        weights: float `(sequence, sequence)`, in [0, 1]; `[i, j]` is how much token i attends to token j.
        title: heading.
        note: what the picture shows.

    Raises:
        ValueError: the shapes do not match, or a weight is out of range.

    Examples:
        >>> picture = AttentionLines(["un", "##happy"], [[0.25, 0.75], [0.5, 0.5]])
        >>> picture.html().count("<polyline")
        4

    References:
        Vig 2019, arXiv:1906.05714, section 3.1 (the attention-head view).
    """

    _note = "Each line goes from a token to one that it attends to. The stronger the line, the larger its share."

    def _body(self) -> list[html.Element]:
        drawn = self._drawing()
        # Several pictures on one page need different names.
        name = "kbl-" + hashlib.sha256(self.title.encode() + tostring(drawn)).hexdigest()[:12]
        return [*self._choice(name), html.scroll("Lines", drawn), self._largest()]

    def _choice(self, name: str) -> list[html.Element]:
        """Radio buttons for one token or all, and the rules that hide the other lines."""
        rules = "".join(
            f'#{name}:has([value="{value}"]:checked) ~ .scroll polyline:not(.f{value}) {{ display: none; }} '
            for value in range(len(self.tokens))
        )
        buttons = []
        for value, label in enumerate(["all tokens", *map(html.token, self.tokens)], start=-1):
            checked = {"checked": "checked"} if value < 0 else {}
            button = html.element("input", type="radio", name=name, value=value, **checked)
            buttons.append(html.element("label", button, " ", label))
        legend = html.element("legend", "Attention of")
        return [html.element("style", rules), html.element("fieldset", legend, *buttons, id=name)]

    def _drawing(self) -> html.Element:
        left = _LETTER * max(len(token) for token in self.tokens) + 12
        right = left + _GAP
        parts = []
        for row, (start, end) in enumerate([("from", "to"), *zip(self.tokens, self.tokens, strict=True)]):
            height = _height(row) + 5
            parts.append(html.label(left - 6, height, start, anchor="end", size=14, class_="token"))
            parts.append(html.label(right + 6, height, end, size=14, class_="token"))
        for row, shares in enumerate(self.weights.tolist(), start=1):
            parts += [
                html.line(
                    [(left, _height(row)), (right, _height(column))],
                    f"c0 f{row - 1}",
                    stroke_width=f"{0.5 + 3.5 * share:.2f}",
                    opacity=f"{0.15 + 0.85 * share:.2f}",
                )
                for column, share in enumerate(shares, start=1)
                if share >= _FAINTEST
            ]
        label = "Lines from each token to those it attends to; the table below has the largest shares."
        return html.drawing(left + right, _height(len(self.tokens)) + _ROW / 2, parts, label=label)

    def _largest(self) -> html.Element:
        """A table of the largest shares."""
        num_largest = min(_NUM_LARGEST, len(self.tokens))
        rows = []
        for token, shares in zip(self.tokens, self.weights, strict=True):
            largest = np.argsort(-shares, kind="stable")[:num_largest]
            cells = [(html.token(self.tokens[index]), f" {html.percent(float(shares[index]))}") for index in largest]
            rows.append([html.token(token), *(html.element("td", *cell) for cell in cells)])
        header = ["from", *("most to", "then to", "then to")[:num_largest]]
        return html.folded(html.table("Where the largest shares of each token's attention go.", header, rows))


def _height(row: int) -> float:
    return _ROW * (row + 0.5)
