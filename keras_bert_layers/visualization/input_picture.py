"""What goes into BERT: token, segment and position embeddings, summed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization._figures import plain, write
from keras_bert_layers.visualization._reading import read
from keras_bert_layers.visualization.picture import Picture

ROWS = ("token", "segment", "position")
_NUM_SHOWN = 12  # numbers of a vector that are drawn
_BAR, _BAR_HEIGHT = 6, 28  # pixels


class InputPicture(Picture):
    """The input of BERT as in figure 2 of its paper: three vectors for each token, and their sum.

    Each vector is drawn as a strip of its first 12 numbers. Its length, below, is of the whole vector.

    Args:
        tokens: one label a token.
        segments: the segment of each token, integers `(sequence,)`.
        vectors: `"token"`, `"segment"` and `"position"`, float `(sequence, embedding_dim)` each.
        title: heading.
        note: what there is to see.

    Raises:
        ValueError: the shapes do not fit.

    Examples:
        >>> import numpy as np
        >>> vectors = {name: np.ones((2, 5)) for name in ("token", "segment", "position")}
        >>> picture = InputPicture(["un", "##happy"], [0, 0], vectors)
        >>> float(picture.sum[0, 0])
        3.0

    References:
        Devlin et al. 2018, arXiv:1810.04805, section 3 and figure 2.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        segments: Sequence[int],
        vectors: Mapping[str, Any],
        *,
        title: str = "What goes into BERT",
        note: str = "",
    ):
        super().__init__(title=title, note=note or _NOTE)
        self.tokens = list(tokens)
        self.segments = [int(segment) for segment in segments]
        self.vectors = {name: np.asarray(vectors[name], np.float32) for name in ROWS}
        shapes = [vector.shape for vector in self.vectors.values()]
        if len(set(shapes)) > 1 or len(shapes[0]) != 2 or not len(self.tokens) == len(self.segments) == shapes[0][0]:
            rule = f"be (tokens, embedding_dim) of {len(self.tokens)} tokens, with as many segments"
            raise ValueError(checks.message(type(self).__name__, "vectors", rule, shapes))
        self.sum = np.sum(list(self.vectors.values()), axis=0)

    @classmethod
    def from_model(
        cls, model: Any, text: str, text_pair: str | None = None, *, preprocessor: Any = None
    ) -> InputPicture:
        """What goes into a model for a text or a pair.

        Args:
            model: a `BertBackbone`, or a task, of which the backbone is asked.
            text: the text.
            text_pair: the second text of a pair.
            preprocessor: what makes tokens of the text; the task's own if None.

        Raises:
            TypeError: `model` or `preprocessor` is none; `text` is not a string.
        """
        backbone, tokens = read(cls.__name__, model, text, text_pair, preprocessor)
        embedding = backbone.get_layer("embedding")
        rows = {"token": tokens.ids, "segment": tokens.segments, "position": np.arange(len(tokens.ids))}
        matrices = {name: ops.convert_to_numpy(getattr(embedding, f"{name}_embedding")) for name in ROWS}
        return cls(tokens.names, tokens.segments.tolist(), {name: matrices[name][rows[name]] for name in ROWS})

    def _labels(self) -> dict[str, list[str]]:
        """What stands in the box of each token, row by row."""
        return {
            "token": self.tokens,
            "segment": [_segment_name(segment) for segment in self.segments],
            "position": [str(place) for place in range(len(self.tokens))],
        }

    def _body(self) -> str:
        vectors = {**self.vectors, "sum": self.sum}
        rows: list[list[str]] = []
        for name, labels in self._labels().items():
            prefix = "" if not rows else "+ "
            rows.append([f"{prefix}{name}", *(self._cell(*pair) for pair in zip(vectors[name], labels, strict=True))])
        rows.append(["= sum", *(self._cell(vector, None) for vector in self.sum)])
        header = ["input", *(html.token(token) for token in self.tokens)]
        return html.scroll("The input, scrolls sideways", html.table(_CAPTION, header, rows))

    def _cell(self, vector: np.ndarray, label: str | None) -> str:
        name = "" if label is None else f"E<sub>{html.token(label)}</sub>"
        return f"<td>{name}{_strip(vector / self._scale())}length {np.linalg.norm(vector):.2f}</td>"

    def _scale(self) -> float:
        """The largest of the numbers that are drawn, the same for all strips, so that strips can be compared."""
        shown = [vector[:, :_NUM_SHOWN] for vector in (*self.vectors.values(), self.sum)]
        return max(float(np.abs(shown).max()), 1e-9)

    def _size(self) -> tuple[float, float]:
        return 1.2 + 0.95 * len(self.tokens), 4.2

    def _draw(self, figure: Any) -> None:
        axes = figure.subplots()
        for column, token in enumerate(self.tokens):
            write(axes, column, -1, token, ha="center", va="center", weight="bold")
        labels = {**self._labels(), "sum": [""] * len(self.tokens)}
        vectors = {**self.vectors, "sum": self.sum}
        for row, (name, texts) in enumerate(labels.items()):
            sign = {"token": "", "sum": "= "}.get(name, "+ ")
            write(axes, -0.6, row, sign + name, ha="right", va="center")
            for column, text in enumerate(texts):
                numbers = vectors[name][column, :_NUM_SHOWN][None] / self._scale()
                extent = (column - 0.45, column + 0.45, row + 0.35, row + 0.05)
                axes.imshow(numbers, extent=extent, cmap=_color_map(), vmin=-1, vmax=1, aspect="auto")
                write(axes, column, row - 0.12, text, ha="center", va="center", fontsize=9)
        plain(axes.title, self.title)
        axes.set(xlim=(-1.8, len(self.tokens) - 0.4), ylim=(3.6, -1.6))
        axes.set_axis_off()


_NOTE = "For each token BERT looks up three vectors: one for the token, one for its segment, one for its position."
_CAPTION = "The first numbers of each vector: bars above the line are positive, bars below it negative."


def _segment_name(segment: int) -> str:
    """A and B, as in the paper."""
    return chr(ord("A") + segment) if 0 <= segment < 26 else str(segment)


def _strip(numbers: np.ndarray) -> str:
    """Bars of numbers in [-1, 1]. The text below the strip says what a reader needs who does not see it."""
    middle = _BAR_HEIGHT / 2
    bars = "".join(
        f'<rect class="{"positive" if number >= 0 else "negative"}" x="{_BAR * place}" width="{_BAR - 1}" '
        f'y="{middle - max(number, 0) * middle:.1f}" height="{abs(number) * middle:.1f}"/>'
        for place, number in enumerate(numbers[:_NUM_SHOWN].tolist())
    )
    width = _BAR * min(_NUM_SHOWN, len(numbers))
    line = f'<path class="axis" d="M0 {middle:g}H{width}"/>'
    size = f'viewBox="0 0 {width} {_BAR_HEIGHT}" width="{width}" height="{_BAR_HEIGHT}"'
    return f'<svg aria-hidden="true" {size}>{line}{bars}</svg>'


def _color_map() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    steps = [colors.NEGATIVE.light, colors.SURFACE.light, colors.ACCENT.light]
    return LinearSegmentedColormap.from_list("keras_bert_layers_signed", steps)
