"""How training went: loss and metrics, epoch by epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization._figures import plain
from keras_bert_layers.visualization.picture import Picture

_WIDTH, _HEIGHT, _LEFT, _TOP = 318, 210, 58, 32  # pixels
_RIGHT, _BOTTOM = _WIDTH - 84, _HEIGHT - 48  # where the last epoch and the least value are drawn
_VALIDATION = "val_"


class TrainingCurves(Picture):
    """Loss and metrics of each epoch, in training and in validation.

    Args:
        history: what `fit` returns, or its `history`: a name and a list of numbers, one an epoch. What starts with
            `val_` is drawn with what it validates.
        title: heading.
        note: what there is to see.

    Raises:
        TypeError: `history` is neither.
        ValueError: there is no epoch, or the lists differ in length.

    Examples:
        >>> picture = TrainingCurves({"loss": [0.7, 0.4], "val_loss": [0.8, 0.6]})
        >>> "0.4" in picture.html()
        True
    """

    def __init__(self, history: Any, *, title: str = "Training", note: str = ""):
        super().__init__(title=title, note=note)
        values = getattr(history, "history", history)
        if not isinstance(values, Mapping):
            cure = "Give what `fit` returned."
            raise TypeError(
                checks.message(type(self).__name__, "history", "be a History or a dictionary", values, cure)
            )
        self.history = {name: [float(value) for value in numbers] for name, numbers in values.items()}
        lengths = {len(numbers) for numbers in self.history.values()}
        if len(lengths) != 1 or lengths == {0}:
            rule = "hold one number for each epoch under each name, and at least one"
            raise ValueError(checks.message(type(self).__name__, "history", rule, values))

    @property
    def num_epochs(self) -> int:
        """How many epochs there were."""
        return len(next(iter(self.history.values())))

    def _charts(self) -> dict[str, dict[str, list[float]]]:
        """The curves of each chart: name of the metric -> name of the curve -> numbers."""
        charts: dict[str, dict[str, list[float]]] = {}
        for name, numbers in self.history.items():
            metric = name.removeprefix(_VALIDATION)
            curve = "validation" if name != metric and metric in self.history else "training"
            charts.setdefault(metric if curve == "validation" else name, {})[curve] = numbers
        return charts

    def _body(self) -> str:
        drawn = "\n".join(_chart(metric, curves) for metric, curves in self._charts().items())
        charts = html.scroll("Curves", f'<div class="charts">\n{drawn}\n</div>')
        rows = [
            [str(epoch + 1), *(html.number(f"{numbers[epoch]:.4g}") for numbers in self.history.values())]
            for epoch in range(self.num_epochs)
        ]
        header = ["epoch", *(html.escape(name) for name in self.history)]
        table = html.scroll("All numbers", html.table("All numbers, epoch by epoch.", header, rows))
        return f"{charts}\n{html.details('The numbers', table)}"

    def _size(self) -> tuple[float, float]:
        return 6.0, 0.4 + 2.2 * len(self._charts())

    def _draw(self, figure: Any) -> None:
        charts = self._charts()
        all_axes = figure.subplots(len(charts), sharex=True, squeeze=False)[:, 0]
        for axes, (metric, curves) in zip(all_axes, charts.items(), strict=True):
            for name, numbers in curves.items():
                line, marker, color = ("-", "o", 0) if name == "training" else ("--", "s", 1)
                epochs = range(1, len(numbers) + 1)
                ink = colors.CATEGORIES[color].light
                axes.plot(epochs, numbers, line, marker=marker, color=ink, label=name)
            plain(axes.yaxis.label, metric)
            axes.legend(fontsize=8)
        all_axes[-1].set_xlabel("epoch")
        all_axes[-1].xaxis.get_major_locator().set_params(integer=True)
        plain(figure.suptitle("Training"), self.title)


def _chart(metric: str, curves: Mapping[str, Sequence[float]]) -> str:
    """One metric as a drawing; the table has its numbers."""
    finite = [value for numbers in curves.values() for value in numbers if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    parts = [
        f'<path class="axis" d="M{_LEFT} {_TOP - 10}V{_BOTTOM + 10}H{_RIGHT + 10}"/>',
        _label(0, 14, "start", metric),
        _label(_LEFT - 6, _TOP + 4, "end", _short(high)),
        _label(_LEFT - 6, _BOTTOM + 4, "end", _short(low) if high > low else ""),
        _label(_LEFT, _HEIGHT - 16, "middle", "1"),
        _label(_RIGHT, _HEIGHT - 16, "middle", _last_epoch(curves)),
        _label((_LEFT + _RIGHT) / 2, _HEIGHT - 16, "middle", "epoch"),
    ]
    for color, (name, numbers) in enumerate(curves.items()):
        places = [(_across(epoch, len(numbers)), _down(value, low, high)) for epoch, value in enumerate(numbers)]
        drawn = [(x, y) for x, y in places if y is not None]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in drawn)
        dashes = "" if name == "training" else ' stroke-dasharray="6 4"'
        parts.append(f'<polyline class="c{color}" style="fill: none" stroke-width="2"{dashes} points="{points}"/>')
        parts += [f'<circle class="c{color}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in drawn]
        if drawn:
            parts.append(_label(drawn[-1][0] + 8, _name_height(curves, name, drawn[-1][1]), "start", name))
    ends = ", ".join(f"{name} from {numbers[0]:.4g} to {numbers[-1]:.4g}" for name, numbers in curves.items())
    return html.drawing(_WIDTH, _HEIGHT, label=f"{metric}: {ends}", content="\n".join(parts))


def _name_height(curves: Mapping[str, Sequence[float]], name: str, height: float) -> float:
    """Where the name of a curve stands: a little apart from the other one, in the order of their ends."""
    if len(curves) == 1:
        return height + 4
    training, validation = curves["training"][-1], curves["validation"][-1]
    is_upper = (training >= validation) == (name == "training")
    return height - 2 if is_upper else height + 10


def _short(value: float) -> str:
    """Three digits, or two where these would not fit left of the axis."""
    return f"{value:.3g}" if len(f"{value:.3g}") < 7 else f"{value:.2g}"


def _last_epoch(curves: Mapping[str, Sequence[float]]) -> str:
    count = len(next(iter(curves.values())))
    return str(count) if count > 1 else ""


def _across(epoch: int, num_epochs: int) -> float:
    return _LEFT + epoch / max(num_epochs - 1, 1) * (_RIGHT - _LEFT)


def _down(value: float, low: float, high: float) -> float | None:
    """The height of a value in the drawing; None for one that is not finite."""
    if not math.isfinite(value):
        return None
    share = (value - low) / (high - low) if high > low else 0.5
    return _TOP + (1 - share) * (_BOTTOM - _TOP)


def _label(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x:g}" y="{y:.1f}" text-anchor="{anchor}" font-size="13">{html.escape(text)}</text>'
