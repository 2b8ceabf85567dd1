"""`Calibration`: a classifier's temperature and thresholds, found on held-out rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.types import Labels, Rows
from keras_bert_layers.metrics import CalibrationError
from keras_bert_layers.tasks.feeding.columns import check_takes_text

# The logits of rows that are all predicted correctly can be scaled without an end.
_LEAST, _MOST = 0.02, 50.0


@dataclass(frozen=True)
class Calibration:
    """What `BertClassifier.calibrate` found.

    Args:
        temperature: the logits were divided by this; above 1 if the model was too sure.
        thresholds: class -> the probability above which it is predicted; None for one class per text.
        error_before: the expected calibration error of the rows before, in [0, 1]; see `metrics.CalibrationError`.
        error_after: the same after.
    """

    temperature: float
    thresholds: dict[str, float] | None
    error_before: float
    error_after: float


def calibrated(classifier: keras.Model, x: Rows, y: Labels, *, precision: float | None, **options: Any) -> Calibration:
    """Calibrates a `BertClassifier`; see its method `calibrate`. The options are those of `predict`."""
    owner, several = type(classifier).__name__, classifier.problem_type == "multi_label_classification"
    if classifier.problem_type == "regression":
        raise ValueError(checks.message(owner, "problem_type", "have probabilities", classifier.problem_type))
    if precision is not None and (not several or checks.share(owner, "precision", precision) == 0):
        rule = "be above 0, or None" if several else "be None for one class per text"
        raise ValueError(checks.message(owner, "precision", rule, precision))
    check_takes_text(classifier)
    dense = classifier.get_layer("classification_head").dense
    if dense.quantization_mode is not None:
        cure = "Calibrate first, and quantize the calibrated model."
        raise ValueError(
            checks.message(owner, "classification_head", "not be quantized", dense.quantization_mode, cure)
        )
    columns, y, _ = classifier.pipeline.batches.checked(x, y, None)
    y = np.asarray(y)
    logits = _logits(classifier, columns, y, **options)
    y = np.eye(logits.shape[1])[y] if y.ndim == 1 else y.astype(np.float64)
    temperature = _temperature(logits, y, several)
    if not 1.01 * _LEAST < temperature < 0.99 * _MOST:
        warnings.warn(
            f"`{owner}`: the best temperature is at the end of the range from {_LEAST:g} to {_MOST:g}, as these rows "
            "are all predicted right, or no better than at random. Calibrate with other rows, or with more.",
            stacklevel=3,
        )
    scaled = logits / temperature
    # The effective kernel of LoRA is the kernel and a product.
    weights = [dense._kernel, dense.bias, *([dense.lora_kernel_b] if dense.lora_enabled else [])]
    for weight in weights:
        weight.assign(weight / temperature)
    thresholds = None
    if several:
        before = np.broadcast_to(classifier.threshold, logits.shape[1])
        classifier.threshold = [
            _threshold(column, y[:, index] > 0.5, precision, float(before[index]))
            for index, column in enumerate(sigmoid(scaled).T)
        ]
        thresholds = dict(zip(classifier.label_kind.answers, classifier.threshold, strict=True))
    return Calibration(temperature, thresholds, *(_error(values, y, several) for values in (logits, scaled)))


def _logits(classifier: keras.Model, columns: Rows, y: np.ndarray, **options: Any) -> np.ndarray:
    """The logits of rows with labels that a temperature can be found for; ValueError for others."""
    owner = type(classifier).__name__
    if len(y) < 2 or len(np.unique(y)) < 2:
        cure = "Calibrate with rows of at least two classes, right and wrong ones."
        raise ValueError(
            checks.message(owner, "labels", "hold more than one class", checks.Shown(f"{len(y)} rows"), cure)
        )
    logits = np.asarray(classifier.predict(columns, **options), np.float64)
    if not np.isfinite(logits).all():
        cure = "A weight is NaN or infinite. Train the model with a lower learning rate."
        raise ValueError(checks.message(owner, "weights", "give finite logits", checks.Shown("NaN or infinity"), cure))
    return logits


def _temperature(logits: np.ndarray, y: np.ndarray, several: bool) -> float:
    """The temperature with the lowest cross entropy, which is convex in its inverse: a bisection of the slope."""

    def slope(inverse: float) -> float:  # without differences of nearly equal probabilities
        if several:
            return float((logits * ((1 - y) * sigmoid(inverse * logits) - y * sigmoid(-inverse * logits))).sum())
        return float((softmax(inverse * logits) * (logits - (y * logits).sum(axis=-1, keepdims=True))).sum())

    low, high = np.log(1 / _MOST), np.log(1 / _LEAST)
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if slope(np.exp(middle)) <= 0 else (low, middle)
    return float(np.exp(-(low + high) / 2))


def _threshold(scores: np.ndarray, is_label: np.ndarray, precision: float | None, before: float) -> float:
    """A class's threshold, halfway between two probabilities; 1, which predicts nothing, if no other is precise."""
    if not is_label.any():
        return before
    order = np.argsort(-scores, kind="stable")
    scores, right = scores[order], np.cumsum(is_label[order])
    chosen = np.arange(1, len(scores) + 1)
    if precision is None:
        value = 2 * right / (chosen + is_label.sum())
    else:
        value = np.where(right / chosen >= precision, right, -1)
    value[:-1][scores[:-1] == scores[1:]] = -1  # equal probabilities are all above a threshold, or none
    best = len(value) - 1 - int(value[::-1].argmax()) if precision is not None else int(value.argmax())
    if value[best] < 0:
        return 1.0
    return float(scores[best] + (scores[best + 1] if best + 1 < len(scores) else 0)) / 2


def _error(logits: np.ndarray, y: np.ndarray, several: bool) -> float:
    metric = CalibrationError(multi_label=several)
    metric.update_state((y > 0.5).astype(np.int32) if several else y.argmax(axis=1), logits.astype(np.float32))
    return float(keras.ops.convert_to_numpy(metric.result()))


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """The probability of each logit."""
    return 0.5 * (1 + np.tanh(logits / 2))


def softmax(logits: np.ndarray) -> np.ndarray:
    """The probabilities of the last axis, which sum to 1."""
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)
