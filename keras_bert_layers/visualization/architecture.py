"""The layers of a model, with the shapes of what they make and how many weights they have."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers.layers import TransformerEncoderBlock
from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization._figures import plain, write
from keras_bert_layers.visualization.picture import Picture

_AXES = ("batch", "sequence", "axis 2", "axis 3")


@dataclass(frozen=True)
class Part:
    """One row: a layer, or several that are alike.

    Args:
        name: name of the layer.
        kind: its class.
        shape: what it makes, as `(batch, sequence, 384)`; may be empty.
        num_weights: how many numbers it has.
        depth: how deep it stands in other layers.
        count: how many layers are alike.
    """

    name: str
    kind: str
    shape: str
    num_weights: int
    depth: int = 0
    count: int = 1


class Architecture(Picture):
    """The layers of a backbone or a task in the order of the data, with shapes and numbers of weights.

    Encoder blocks, which are all alike, are one row, with the parts of one block below it.

    Args:
        model: a `BertBackbone`, a task, or another functional Keras model of this package's layers.
        title: heading; made of the model's class if empty.
        note: what there is to see.

    Raises:
        TypeError: `model` is not a functional Keras model.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=7, hidden_dim=8, num_layers=3, num_heads=2, intermediate_dim=16)
        >>> picture = Architecture(kbl.BertBackbone(config))
        >>> [(part.name, part.count) for part in picture.parts if part.depth == 0 and part.num_weights]
        [('embedding', 1), ('encoder_block_0', 3), ('pooler', 1)]
    """

    def __init__(self, model: Any, *, title: str = "", note: str = ""):
        if not isinstance(model, keras.Model) or not hasattr(model, "output"):
            rule = "be a BertBackbone, a task or another functional Keras model"
            raise TypeError(checks.message(type(self).__name__, "model", rule, model))
        super().__init__(title=title or type(model).__name__, note=note)
        self.parts = _parts(model, depth=0)
        self.num_weights = model.count_params()
        self.note = note or f"{self.num_weights:,} weights. Data come in at the top."

    def _body(self) -> str:
        rows = [
            [
                f'<span style="padding-inline-start: {2 * part.depth}em">{html.token(_name(part))}</span>',
                f"<td>{html.escape(part.kind)}</td>",
                f"<td>{html.escape(part.shape)}</td>",
                html.number(_weights(part)),
            ]
            for part in self.parts
        ]
        caption = "Layers from the input to the output; what is indented is inside of what stands above it."
        table = html.table(caption, ["layer", "class", "makes", "weights"], rows)
        return html.scroll("Layers, scrolls sideways", table)

    def _size(self) -> tuple[float, float]:
        return 8.5, 0.8 + 0.42 * len(self.parts)

    def _draw(self, figure: Any) -> None:
        axes = figure.subplots()
        for row, part in enumerate(self.parts):
            left = 0.35 * part.depth
            fill = colors.tint(part.depth).light
            axes.barh(row, 10 - left, left=left, height=0.8, color=fill, edgecolor=colors.BORDER.light)
            write(axes, left + 0.15, row, _name(part), va="center", fontsize=9, weight="bold")
            write(axes, 4.1, row, part.kind, va="center", fontsize=8)
            write(axes, 6.7, row, part.shape, va="center", fontsize=8)
            write(axes, 9.85, row, _weights(part), va="center", ha="right", fontsize=8)
        plain(axes.title, f"{self.title}: {self.num_weights:,} weights")
        axes.set(xlim=(0, 10), ylim=(len(self.parts), -1))
        axes.set_axis_off()


def _parts(model: Any, depth: int) -> list[Part]:
    """The rows of a model, those of a model inside of it below its own."""
    found: list[Part] = []
    layers = [layer for layer in model.layers if depth == 0 or not isinstance(layer, keras.layers.InputLayer)]
    for _, group in itertools.groupby(layers, key=_likeness):
        layer, *others = group
        shape = "" if isinstance(layer, keras.Model) else _shape(layer.output)
        kind, num_weights = type(layer).__name__, layer.count_params()
        found.append(Part(layer.name, kind, shape, num_weights, depth=depth, count=1 + len(others)))
        if isinstance(layer, keras.Model):
            found += _parts(layer, depth + 1)
        elif isinstance(layer, TransformerEncoderBlock):
            found += _block_parts(layer, depth + 1)
    return found


def _likeness(layer: Any) -> Any:
    """Equal for blocks that are alike; other layers are like themselves alone."""
    return layer.count_params() if isinstance(layer, TransformerEncoderBlock) else layer.name


def _block_parts(block: TransformerEncoderBlock, depth: int) -> list[Part]:
    """The four parts of a block that have weights."""
    shape = _shape(block.output)
    names = ["attention", "attention_layer_norm", "feed_forward", "feed_forward_layer_norm"]
    if block.normalize_first:
        names = [names[place] for place in (1, 0, 3, 2)]
    parts = [getattr(block, name) for name in names]
    return [Part(part.name, type(part).__name__, shape, part.count_params(), depth) for part in parts]


def _shape(output: Any) -> str:
    """The shape of an output, or of the first of several."""
    first = keras.tree.flatten(output)[0]
    sizes = [name if size is None else str(size) for size, name in zip(first.shape, _AXES, strict=False)]
    return f"({', '.join(sizes)})"


def _name(part: Part) -> str:
    return part.name if part.count == 1 else f"{part.name} and {part.count - 1} more"


def _weights(part: Part) -> str:
    if not part.num_weights:
        return ""
    return f"{part.num_weights:,}" if part.count == 1 else f"{part.count} x {part.num_weights:,}"
