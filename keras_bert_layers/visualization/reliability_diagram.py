"""`ReliabilityDiagram`: the share of right predictions at each probability."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.types import Labels, Rows, Tensor
from keras_bert_layers.tasks import BertClassifier
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization.picture import Picture

_SIZE, _LEFT, _TOP = 200, 46, 24  # of the square of the chart, in pixels


class ReliabilityDiagram(Picture):
    """How many predictions are right at each probability, beside the diagonal on which both are equal.

    Points below the diagonal are of a model that is too sure. Predictions are sorted by their probability into bins of
    equal width; a larger point has more predictions.

    Args:
        probabilities: `(predictions,)`, the probability of each prediction.
        right: bool `(predictions,)`, whether it is right.
        num_bins: the number of bins.
        title: heading.
        note: what the picture shows; the expected calibration error if None.

    Raises:
        ValueError: no predictions; arrays of different lengths; a probability outside [0, 1].

    Examples:
        >>> picture = ReliabilityDiagram([0.9, 0.9, 0.9, 0.6], [True, True, False, True])
        >>> round(picture.error, 3)
        0.275

    References:
        Guo et al. 2017, On Calibration of Modern Neural Networks, arXiv:1706.04599, figure 1 and equation 3.
    """

    def __init__(
        self,
        probabilities: Tensor,
        right: Any,
        *,
        num_bins: int = 10,
        title: str = "Probability and share of right predictions",
        note: str | None = None,
    ):
        owner = type(self).__name__
        values, marks = np.asarray(probabilities, np.float64), np.asarray(right, bool)
        if values.ndim != 1 or not len(values) or not ((values >= 0) & (values <= 1)).all():
            rule = "hold at least one probability, each between 0 and 1"
            raise ValueError(checks.message(owner, "probabilities", rule, checks.Shown(f"shape {values.shape}")))
        checks.length(owner, "right", marks, len(values), rule="have one entry for each probability", unit="entries")
        num_bins = checks.positive_integer(owner, "num_bins", num_bins)
        bins = np.clip(np.ceil(values * num_bins).astype(int) - 1, 0, num_bins - 1)
        self.counts = np.bincount(bins, minlength=num_bins)
        sums = [np.bincount(bins, weights, minlength=num_bins) for weights in (values, marks)]
        self.error = float(np.abs(sums[0] - sums[1]).sum() / len(values))
        self.probabilities, self.shares = (total / np.maximum(self.counts, 1) for total in sums)
        found = f"Expected calibration error: {html.percent(self.error)} of {len(values)} predictions."
        super().__init__(title=title, note=found if note is None else note)

    @classmethod
    def from_model(cls, model: BertClassifier, x: Rows, labels: Labels, **options: Any) -> ReliabilityDiagram:
        """The diagram of a classifier with one or several labels per text.

        Args:
            model: a `BertClassifier` with a preprocessor.
            x: texts that it was not trained on, as in `fit`.
            labels: their labels, as in `fit`.
            **options: `num_bins`, `title` and `note`.

        Raises:
            TypeError, ValueError: another model; a regression; what `fit` refuses.
        """
        checks.instance(cls.__name__, "model", model, BertClassifier)
        if model.problem_type == "regression":
            raise ValueError(checks.message(cls.__name__, "problem_type", "have probabilities", model.problem_type))
        columns, y, _ = model.pipeline.batches.checked(x, labels, None)
        logits, y = keras.ops.convert_to_tensor(model.predict(columns, verbose=0)), np.asarray(y)
        if model.problem_type == "multi_label_classification":
            return cls(keras.ops.convert_to_numpy(keras.ops.sigmoid(logits)).ravel(), y.ravel() > 0.5, **options)
        probabilities = keras.ops.convert_to_numpy(keras.ops.softmax(logits, axis=-1))
        y = y.argmax(axis=1) if y.ndim == 2 else y
        return cls(probabilities.max(axis=1), probabilities.argmax(axis=1) == y, **options)

    def _body(self) -> list[html.Element]:
        used = np.flatnonzero(self.counts)
        rows = [
            [
                f"{bin_ / len(self.counts):.2f} to {(bin_ + 1) / len(self.counts):.2f}",
                html.number(html.percent(self.probabilities[bin_])),
                html.number(html.percent(self.shares[bin_])),
                html.number(str(self.counts[bin_])),
            ]
            for bin_ in used.tolist()
        ]
        caption = "Predictions by their probability."
        table = html.table(caption, ["probability", "mean probability", "share right", "predictions"], rows)
        return [html.scroll("Share right by probability", self._chart(used)), table]

    def _chart(self, used: np.ndarray) -> html.Element:
        def place(across: float, up: float) -> html.Point:
            return _LEFT + across * _SIZE, _TOP + (1 - up) * _SIZE

        bottom, most = _TOP + _SIZE, self.counts.max()
        points = [place(self.probabilities[bin_], self.shares[bin_]) for bin_ in used]
        parts = [
            html.line([place(0, 1), place(0, 0), place(1, 0)], "axis"),
            html.line([place(0, 0), place(1, 1)], "c1", stroke_width=1, stroke_dasharray="6 4"),
            html.line(points, "c0", stroke_width=2),
            *(
                html.disc(*at, 3 + 5 * (self.counts[bin_] / most) ** 0.5, "c0")
                for at, bin_ in zip(points, used, strict=True)
            ),
            html.label(0, 14, "share right"),
            html.label(_LEFT - 6, _TOP + 4, "1", anchor="end"),
            html.label(_LEFT - 6, bottom + 4, "0", anchor="end"),
            html.label(_LEFT + _SIZE, bottom + 18, "1", anchor="middle"),
            html.label(_LEFT + _SIZE / 2, bottom + 18, "probability", anchor="middle"),
        ]
        pairs = zip(self.probabilities[used], self.shares[used], strict=True)
        ends = ", ".join(f"{html.percent(share)} right at {html.percent(value)}" for value, share in pairs)
        return html.drawing(_LEFT + _SIZE + 20, bottom + 28, parts, label=ends)
