"""`HiddenStateMap`: hidden states as points in a plane, by principal component analysis (PCA)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization._reading import check_index, parts_of, run, tokens_of
from keras_bert_layers.visualization.picture import Picture

if TYPE_CHECKING:
    import keras

    from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer

_WIDTH, _HEIGHT, _MARGIN = 600, 400, 48  # pixels
_LETTER, _LINE, _LONGEST = 7.3, 13, 44  # width and height of a letter, in pixels; letters of a label
_HALO = "paint-order: stroke; stroke: var(--surface); stroke-width: 4px"
_RADIUS = 8  # around a point, in pixels, where no label is
Box = tuple[float, float, float, float]  # left, right, top, bottom
# What float32 leaves between equal vectors, relative to their largest value.
_ROUNDING = 1e-5
POINTS = ("texts", "tokens")
# Corners of the point of each group but the first, which is round.
_CORNERS = (
    ((-5, -5), (5, -5), (5, 5), (-5, 5)),
    ((0, -7), (7, 0), (0, 7), (-7, 0)),
    ((0, -6), (6, 5), (-6, 5)),
    ((0, 6), (6, -5), (-6, -5)),
    ((-2, -6), (2, -6), (2, -2), (6, -2), (6, 2), (2, 2), (2, 6), (-2, 6), (-2, 2), (-6, 2), (-6, -2), (-2, -2)),
)


class HiddenStateMap(Picture):
    """Vectors as points in the plane of the two directions in which they differ most (PCA).

    Near points are similar, as far as the two directions show it; the labels of the axes give their share of the
    variance. The sign of a direction has no meaning; the largest coordinate is made positive, so that a picture is
    always the same.

    Args:
        labels: the label of each point.
        vectors: float `(points, hidden_dim)`.
        groups: the group of each point; points of a group share color and shape. None for one group.
        num_labels: how many of the first points have their label in the drawing; all if None. The table has them all.
        title: heading.
        note: what the picture shows.

    Raises:
        ValueError: the shapes do not match, or a value is not finite.

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
        vectors: Tensor,
        *,
        groups: Sequence[str] | None = None,
        num_labels: int | None = None,
        title: str = "Hidden states",
        note: str = "",
    ):
        super().__init__(title=title, note=note or "Points that are close together are similar to the model.")
        self.labels = list(labels)
        vectors = np.asarray(vectors, np.float64)
        if vectors.ndim != 2 or len(vectors) != len(self.labels) or not self.labels or not np.isfinite(vectors).all():
            rule = f"be finite and (points, hidden_dim) of {len(self.labels)} points"
            raise ValueError(checks.message(type(self).__name__, "vectors", rule, vectors.shape))
        self.groups = [""] * len(self.labels) if groups is None else list(groups)
        if len(self.groups) != len(self.labels):
            rule = f"be as many as the labels ({len(self.labels)})"
            raise ValueError(checks.message(type(self).__name__, "groups", rule, len(self.groups)))
        self.num_labels = checks.optional(checks.whole_number, type(self).__name__, "num_labels", num_labels)
        self.coordinates, self.shares = _project(vectors)

    @classmethod
    def from_model(
        cls,
        model: keras.Model,
        texts: Sequence[str],
        *,
        layer: int = -1,
        points: str = "texts",
        preprocessor: TextLayer | None = None,
    ) -> HiddenStateMap:
        """Computes the hidden states of a model for texts.

        Args:
            model: a `BertBackbone`, or a task, whose backbone is used.
            texts: the texts.
            layer: 0 for the output of the embedding, 1 for that of the first block, and so on; -1 for the last.
            points: `"texts"` for a point per text, the mean of its tokens' vectors; `"tokens"` for one per token.
            preprocessor: tokenizes the texts; the task's own if None.

        Raises:
            TypeError: `model` is not a backbone or a task; there is no preprocessor; a text is not a string.
            ValueError: there is no such layer, or no text; `points` is another word.
        """
        backbone, preprocessor = parts_of(cls.__name__, model, preprocessor)
        layer = check_index(cls.__name__, "layer", layer, backbone.config.num_layers + 1)
        checks.one_of(cls.__name__, "points", points, POINTS)
        if isinstance(texts, str) or not len(texts):
            raise ValueError(checks.message(cls.__name__, "texts", "be a list of at least one text", texts))
        labels, groups, vectors = [], [], []
        for text in texts:
            tokens = tokens_of(cls.__name__, preprocessor, text)
            states = run(backbone, tokens)[0][layer]
            vectors.append(states if points == "tokens" else states.mean(axis=0, keepdims=True))
            labels += tokens.names if points == "tokens" else [text]
            groups += [text] * len(vectors[-1])
        title = f"{points.capitalize()} {f'after layer {layer}' if layer else 'before the first layer'}"
        return cls(labels, np.concatenate(vectors), groups=groups if points == "tokens" else None, title=title)

    def _body(self) -> list[html.Element]:
        groups = {name: index % len(colors.CATEGORIES) for index, name in enumerate(dict.fromkeys(self.groups))}
        has_groups = len(groups) > 1
        legend = _legend(groups) if has_groups else []
        label = f"{len(self.labels)} points; the table below has their names and coordinates."
        drawn = html.drawing(_WIDTH, _HEIGHT + _LINE * 1.5 * len(legend), self._points(groups) + legend, label=label)
        rows = [
            [html.isolated(name), html.number(f"{x:.2f}"), html.number(f"{y:.2f}")]
            + ([html.element("td", html.isolated(group), class_="wrap")] if has_groups else [])
            for name, (x, y), group in zip(self.labels, self.coordinates.tolist(), self.groups, strict=True)
        ]
        header = ["point", "first direction", "second direction", *(["group"] if has_groups else [])]
        return [html.scroll("Points", drawn), html.folded(html.table("The coordinates of the points.", header, rows))]

    def _points(self, groups: dict[str, int]) -> list[html.Element]:
        """The axes, and each point with its label."""
        bottom = _HEIGHT - _MARGIN
        first, second = (html.percent(share) for share in self.shares.tolist())
        parts = [
            html.line([(_MARGIN, 8), (_MARGIN, bottom), (_WIDTH - 8, bottom)], "axis"),
            html.label(_MARGIN, _HEIGHT - 16, f"first direction, {first} of the variance"),
            html.label(16, bottom, f"second direction, {second}", transform=f"rotate(-90 16 {bottom})"),
        ]
        points = self._pixels().tolist()
        parts += [_point(groups[group], x, y) for (x, y), group in zip(points, self.groups, strict=True)]
        names = [_shortened(name) for name in self.labels[: self.num_labels]]
        positions = zip(names, _label_positions(points[: len(names)], names), strict=True)
        halo = {} if self.num_labels is None else {"style": _HALO}  # they may cover points without a label
        return parts + [html.label(x, y + 4, name, size=12, class_="token", **halo) for name, (x, y) in positions]

    def _pixels(self) -> np.ndarray:
        """The points in the drawing, `(points, 2)`."""
        low, span = self.coordinates.min(axis=0), np.ptp(self.coordinates, axis=0)
        share = np.where(span > 0, (self.coordinates - low) / np.where(span > 0, span, 1), 0.5)
        width, height = _WIDTH - 2 * _MARGIN - 16, _HEIGHT - 2 * _MARGIN - 16
        return share * (width, -height) + (_MARGIN + 16, 24 + height)


def _project(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates `(points, 2)` in the two directions of the largest variance, and their shares of it."""
    # A row and a column of zeros change nothing, and there are two directions even for one point, or for width 1.
    centered = np.pad(vectors - vectors.mean(axis=0), (0, 1))
    left, sizes, _ = np.linalg.svd(centered, full_matrices=False)
    sizes[sizes <= _ROUNDING * np.abs(vectors).max()] = 0
    coordinates = (left * sizes)[:-1, :2]
    largest = coordinates[np.abs(coordinates).argmax(axis=0), np.arange(2)]
    shares = sizes[:2] ** 2 / (np.sum(sizes**2) or 1)
    return coordinates * np.where(largest < 0, -1, 1) + 0.0, shares


def _label_positions(points: list[list[float]], names: list[str]) -> list[tuple[float, float]]:
    """The left end and the height of each label: beside its point, where it covers no point and no other label."""
    taken: list[Box] = [(x - _RADIUS, x + _RADIUS, y - _RADIUS, y + _RADIUS) for x, y in points]
    places = []
    for (x, y), name in zip(points, names, strict=True):
        width = _LETTER * len(name)
        possible = [
            (left, height, (left, left + width, height - _LINE / 2, height + _LINE / 2))
            for left, height in _places(x, y, width)
        ]
        # Where there is no free place, labels cover each other; the table has the names too.
        left, height, box = next((place for place in possible if _is_free(place[2], taken)), possible[0])
        taken.append(box)
        places.append((left, height))
    return places


def _places(x: float, y: float, width: float) -> Iterator[tuple[float, float]]:
    """Places for a label, the best first: right, left, above, below, and then further away."""
    right, left, middle = x + 9, x - 9 - width, x - width / 2
    furthest = _WIDTH - width
    yield from [(min(right, furthest), y)] if left < _MARGIN else [(right, y), (left, y)]
    for lines in range(1, _HEIGHT // _LINE):
        for height in (y - 1.2 * _LINE * lines, y + 1.2 * _LINE * lines):
            yield from ((min(max(place, _MARGIN + 4), furthest), height) for place in (middle, right, left))


def _is_free(box: Box, taken: list[Box]) -> bool:
    """Whether a box is in the drawing, right of the axis and above the other, and meets no box that is taken."""
    left, right, top, bottom = box
    is_inside = left >= _MARGIN and right <= _WIDTH and top >= 0 and bottom <= _HEIGHT - _MARGIN
    return is_inside and not any(
        left < end and start < right and top < low and high < bottom for start, end, high, low in taken
    )


def _legend(groups: dict[str, int]) -> list[html.Element]:
    """The point and the name of each group, below the axes."""
    entries = []
    for row, (name, group) in enumerate(groups.items()):
        height = _HEIGHT + _LINE * 1.5 * row
        text = html.label(_MARGIN + 16, height + 4, _shortened(name), size=12, class_="token")
        entries.append(html.element("g", _point(group, _MARGIN, height), text, class_="legend"))
    return entries


def _point(group: int, x: float, y: float) -> html.Element:
    """A point whose color and shape show its group."""
    if group == 0:
        return html.disc(x, y, 5)
    return html.area([(x + across, y + down) for across, down in _CORNERS[group - 1]], f"c{group}")


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
