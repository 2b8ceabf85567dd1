"""Curves: loss and metrics over epochs, the loss over learning rates, and the accuracy of probes over layers."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from keras_bert_layers._internal import checks
from keras_bert_layers.optimizers import LearningRateFinder
from keras_bert_layers.tasks import ProbeReport
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization.picture import Picture

_LEFT, _TOP = 58, 32  # of the first point and the largest value, in pixels
_VALIDATION = "val_"


class _Axes(NamedTuple):
    """The axes of a chart, in pixels."""

    width: int
    height: int
    right: int  # of the last point
    bottom: int  # of the smallest value

    def parts(self, title: str, high: str, low: str) -> list[html.Element]:
        """The lines of both axes, the title, and the labels of the largest and the smallest value."""
        corner = self.bottom + 10
        return [
            html.line([(_LEFT, _TOP - 10), (_LEFT, corner), (self.right + 10, corner)], "axis"),
            html.label(0, 14, title),
            html.label(_LEFT - 6, _TOP + 4, high, anchor="end"),
            html.label(_LEFT - 6, self.bottom + 4, low, anchor="end"),
        ]

    def point(self, across: float, up: float) -> html.Point:
        """A point at two shares of the axes, from the left and from the bottom."""
        return _LEFT + across * (self.right - _LEFT), self.bottom - up * (self.bottom - _TOP)


_RATE_AXES = _Axes(460, 240, right=420, bottom=184)
_EPOCH_AXES = _Axes(318, 210, right=234, bottom=162)


class LearningRateCurve(Picture):
    """The loss at each learning rate that a finder tried, on a logarithmic axis, and the rate that it suggests.

    Args:
        finder: an `optimizers.LearningRateFinder` after `fit`.
        title: heading.
        note: what the picture shows; the suggestion if None.

    Raises:
        TypeError: `finder` is something else.
        ValueError: it has seen less than two losses.

    Examples:
        >>> finder = LearningRateFinder()
        >>> finder.rates, finder.losses = [1e-5, 1e-4, 1e-3], [0.7, 0.5, 4.0]
        >>> "Suggestion: 1e-05" in LearningRateCurve(finder).html()
        True
    """

    def __init__(self, finder: LearningRateFinder, *, title: str = "Learning rates", note: str | None = None):
        checks.instance(type(self).__name__, "finder", finder, LearningRateFinder)
        if len(finder.losses) < 2:
            cure = "Call `model.fit(..., callbacks=[finder])` first."
            received = checks.Shown(f"{len(finder.losses)} losses")
            raise ValueError(checks.message(type(self).__name__, "finder", "have two losses", received, cure))
        self.rates, self.losses, self.smoothed = list(finder.rates), list(finder.losses), finder.smoothed
        self.suggestion = finder.suggestion
        best = f"Suggestion: {self.suggestion:.1g}, a tenth of the rate with the lowest loss."
        super().__init__(title=title, note=best if note is None else note)

    def _body(self) -> list[html.Element]:
        rows = [
            [f"{rate:.2g}", html.number(f"{loss:.4g}"), html.number(f"{mean:.4g}")]
            for rate, loss, mean in zip(self.rates, self.losses, self.smoothed, strict=True)
        ]
        table = html.table("Every step.", ["learning rate", "loss", "smoothed"], rows)
        return [html.scroll("Losses", self._chart()), html.folded(table)]

    def _chart(self) -> html.Element:
        first, last = math.log10(self.rates[0]), math.log10(self.rates[-1])
        low = min(self.smoothed)
        high = max(*self.smoothed[: len(self.smoothed) // 2 + 1], 1.5 * low)  # what diverges would flatten the rest

        axes = _RATE_AXES

        def place(rate: float, loss: float) -> html.Point:
            up = max(0.0, min(1.0, (loss - low) / (high - low or 1)))
            return axes.point((math.log10(rate) - first) / (last - first), up)

        powers = range(math.ceil(first - 1e-9), math.floor(last + 1e-9) + 1)
        parts = [
            *axes.parts("loss, smoothed", f"{high:.3g}", f"{low:.3g}"),
            *(html.label(place(10.0**n, low)[0], axes.bottom + 28, f"1e{n}", anchor="middle") for n in powers),
            html.label((_LEFT + axes.right) / 2, axes.height - 8, "learning rate", anchor="middle"),
            html.line([place(*pair) for pair in zip(self.rates, self.smoothed, strict=True)], "c0", stroke_width=2),
        ]
        if self.rates[0] <= self.suggestion:
            at, _ = place(self.suggestion, low)
            parts += [
                html.line([(at, _TOP - 4), (at, axes.bottom + 10)], "c1", stroke_width=2, stroke_dasharray="6 4"),
                html.label(at + 6, _TOP + 4, f"{self.suggestion:.1g}"),
            ]
        described = (
            f"Loss {self.smoothed[0]:.3g} at {self.rates[0]:.1g}, {self.smoothed[-1]:.3g} at {self.rates[-1]:.1g}"
        )
        return html.drawing(axes.width, axes.height, parts, label=described)


class TrainingCurves(Picture):
    """Loss and metrics of each epoch, in training and in validation.

    Args:
        history: what `fit` returns, or its `history`: name -> list of values, one per epoch. A name that starts with
            `val_` shares the chart of the name without it.
        title: heading.
        note: what the picture shows.

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
            rule, cure = "be a History or a dictionary", "Give what `fit` returned."
            raise TypeError(checks.message(type(self).__name__, "history", rule, values, cure))
        self.history = {name: [float(value) for value in curve] for name, curve in values.items()}
        lengths = {len(curve) for curve in self.history.values()}
        if len(lengths) != 1 or lengths == {0}:
            rule = "hold one value for each epoch under each name, and at least one"
            raise ValueError(checks.message(type(self).__name__, "history", rule, values))

    @property
    def num_epochs(self) -> int:
        """The number of epochs."""
        return len(next(iter(self.history.values())))

    def _charts(self) -> dict[str, dict[str, list[float]]]:
        """Metric -> name of the curve -> values."""
        charts: dict[str, dict[str, list[float]]] = {}
        for name, values in self.history.items():
            metric = name.removeprefix(_VALIDATION)
            curve = "validation" if name != metric and metric in self.history else "training"
            charts.setdefault(metric if curve == "validation" else name, {})[curve] = values
        return charts

    def _body(self) -> list[html.Element]:
        if self.num_epochs == 1:  # a curve of one point shows nothing
            return [self._only_epoch()]
        charts = [chart(metric, curves) for metric, curves in self._charts().items()]
        rows = [
            [str(epoch + 1), *(html.number(f"{values[epoch]:.4g}") for values in self.history.values())]
            for epoch in range(self.num_epochs)
        ]
        table = html.table("All values, epoch by epoch.", ["epoch", *self.history], rows)
        return [html.scroll("Curves", html.element("div", *charts, class_="charts")), html.folded(table)]

    def _only_epoch(self) -> html.Element:
        names = ("training", "validation")
        rows = [
            [metric, *(html.number(f"{curves[name][0]:.4g}") if name in curves else "" for name in names)]
            for metric, curves in self._charts().items()
        ]
        return html.table("The values of the only epoch; two or more are drawn as curves.", ["metric", *names], rows)


class ProbeCurve(Picture):
    """The accuracy of a linear probe by layer, beside that of the control with shuffled labels.

    Args:
        report: what `tasks.probe` returned.
        title: heading.
        note: what the picture shows; the majority and the number of labels if None.

    Raises:
        TypeError: `report` is something else.

    Examples:
        >>> import numpy as np
        >>> report = ProbeReport(np.array([0.5, 0.75]), np.array([0.5, 0.25]), 0.5, 8, 4)
        >>> "The most frequent label is right for 50 % of 8" in ProbeCurve(report).html()
        True
    """

    def __init__(self, report: ProbeReport, *, title: str = "A linear probe by layer", note: str | None = None):
        self.report = checks.instance(type(self).__name__, "report", report, ProbeReport)
        folds = f"Accuracy in {report.num_folds} folds; layer 0 is the output of the embedding."
        found = (
            f"{folds} The most frequent label is right for {html.percent(report.majority)} of {report.num_labeled:,}."
        )
        super().__init__(title=title, note=found if note is None else note)

    def _body(self) -> list[html.Element]:
        curves = {"labels": self.report.accuracies.tolist(), "control": self.report.controls.tolist()}
        return layer_curves("accuracy", curves)


def layer_curves(metric: str, curves: Mapping[str, Sequence[float]]) -> list[html.Element]:
    """A chart with one or two values for each layer, from layer 0, and the table of its values."""
    drawn = chart(metric, curves, axis="layer", first=0)
    rows = [
        [str(layer), *(html.number(f"{value:.3f}") for value in values)]
        for layer, values in enumerate(zip(*curves.values(), strict=True))
    ]
    return [html.scroll(metric, drawn), html.folded(html.table(f"{metric} of each layer.", ["layer", *curves], rows))]


def chart(metric: str, curves: Mapping[str, Sequence[float]], *, axis: str = "epoch", first: int = 1) -> html.Element:
    """A chart of one metric with one or two curves; a table beside it has their values."""
    finite = [value for values in curves.values() for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    num_epochs, axes = len(next(iter(curves.values()))), _EPOCH_AXES
    last = str(num_epochs - 1 + first) if num_epochs > 1 else ""
    ticks = {_LEFT: str(first), axes.right: last, (_LEFT + axes.right) / 2: axis}
    parts = axes.parts(metric, _short(high), _short(low) if high > low else "")
    parts += [html.label(x, axes.height - 16, text, anchor="middle") for x, text in ticks.items()]
    names = sorted(curves, key=lambda name: curves[name][-1])
    for index, (name, values) in enumerate(curves.items()):
        style, dashes = f"c{index}", {"stroke_dasharray": "6 4"} if index else {}
        points = [
            axes.point(epoch / max(num_epochs - 1, 1), (value - low) / (high - low) if high > low else 0.5)
            for epoch, value in enumerate(values)
            if math.isfinite(value)
        ]
        parts.append(html.line(points, style, stroke_width=2, **dashes))
        parts += [html.disc(x, y, 3, style) for x, y in points]
        if points:
            # The names of two curves that end at the same height are above each other.
            shift = 4 if len(curves) == 1 else (10, -2)[names.index(name)]
            parts.append(html.label(points[-1][0] + 8, points[-1][1] + shift, name))
    ends = ", ".join(f"{name} from {values[0]:.4g} to {values[-1]:.4g}" for name, values in curves.items())
    return html.drawing(axes.width, axes.height, parts, label=f"{metric}: {ends}")


def _short(value: float) -> str:
    """Three digits, or two if three do not fit left of the axis."""
    return f"{value:.3g}" if len(f"{value:.3g}") < 7 else f"{value:.2g}"
