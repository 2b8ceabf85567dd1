"""Who looks at whom: the attention of one head as a table of shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization._figures import label_ticks, plain
from keras_bert_layers.visualization._reading import attention, check_index, parts_of, tokens_of
from keras_bert_layers.visualization.picture import Picture


class AttentionMap(Picture):
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

    def __init__(self, tokens: Sequence[str], weights: Any, *, title: str = "Attention", note: str = ""):
        super().__init__(title=title, note=note or "Each row is a token, and says how much it looks at each column.")
        self.tokens = list(tokens)
        self.weights = check_weights(type(self).__name__, self.tokens, weights)

    @classmethod
    def from_model(
        cls,
        model: Any,
        text: str,
        text_pair: str | None = None,
        *,
        layer: int = 0,
        head: int | None = None,
        preprocessor: Any = None,
    ) -> AttentionMap:
        """What a model's head does with a text.

        Args:
            model: a `BertBackbone`, or a task, of which the backbone is asked.
            text: the text.
            text_pair: the second text of a pair.
            layer: which encoder block, from 0; negative ones count from the last.
            head: which head, from 0; None for the mean of all heads of the block.
            preprocessor: what makes tokens of the text; the task's own if None.

        Raises:
            TypeError: `model` or `preprocessor` is none; `text` is not a string.
            ValueError: no such layer or head.
        """
        tokens, weights, place = one_head(
            cls.__name__, model, text, text_pair, layer=layer, head=head, preprocessor=preprocessor
        )
        return cls(tokens, weights, title=f"Attention, {place}")

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


def one_head(
    owner: str,
    model: Any,
    text: str,
    text_pair: str | None,
    *,
    layer: int,
    head: int | None,
    preprocessor: Any,
) -> tuple[list[str], np.ndarray, str]:
    """Tokens, weights `(sequence, sequence)`, and a name for the head."""
    backbone, preprocessor = parts_of(owner, model, preprocessor)
    layer = check_index(owner, "layer", layer, backbone.config.num_layers)
    if head is not None:
        head = check_index(owner, "head", head, backbone.config.num_heads)
    tokens = tokens_of(owner, preprocessor, text, text_pair)
    heads = attention(backbone, tokens)[layer]
    weights, name = (heads.mean(axis=0), "mean of all heads") if head is None else (heads[head], f"head {head}")
    return tokens.names, weights, f"layer {layer}, {name}"


def check_weights(owner: str, tokens: list[str], weights: Any, num_axes: int = 2) -> np.ndarray:
    """`weights` as float32 of `num_axes` axes, the last two of the tokens; ValueError otherwise."""
    weights = np.asarray(weights, np.float32)
    if weights.ndim != num_axes or weights.shape[-2:] != (len(tokens), len(tokens)) or not tokens:
        layout = "(layers, heads, tokens, tokens)" if num_axes == 4 else "(tokens, tokens)"
        raise ValueError(checks.message(owner, "weights.shape", f"be {layout} of {len(tokens)} tokens", weights.shape))
    tolerance = 0.01  # bfloat16 keeps 8 bits
    if not (weights.min() >= 0 and weights.max() <= 1 + tolerance):
        raise ValueError(checks.message(owner, "weights", "be shares from 0 to 1", weights))
    return np.minimum(weights, 1)


def color_map() -> Any:
    """From no weight to all of it, in the colours of the pages."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("keras_bert_layers", [colors.SURFACE.light, colors.ACCENT.light])
