"""`AttentionGrid`: the attention of all heads of all layers, as small maps side by side."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization._reading import read, run
from keras_bert_layers.visualization.attention_map import check_weights
from keras_bert_layers.visualization.picture import Picture

if TYPE_CHECKING:
    import keras

    from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer

# A head that gives less than this to one kind of position has no pattern with a name.
_PATTERN = 0.25
_SPREAD = "spread"
_SIZE = 72  # of a map, in pixels


class AttentionGrid(Picture):
    """The attention of every head of every layer, one small map each, with the pattern of the head below it.

    The pattern is the kind of position that gets most of the head's attention, averaged over the text: the token
    before, the token after, the token itself, the first token `[CLS]`, or the last one `[SEP]`; "spread" if none of
    these gets a quarter. Then follow the entropy of the head, the mean over the tokens in nats (0 if each token attends
    to one position, the logarithm of the length if to all alike), and the mean distance of its attention in tokens.

    Args:
        tokens: the tokens.
        weights: float `(num_layers, num_heads, sequence, sequence)`, in [0, 1].
        title: heading.
        note: what the picture shows.

    Attributes:
        entropies: float `(num_layers, num_heads)`, in nats.
        distances: float `(num_layers, num_heads)`, in tokens.

    Raises:
        ValueError: the shapes do not match, or a weight is out of range.

    Examples:
        >>> import numpy as np
        >>> picture = AttentionGrid(["a", "b"], np.full((3, 2, 2, 2), 0.5))
        >>> picture.habits[0][0]
        ('itself', 0.5)

    References:
        Clark et al. 2019, arXiv:1906.04341, section 3: heads that attend to the next token, the previous one, or [SEP],
        and the entropy of heads; Vig and Belinkov 2019, arXiv:1906.04284, section 4.2, distances.
    """

    def __init__(self, tokens: Sequence[str], weights: Tensor, *, title: str = "All heads", note: str = ""):
        super().__init__(title=title, note=note or _NOTE)
        self.tokens = list(tokens)
        self.weights = check_weights(type(self).__name__, self.tokens, weights, num_axes=4)
        self.habits = [[_habit(head) for head in layer] for layer in self.weights]
        logarithms = np.log(np.where(self.weights > 0, self.weights, 1))
        self.entropies = 0.0 - (self.weights * logarithms).sum(axis=-1).mean(axis=-1)
        positions = np.arange(len(self.tokens))
        self.distances = (self.weights * np.abs(positions[:, None] - positions)).sum(axis=-1).mean(axis=-1)

    @classmethod
    def from_model(
        cls, model: keras.Model, text: str, text_pair: str | None = None, *, preprocessor: TextLayer | None = None
    ) -> AttentionGrid:
        """Computes the attention of all heads of a model for a text.

        Args:
            model: a `BertBackbone`, or a task, whose backbone is used.
            text: the text.
            text_pair: the second text of a pair.
            preprocessor: tokenizes the text; the task's own if None.

        Raises:
            TypeError: `model` is not a backbone or a task; there is no preprocessor; `text` is not a string.
        """
        backbone, tokens = read(cls.__name__, model, text, text_pair, preprocessor)
        texts = " / ".join(part for part in (text, text_pair) if part is not None)
        return cls(tokens.names, run(backbone, tokens)[1], title=f"All heads on “{texts}”")

    def _body(self) -> list[html.Element]:
        heads = range(self.weights.shape[1])
        rows = [[str(layer), *(self._cell(layer, head) for head in heads)] for layer in range(len(self.weights))]
        return [html.table(_CAPTION, ["layer", *(f"head {head}" for head in heads)], rows)]

    def _cell(self, layer: int, head: int) -> html.Element:
        name, share = self.habits[layer][head]
        address = _image_address(self.weights[layer, head], colors.BETWEEN)
        image = html.element("image", href=address, width=_SIZE, height=_SIZE)
        corners = [(0, 0), (_SIZE, 0), (_SIZE, _SIZE), (0, _SIZE), (0, 0)]
        label = f"Map of layer {layer}, head {head}"
        once = [] if layer or head else [_recolored()]
        drawn = html.drawing(_SIZE, _SIZE, [*once, image, html.line(corners, "axis")], label=label)
        # All maps of a row fit into the width of the page, if they can be seen at all then.
        drawn.set("style", f"width: clamp(40px, calc(100cqi / {self.weights.shape[1] + 1} - 10px), {_SIZE}px)")
        unbroken = html.percent(share).replace(" ", "\N{NO-BREAK SPACE}")
        habit = name if name == _SPREAD else f"{name} {unbroken}"
        facts = f"{self.entropies[layer, head]:.1f} nats", f"{self.distances[layer, head]:.1f} away"
        lines = [part for fact in facts for part in (html.element("br"), fact)]
        return html.element("td", drawn, habit, *lines, class_="map")


_NOTE = (
    "Each small map is one head: rows attend to columns. The text below names where most of the attention goes, with "
)
_NOTE += "the entropy of the head and the mean distance of its attention in tokens."
_CAPTION = "One map per head, one row per layer, the first layer on top."


def _habit(weights: np.ndarray) -> tuple[str, float]:
    """The kind of position with the largest share of the attention of one head, and that share."""
    shares = {"itself": float(np.diagonal(weights).mean())}
    if len(weights) > 1:
        shares["before"] = float(np.diagonal(weights, -1).mean())
        shares["after"] = float(np.diagonal(weights, 1).mean())
        shares["[CLS]"] = float(weights[:, 0].mean())
        shares["[SEP]"] = float(weights[:, -1].mean())
    name = max(shares, key=lambda kind: shares[kind])
    return (name if shares[name] >= _PATTERN else _SPREAD), shares[name]


def _recolored() -> html.Element:
    """A filter that gives an image the accent of the page, which is another one on dark backgrounds."""
    flood = html.element("feFlood", style="flood-color: var(--accent)")
    keep = html.element("feComposite", in2="SourceAlpha", operator="in")
    return html.element("filter", flood, keep, id="kbl-accent", color_interpolation_filters="sRGB")


def _image_address(shares: np.ndarray, color: str) -> str:
    """The `data:` address of a PNG with one pixel per share: the color, as opaque as the share is large.

    Args:
        shares: float `(rows, columns)`, in [0, 1].
        color: `#rrggbb`.

    References:
        PNG Specification, third edition: color type 6, filter 0.
    """
    height, width = shares.shape
    pixels = np.empty((height, width, 4), np.uint8)
    pixels[..., :3] = [int(color[start : start + 2], 16) for start in (1, 3, 5)]
    pixels[..., 3] = np.rint(255 * shares)
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")]
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in parts
    )
    return "data:image/png;base64," + base64.b64encode(data).decode("ascii")
