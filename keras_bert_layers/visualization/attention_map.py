"""`AttentionMap`: the attention of one head as a table of shares, and the base of pictures of one head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization._reading import check_index, read, run
from keras_bert_layers.visualization.picture import Picture

if TYPE_CHECKING:
    import keras

    from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer


class OneHead(Picture):
    """The attention of one head, or the mean of several. A subclass draws it, and documents the arguments."""

    _note: ClassVar[str]

    def __init__(self, tokens: Sequence[str], weights: Tensor, *, title: str = "Attention", note: str = ""):
        super().__init__(title=title, note=note or self._note)
        self.tokens = list(tokens)
        self.weights = check_weights(type(self).__name__, self.tokens, weights)

    @classmethod
    def from_model(
        cls,
        model: keras.Model,
        text: str,
        text_pair: str | None = None,
        *,
        layer: int = 0,
        head: int | None = None,
        preprocessor: TextLayer | None = None,
    ) -> Self:
        """Computes the attention of a model's head for a text.

        Args:
            model: a `BertBackbone`, or a task, whose backbone is used.
            text: the text.
            text_pair: the second text of a pair.
            layer: index of the encoder block, from 0; negative ones count from the last.
            head: index of the head, from 0; None for the mean of all heads of the block.
            preprocessor: tokenizes the text; the task's own if None.

        Raises:
            TypeError: `model` is not a backbone or a task; there is no preprocessor; `text` is not a string.
            ValueError: there is no such layer or head.
        """
        backbone, tokens = read(cls.__name__, model, text, text_pair, preprocessor)
        layer = check_index(cls.__name__, "layer", layer, backbone.config.num_layers)
        if head is not None:
            head = check_index(cls.__name__, "head", head, backbone.config.num_heads)
        heads = run(backbone, tokens)[1][layer]
        weights, name = (heads.mean(axis=0), "mean of all heads") if head is None else (heads[head], f"head {head}")
        return cls(tokens.names, weights, title=f"Attention, layer {layer}, {name}")


def check_weights(owner: str, tokens: list[str], weights: Tensor, num_axes: int = 2) -> np.ndarray:
    """`weights` as float32 with `num_axes` axes, the last two for the tokens; ValueError otherwise."""
    weights = np.asarray(weights, np.float32)
    if weights.ndim != num_axes or weights.shape[-2:] != (len(tokens), len(tokens)) or not tokens:
        layout = "(layers, heads, tokens, tokens)" if num_axes == 4 else "(tokens, tokens)"
        raise ValueError(checks.message(owner, "weights.shape", f"be {layout} of {len(tokens)} tokens", weights.shape))
    tolerance = 0.01  # bfloat16 keeps 8 bits
    if not (weights.min() >= 0 and weights.max() <= 1 + tolerance):
        raise ValueError(checks.message(owner, "weights", "be shares from 0 to 1", weights))
    return np.minimum(weights, 1)


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
