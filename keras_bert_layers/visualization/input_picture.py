"""`InputPicture`: token, segment and position embeddings of a text, and their sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization._reading import read
from keras_bert_layers.visualization.picture import Picture

if TYPE_CHECKING:
    import keras

    from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer

ROWS = ("token", "segment", "position")
_NUM_SHOWN = 12  # values of a vector that are drawn
_BAR, _HEIGHT = 6, 28  # pixels


class InputPicture(Picture):
    """The input of BERT as in figure 2 of its paper: three vectors for each token, and their sum.

    Each vector is drawn as a strip of its first 12 values. The length below it is that of the whole vector.

    Args:
        tokens: the tokens.
        segments: the segment of each token, integers `(sequence,)`.
        vectors: `"token"`, `"segment"` and `"position"`, float `(sequence, embedding_dim)` each.
        title: heading.
        note: what the picture shows.

    Raises:
        ValueError: the shapes do not match.

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
        cls, model: keras.Model, text: str, text_pair: str | None = None, *, preprocessor: TextLayer | None = None
    ) -> InputPicture:
        """Looks up the input of a model for a text or a pair.

        Args:
            model: a `BertBackbone`, or a task, whose backbone is used.
            text: the text.
            text_pair: the second text of a pair.
            preprocessor: tokenizes the text; the task's own if None.

        Raises:
            TypeError: `model` is not a backbone or a task; there is no preprocessor; `text` is not a string.
        """
        backbone, tokens = read(cls.__name__, model, text, text_pair, preprocessor)
        embedding = backbone.get_layer("embedding")
        rows = {"token": tokens.ids, "segment": tokens.segments, "position": np.arange(len(tokens.ids))}
        matrices = {name: ops.convert_to_numpy(getattr(embedding, f"{name}_embedding")) for name in ROWS}
        return cls(tokens.names, tokens.segments.tolist(), {name: matrices[name][rows[name]] for name in ROWS})

    def _body(self) -> list[html.Element]:
        labels = [
            self.tokens,
            # A and B, as in the paper.
            [chr(ord("A") + segment) if 0 <= segment < 26 else str(segment) for segment in self.segments],
            [str(position) for position in range(len(self.tokens))],
            [""] * len(self.tokens),
        ]
        vectors = [*self.vectors.values(), self.sum]
        # One scale for all strips, so that they can be compared.
        largest = max(float(np.abs(vector[:, :_NUM_SHOWN]).max()) for vector in vectors)
        rows = [
            [name, *(_cell(label, vector, largest) for label, vector in zip(names, strips, strict=True))]
            for name, names, strips in zip(("token", "+ segment", "+ position", "= sum"), labels, vectors, strict=True)
        ]
        return [html.table(_CAPTION, ["input", *map(html.token, self.tokens)], rows)]


_NOTE = "For each token BERT looks up three vectors: one for the token, one for its segment, one for its position."
_CAPTION = "The first values of each vector: bars above the line are positive, bars below it negative."


def _cell(label: str, vector: np.ndarray, largest: float) -> html.Element:
    """The name of a vector, its first values as bars, and its length, which a screen reader reads instead."""
    name = ["E", html.element("sub", html.token(label))] if label else []
    values = vector[:_NUM_SHOWN] / max(largest, 1e-9)
    parts = [html.line([(0, _HEIGHT / 2), (_BAR * len(values), _HEIGHT / 2)], "axis")]
    for style, drawn in (("c0", values >= 0), ("c1", values < 0)):
        corners = []
        for index in np.flatnonzero(drawn).tolist():
            left, right, end = _BAR * index, _BAR * (index + 1) - 1, _HEIGHT / 2 * (1 - float(values[index]))
            corners += [(left, _HEIGHT / 2), (left, end), (right, end), (right, _HEIGHT / 2)]
        parts.append(html.area(corners, style))
    strip = html.drawing(_BAR * len(values), _HEIGHT, parts)
    return html.element("td", *name, strip, f"length {np.linalg.norm(vector):.2f}")
