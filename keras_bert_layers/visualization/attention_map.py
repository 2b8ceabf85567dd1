"""Who looks at whom: the attention of one head as a table of shares."""

from __future__ import annotations

from typing import Any

from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization._figures import label_ticks, plain
from keras_bert_layers.visualization._one_head import OneHead, color_map


class AttentionMap(OneHead):
    """The attention of one head, or of several in the mean: how much each token looks at each other.

    Row `i`, column `j` is the share of its attention that token `i` gives to token `j`. Every row sums to 1.

    Args:
        tokens: one label a token.
        weights: float `(sequence, sequence)`, in [0, 1].
        title: heading.
        note: what there is to see.

    Raises:
        ValueError: the shapes do not fit, or a weight is out of range.

    Examples:
        >>> picture = AttentionMap(["un", "##happy"], [[0.25, 0.75], [0.5, 0.5]])
        >>> ">75<" in picture.html()
        True

    References:
        Vaswani et al. 2017, arXiv:1706.03762, section 3.2.1 and figure 3; Clark et al. 2019, arXiv:1906.04341, on what
        BERT's heads look at.
    """

    _note = "Each row is a token, and says how much it looks at each column."

    def _body(self) -> str:
        names = [html.token(token) for token in self.tokens]
        rows = [
            [name, *(f'<td class="number s{colors.step_of(share)}">{100 * share:.0f}</td>' for share in row)]
            for name, row in zip(names, self.weights.tolist(), strict=True)
        ]
        header = ["from \\ to", *names]
        return html.scroll("Attention, scrolls sideways", html.table(_CAPTION, header, rows))

    def _size(self) -> tuple[float, float]:
        side = 2.0 + 0.3 * len(self.tokens)
        return side, side

    def _draw(self, figure: Any) -> None:
        axes = figure.subplots()
        image = axes.imshow(self.weights, cmap=color_map(), vmin=0, vmax=1)
        label_ticks(axes.yaxis, self.tokens)
        label_ticks(axes.xaxis, self.tokens, rotation=90)
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
        plain(axes.title, self.title)
        axes.set_ylabel("from")
        axes.set_xlabel("to")
        figure.colorbar(image, ax=axes, shrink=0.6, label="share of attention")


_CAPTION = "How much of its attention the token of a row gives to the token of a column, in percent."
