"""`Architecture`: the layers of a model, with their output shapes and numbers of weights."""

import itertools
from dataclasses import dataclass

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.layers import TransformerEncoderBlock
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization.picture import Picture

_AXES = ("batch", "sequence", "axis 2", "axis 3")
_INDENT = "\u2003\u2003"


@dataclass(frozen=True)
class Part:
    """One row of the table: a layer, or several equal ones.

    Args:
        name: name of the layer.
        kind: its class.
        shape: shape of its output, as `(batch, sequence, 384)`; may be empty.
        num_weights: its number of parameters.
        depth: how many layers it is nested in.
        count: how many equal layers the row shows.
    """

    name: str
    kind: str
    shape: str
    num_weights: int
    depth: int = 0
    count: int = 1

    def cells(self) -> list[html.Element | str]:
        """The row of the table."""
        name, weights = self.name, f"{self.num_weights:,}" if self.num_weights else ""
        if self.count > 1:
            name, weights = f"{name} and {self.count - 1} more", weights and f"{self.count} x {weights}"
        return [html.token(_INDENT * self.depth + name), self.kind, self.shape, html.number(weights)]


class Architecture(Picture):
    """The layers of a backbone or a task, from input to output, with output shapes and numbers of weights.

    Equal encoder blocks are one row, followed by the parts of one block.

    Args:
        model: a `BertBackbone`, a task, or another functional Keras model of this package's layers.
        title: heading; the model's class if empty.
        note: what the picture shows.

    Raises:
        TypeError: `model` is not a functional Keras model.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=7, hidden_dim=8, num_layers=3, num_heads=2, intermediate_dim=16)
        >>> picture = Architecture(kbl.BertBackbone(config))
        >>> [(part.name, part.count) for part in picture.parts if part.depth == 0 and part.num_weights]
        [('embedding', 1), ('encoder_block_0', 3), ('pooler', 1)]
    """

    def __init__(self, model: keras.Model, *, title: str = "", note: str = ""):
        if not isinstance(model, keras.Model) or not hasattr(model, "output"):
            rule = "be a BertBackbone, a task or another functional Keras model"
            raise TypeError(checks.message(type(self).__name__, "model", rule, model))
        super().__init__(title=title or type(model).__name__, note=note)
        self.parts = _parts(model, depth=0)
        self.num_weights = model.count_params()
        self.note = note or f"{self.num_weights:,} weights. The inputs are at the top."

    def _body(self) -> list[html.Element]:
        rows = [part.cells() for part in self.parts]
        caption = "Layers from the input to the output; an indented layer is inside the one above it."
        return [html.table(caption, ["layer", "class", "output", "weights"], rows)]


def _parts(model: keras.Model, depth: int) -> list[Part]:
    """The rows of a model; those of a nested model follow its own."""
    found: list[Part] = []
    layers = [layer for layer in model.layers if depth == 0 or not isinstance(layer, keras.layers.InputLayer)]
    for _, group in itertools.groupby(
        layers, key=lambda layer: layer.count_params() if isinstance(layer, TransformerEncoderBlock) else layer.name
    ):
        layer, *others = group
        shape = "" if isinstance(layer, keras.Model) else _shape(layer.output)
        kind, num_weights = type(layer).__name__, layer.count_params()
        found.append(Part(layer.name, kind, shape, num_weights, depth=depth, count=1 + len(others)))
        if isinstance(layer, keras.Model):
            found += _parts(layer, depth + 1)
        elif isinstance(layer, TransformerEncoderBlock):
            found += _block_parts(layer, depth + 1)
    return found


def _block_parts(block: TransformerEncoderBlock, depth: int) -> list[Part]:
    """The four parts of a block that have weights."""
    shape = _shape(block.output)
    names = ["attention", "attention_layer_norm", "feed_forward", "feed_forward_layer_norm"]
    if block.normalize_first:
        names = [names[index] for index in (1, 0, 3, 2)]
    parts = [getattr(block, name) for name in names]
    return [Part(part.name, type(part).__name__, shape, part.count_params(), depth) for part in parts]


def _shape(output: Tensor) -> str:
    """The shape of an output, or of the first of several."""
    first = keras.tree.flatten(output)[0]
    sizes = [name if size is None else str(size) for size, name in zip(first.shape, _AXES, strict=False)]
    return f"({', '.join(sizes)})"
