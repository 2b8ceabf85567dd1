"""The attention of one head as a table of shares."""

from __future__ import annotations

from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization._one_head import OneHead


class AttentionMap(OneHead):
    """The attention of one head, or the mean of several: how much each token attends to each other token.

    Row `i`, column `j` is the share of its attention that token `i` gives to token `j`. Every row sums to 1.

    Args:
        tokens: the tokens.
        weights: float `(sequence, sequence)`, in [0, 1].
        title: heading.
        note: what the picture shows.

    Raises:
        ValueError: the shapes do not match, or a weight is out of range.

    Examples:
        >>> picture = AttentionMap(["un", "##happy"], [[0.25, 0.75], [0.5, 0.5]])
        >>> ">75<" in picture.html()
        True

    References:
        Vaswani et al. 2017, arXiv:1706.03762, section 3.2.1 and figure 3; Clark et al. 2019, arXiv:1906.04341, on what
        BERT's heads attend to.
    """

    _note = "Each row is a token, and shows how much it attends to each column."

    def _body(self) -> list[html.Element]:
        rows = [
            [html.token(name), *(html.number(f"{100 * share:.0f}", f"s{colors.step_of(share)}") for share in shares)]
            for name, shares in zip(self.tokens, self.weights.tolist(), strict=True)
        ]
        return [html.table(_CAPTION, ["from \\ to", *map(html.turned, self.tokens)], rows)]


_CAPTION = "How much of its attention the token of a row gives to the token of a column, in percent."
