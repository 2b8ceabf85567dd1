"""Hidden states on a plane: tokens or texts that the model takes for alike lie together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization._figures import plain, write
from keras_bert_layers.visualization._reading import check_index, hidden_states, parts_of, tokens_of
from keras_bert_layers.visualization.picture import Picture

_WIDTH, _HEIGHT, _MARGIN = 600, 400, 48  # pixels
_LETTER, _LINE, _LONGEST = 7.3, 13, 44  # width and height of a letter, in pixels; letters of a label
_MARKERS = "osD^vP"
# What float32 leaves between vectors that are equal, beside their largest number.
_ROUNDING = 1e-5
POINTS = ("texts", "tokens")


class HiddenStateMap(Picture):
    """Vectors as points of a plane, by the two directions in which they differ most (PCA).

    Near points are alike, as far as the two directions show it; the shares at the axes say how much of all differences
    that is. A direction's sign means nothing; here the largest coordinate is positive, so that it is always the same.

    Args:
        labels: one label a point.
        vectors: float `(points, hidden_dim)`.
        groups: a name for each point; points of one name have one colour and shape. None for one group.
        title: heading.
        note: what there is to see.

    Raises:
        ValueError: the shapes do not fit, or a number is not finite.

    Examples:
        >>> picture = HiddenStateMap(["a", "b", "c"], [[0.0, 0.0], [2.0, 0.0], [4.0, 0.0]])
        >>> picture.coordinates[:, 0].round(3).tolist(), picture.shares.round(3).tolist()
        ([-2.0, 0.0, 2.0], [1.0, 0.0])

    References:
        Pearson 1901, https://doi.org/10.1080/14786440109462720 (the planes of closest fit).
    """

    def __init__(
        self,
        labels: Sequence[str],
        vectors: Any,
        *,
        groups: Sequence[str] | None = None,
        title: str = "Hidden states",
        note: str = "",
    ):
        super().__init__(title=title, note=note or _NOTE)
        self.labels = list(labels)
        vectors = np.asarray(vectors, np.float64)
        if vectors.ndim != 2 or len(vectors) != len(self.labels) or not self.labels or not np.isfinite(vectors).all():
            rule = f"be finite and (points, hidden_dim) of {len(self.labels)} points"
            raise ValueError(checks.message(type(self).__name__, "vectors", rule, vectors.shape))
        self.groups = [""] * len(self.labels) if groups is None else list(groups)
        if len(self.groups) != len(self.labels):
            rule = f"be as many as the labels ({len(self.labels)})"
            raise ValueError(checks.message(type(self).__name__, "groups", rule, len(self.groups)))
        self.coordinates, self.shares = _plane(vectors)

    @classmethod
    def from_model(
        cls, model: Any, texts: Sequence[str], *, layer: int = -1, points: str = "texts", preprocessor: Any = None
    ) -> HiddenStateMap:
        """What a model makes of texts, or of the tokens in them.

        Args:
            model: a `BertBackbone`, or a task, of which the backbone is asked.
            texts: the texts.
            layer: 0 for the output of the embedding, 1 for that of the first block, and so on; -1 for the last.
            points: `"texts"`, a point a text, the mean of its tokens' vectors; or `"tokens"`, a point a token.
            preprocessor: what makes tokens of the texts; the task's own if None.

        Raises:
            TypeError: `model` or `preprocessor` is none; a text is not a string.
            ValueError: no such layer; no text; another word for `points`.
        """
        backbone, preprocessor = parts_of(cls.__name__, model, preprocessor)
        layer = check_index(cls.__name__, "layer", layer, backbone.config.num_layers + 1)
        checks.one_of(cls.__name__, "points", points, POINTS)
        if isinstance(texts, str) or not len(texts):
            raise ValueError(checks.message(cls.__name__, "texts", "be a list of at least one text", texts))
        labels, groups, vectors = [], [], []
        for text in texts:
            tokens = tokens_of(cls.__name__, preprocessor, text)
            states = hidden_states(backbone, tokens)[layer]
            vectors.append(states if points == "tokens" else states.mean(axis=0, keepdims=True))
            labels += tokens.names if points == "tokens" else [text]
            groups += [text] * len(vectors[-1])
        title = (
            f"{points.capitalize()} after layer {layer}" if layer else f"{points.capitalize()} before the first layer"
        )
        return cls(labels, np.concatenate(vectors), groups=groups if points == "tokens" else None, title=title)

    def _group_ids(self) -> list[int]:
        names = list(dict.fromkeys(self.groups))
        return [names.index(group) % len(colors.CATEGORIES) for group in self.groups]

    def _body(self) -> str:
        label = f"{len(self.labels)} points; the table below has their names and places."
        drawn = html.drawing(_WIDTH, _HEIGHT, label=label, content="\n".join(self._points()))
        has_groups = len(set(self.groups)) > 1
        rows = [
            [html.isolated(name), html.number(f"{x:.2f}"), html.number(f"{y:.2f}")]
            + ([f'<td class="wrap">{html.isolated(group)}</td>'] if has_groups else [])
            for name, (x, y), group in zip(self.labels, self.coordinates.tolist(), self.groups, strict=True)
        ]
        header = ["point", "first direction", "second direction", *(["group"] if has_groups else [])]
        table = html.table("The places of the points.", header, rows)
        legend = self._legend() if has_groups else ""
        return (
            f"{html.scroll('Points', drawn)}\n{legend}{html.details('The numbers', html.scroll('The numbers', table))}"
        )

    def _legend(self) -> str:
        """What the shapes stand for."""
        shapes = dict(zip(self.groups, self._group_ids(), strict=True))
        rows = "".join(
            f'<li><svg aria-hidden="true" width="16" height="16">{_shape(group, 8, 8)}</svg> {html.isolated(name)}</li>'
            for name, group in shapes.items()
        )
        return f'<ul class="legend">{rows}</ul>\n'

    def _points(self) -> list[str]:
        first, second = (html.percent(share) for share in self.shares.tolist())
        parts = [
            f'<path class="axis" d="M{_MARGIN} 8V{_HEIGHT - _MARGIN}H{_WIDTH - 8}"/>',
            f'<text x="{_MARGIN}" y="{_HEIGHT - 16}" font-size="13">first direction, {first} of the differences</text>',
            f'<text x="16" y="{_HEIGHT - _MARGIN}" font-size="13" transform="rotate(-90 16 {_HEIGHT - _MARGIN})">'
            f"second direction, {second}</text>",
        ]
        places = self._pixels().tolist()
        parts += [_shape(group, x, y) for (x, y), group in zip(places, self._group_ids(), strict=True)]
        names = [name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…" for name in self.labels]
        for name, (left, y) in zip(names, _label_places(places, names), strict=True):
            parts.append(
                f'<text class="token" x="{left:.1f}" y="{y + 4:.1f}" font-size="12">{html.escape(name)}</text>'
            )
        return parts

    def _pixels(self) -> np.ndarray:
        """The points in the drawing, `(points, 2)`."""
        low, high = self.coordinates.min(axis=0), self.coordinates.max(axis=0)
        span = np.where(high > low, high - low, 1)
        share = np.where(high > low, (self.coordinates - low) / span, 0.5)
        width, height = _WIDTH - 2 * _MARGIN - 16, _HEIGHT - 2 * _MARGIN - 16
        return np.stack([_MARGIN + 16 + share[:, 0] * width, 24 + (1 - share[:, 1]) * height], axis=1)

    def _size(self) -> tuple[float, float]:
        return 7.5, 5.5

    def _draw(self, figure: Any) -> None:
        axes = figure.subplots()
        ids = np.array(self._group_ids())
        for group in np.unique(ids).tolist():
            chosen = self.coordinates[ids == group]
            name = f"group {group}"  # until there is a legend, which takes dollars for mathematics
            color = colors.CATEGORIES[group].light
            axes.scatter(chosen[:, 0], chosen[:, 1], c=color, marker=_MARKERS[group], label=name)
        middle = float(self.coordinates[:, 0].min() + self.coordinates[:, 0].max()) / 2
        for (x, y), name in zip(self.coordinates.tolist(), self.labels, strict=True):
            side = "left" if x < middle else "right"
            write(axes, x, y, f"  {name}  ", fontsize=8, va="center", ha=side)
        first, second = (html.percent(share) for share in self.shares.tolist())
        plain(axes.title, self.title)
        axes.set(xlabel=f"first direction, {first} of the differences")
        axes.set_ylabel(f"second direction, {second}")
        axes.margins(x=0.15)
        if len(set(self.groups)) > 1:
            names = dict(zip(reversed(ids.tolist()), reversed(self.groups), strict=True))
            for artist, group in zip(axes.legend(fontsize=8).get_texts(), np.unique(ids).tolist(), strict=True):
                plain(artist, names[group])


_NOTE = "Points that lie together are alike to the model."


def _plane(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates `(points, 2)` in the two directions of the largest variance, and their shares of it."""
    centred = vectors - vectors.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    sizes[sizes <= _ROUNDING * np.abs(vectors).max()] = 0
    coordinates = np.zeros((len(vectors), 2))
    count = min(2, len(sizes))
    coordinates[:, :count] = left[:, :count] * sizes[:count]
    largest = coordinates[np.abs(coordinates).argmax(axis=0), np.arange(2)]
    total = float((sizes**2).sum())
    shares = np.zeros(2)
    shares[:count] = sizes[:count] ** 2 / total if total > 0 else 0
    return coordinates * np.where(largest < 0, -1, 1) + 0.0, shares


def _label_places(points: list[list[float]], names: list[str]) -> list[tuple[float, float]]:
    """Where each label starts, and its height: beside its point, or lower where another label is already."""
    boxes: list[tuple[float, float, float]] = []  # left, right, height
    found: dict[int, tuple[float, float]] = {}
    for index in sorted(range(len(points)), key=lambda index: points[index][1]):
        (x, y), width = points[index], _LETTER * len(names[index])
        left = x + 9 if x + 9 + width <= _WIDTH else max(x - 9 - width, 0)
        while any(left < other[1] and other[0] < left + width and abs(y - other[2]) < _LINE for other in boxes):
            y += 1
        boxes.append((left, left + width, y))
        found[index] = (left, y)
    return [found[index] for index in range(len(points))]


def _shape(group: int, x: float, y: float) -> str:
    """A point; its shape says its group, beside its colour."""
    corners = {1: "-5,-5 5,-5 5,5 -5,5", 2: "0,-7 7,0 0,7 -7,0", 3: "0,-6 6,5 -6,5", 4: "0,6 6,-5 -6,-5"}
    corners[5] = "-2,-6 2,-6 2,-2 6,-2 6,2 2,2 2,6 -2,6 -2,2 -6,2 -6,-2 -2,-2"
    place = f'transform="translate({x:.1f} {y:.1f})"'
    if group == 0:
        return f'<circle class="c0" r="5" {place}/>'
    return f'<polygon class="c{group}" points="{corners[group]}" {place}/>'
