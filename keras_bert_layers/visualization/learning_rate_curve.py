"""The losses that `optimizers.LearningRateFinder` found."""

from __future__ import annotations

import math

from keras_bert_layers._internal import checks
from keras_bert_layers.optimizers import LearningRateFinder
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization.picture import Picture

_WIDTH, _HEIGHT, _LEFT, _TOP = 460, 240, 58, 32  # pixels
_RIGHT, _BOTTOM = _WIDTH - 40, _HEIGHT - 56


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

        def x(rate: float) -> float:
            return _LEFT + (math.log10(rate) - first) / (last - first) * (_RIGHT - _LEFT)

        def y(loss: float) -> float:
            return _BOTTOM - max(0.0, min(1.0, (loss - low) / (high - low or 1))) * (_BOTTOM - _TOP)

        powers = range(math.ceil(first - 1e-9), math.floor(last + 1e-9) + 1)
        curve = [(x(rate), y(loss)) for rate, loss in zip(self.rates, self.smoothed, strict=True)]
        parts = [
            html.line([(_LEFT, _TOP - 10), (_LEFT, _BOTTOM + 10), (_RIGHT + 10, _BOTTOM + 10)], "axis"),
            html.label(0, 14, "loss, smoothed"),
            html.label(_LEFT - 6, _TOP + 4, f"{high:.3g}", anchor="end"),
            html.label(_LEFT - 6, _BOTTOM + 4, f"{low:.3g}", anchor="end"),
            *(html.label(x(10.0**power), _BOTTOM + 28, f"1e{power}", anchor="middle") for power in powers),
            html.label((_LEFT + _RIGHT) / 2, _HEIGHT - 8, "learning rate", anchor="middle"),
            html.line(curve, "c0", stroke_width=2),
        ]
        if self.rates[0] <= self.suggestion:
            at = x(self.suggestion)
            parts += [
                html.line([(at, _TOP - 4), (at, _BOTTOM + 10)], "c1", stroke_width=2, stroke_dasharray="6 4"),
                html.label(at + 6, _TOP + 4, f"{self.suggestion:.1g}"),
            ]
        described = (
            f"Loss {self.smoothed[0]:.3g} at {self.rates[0]:.1g}, {self.smoothed[-1]:.3g} at {self.rates[-1]:.1g}"
        )
        return html.drawing(_WIDTH, _HEIGHT, parts, label=described)
