"""All heads of all layers, small, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization._figures import plain
from keras_bert_layers.visualization._one_head import check_weights, color_map
from keras_bert_layers.visualization._png import image_address
from keras_bert_layers.visualization._reading import attention, read
from keras_bert_layers.visualization.picture import Picture

# A head that gives less than this to one kind of place has no habit that one could name.
_HABIT = 0.25


class AttentionGrid(Picture):
    """The attention of every head of every layer, one small map each, with the habit of the head below.

    The habit is the kind of place that gets most of the head's attention in the mean over the text: the token before,
    the token behind, the token itself, the first token `[CLS]`, or the last one `[SEP]`; "spread" where none of these
    gets a quarter.

    Args:
        tokens: one label a token.
        weights: float `(num_layers, num_heads, sequence, sequence)`, in [0, 1].
        title: heading.
        note: what there is to see.

    Raises:
        ValueError: the shapes do not fit, or a weight is out of range.

    Examples:
        >>> import numpy as np
        >>> picture = AttentionGrid(["a", "b"], np.full((3, 2, 2, 2), 0.5))
        >>> picture.habits[0][0]
        ('itself', 0.5)

    References:
        Clark et al. 2019, arXiv:1906.04341, section 3: heads that look at the next token, the previous one, at [SEP].
    """

    def __init__(self, tokens: Sequence[str], weights: Any, *, title: str = "All heads", note: str = ""):
        super().__init__(title=title, note=note or _NOTE)
        self.tokens = list(tokens)
        self.weights = check_weights(type(self).__name__, self.tokens, weights, num_axes=4)
        self.habits = [[_habit(head) for head in layer] for layer in self.weights]

    @classmethod
    def from_model(
        cls, model: Any, text: str, text_pair: str | None = None, *, preprocessor: Any = None
    ) -> AttentionGrid:
        """What all heads of a model do with a text.

        Args:
            model: a `BertBackbone`, or a task, of which the backbone is asked.
            text: the text.
            text_pair: the second text of a pair.
            preprocessor: what makes tokens of the text; the task's own if None.

        Raises:
            TypeError: `model` or `preprocessor` is none; `text` is not a string.
        """
        backbone, tokens = read(cls.__name__, model, text, text_pair, preprocessor)
        texts = " / ".join(part for part in (text, text_pair) if part is not None)
        return cls(tokens.names, attention(backbone, tokens), title=f"All heads on “{texts}”")

    def _body(self) -> str:
        num_heads = self.weights.shape[1]
        header = ["layer", *(f"head {head}" for head in range(num_heads))]
        rows = [
            [str(layer), *(self._cell(layer, head) for head in range(num_heads))] for layer in range(len(self.weights))
        ]
        return html.scroll("All heads, scrolls sideways", html.table(_CAPTION, header, rows))

    def _cell(self, layer: int, head: int) -> str:
        name, share = self.habits[layer][head]
        habit = name if name == _SPREAD else f"{name} {html.percent(share)}"
        address = image_address(self.weights[layer, head], colors.BETWEEN)
        return f'<td><img src="{address}" alt="Map of layer {layer}, head {head}">{html.escape(habit)}</td>'

    def _size(self) -> tuple[float, float]:
        num_layers, num_heads = self.weights.shape[:2]
        return 1.0 + 1.1 * num_heads, 1.0 + 1.3 * num_layers

    def _draw(self, figure: Any) -> None:
        num_layers, num_heads = self.weights.shape[:2]
        all_axes = figure.subplots(num_layers, num_heads, squeeze=False)
        for layer, row in enumerate(all_axes):
            for head, axes in enumerate(row):
                axes.imshow(self.weights[layer, head], cmap=color_map(), vmin=0, vmax=1)
                axes.set_xticks([])
                axes.set_yticks([])
                axes.set_xlabel(self.habits[layer][head][0], fontsize=8)
                if layer == 0:
                    axes.set_title(f"head {head}", fontsize=9)
            row[0].set_ylabel(f"layer {layer}", fontsize=9)
        plain(figure.suptitle("All heads"), self.title)


_SPREAD = "spread"
_NOTE = (
    "Each small map is one head: rows look, columns are looked at. Below it stands where most of the attention goes."
)
_CAPTION = "One map a head, one row a layer, the first layer on top."


def _habit(weights: np.ndarray) -> tuple[str, float]:
    """The kind of place with the largest share of the attention of one head, and that share."""
    length = len(weights)
    columns = np.arange(length)
    shares = {"itself": float(weights[columns, columns].mean())}
    if length > 1:
        shares["before"] = float(weights[columns[1:], columns[:-1]].mean())
        shares["behind"] = float(weights[columns[:-1], columns[1:]].mean())
        shares["[CLS]"] = float(weights[:, 0].mean())
        shares["[SEP]"] = float(weights[:, -1].mean())
    name = max(shares, key=lambda kind: shares[kind])
    return (name, shares[name]) if shares[name] >= _HABIT else (_SPREAD, shares[name])
