"""Metrics of `compile`, as they must be for models whose outputs are logits."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers.tasks.objectives.class_metrics import class_and_options, metrics_of_classes

_FROM_LOGITS = {"from_logits": True}
_THRESHOLD = {"threshold": 0.0}
_THRESHOLDS = {"thresholds": 0.0}
_SUBCLASS = "Make a subclass whose `update_state` hands on `keras.ops.sigmoid(y_pred)`."
_FUNCTION = "Hand on `from_logits=True` in a function of your own."
#: Keras's metrics of probabilities: the arguments that make them metrics of logits; or, if none do, the cure.
_FOR_LOGITS: dict[str, dict[str, Any] | str] = {
    "AUC": _FROM_LOGITS,
    "Accuracy": 'Write "accuracy".',
    "BinaryAccuracy": _THRESHOLD,
    "BinaryCrossentropy": _FROM_LOGITS,
    "BinaryFocalCrossentropy": _FUNCTION,
    "BinaryIoU": _THRESHOLD,
    "CategoricalCrossentropy": _FROM_LOGITS,
    "CategoricalFocalCrossentropy": _FUNCTION,
    "FalseNegatives": _THRESHOLDS,
    "FalsePositives": _THRESHOLDS,
    "KLDivergence": _SUBCLASS,
    "Poisson": _SUBCLASS,
    "Precision": _THRESHOLDS,
    "PrecisionAtRecall": _SUBCLASS,
    "Recall": _THRESHOLDS,
    "RecallAtPrecision": _SUBCLASS,
    "SensitivityAtSpecificity": _SUBCLASS,
    "SparseCategoricalCrossentropy": _FROM_LOGITS,
    "SpecificityAtSensitivity": _SUBCLASS,
    "TrueNegatives": _THRESHOLDS,
    "TruePositives": _THRESHOLDS,
}
#: The same for those that compare the highest value unless they are told otherwise.
_TOLD_OTHERWISE: dict[str, dict[str, Any] | str] = {
    "F1Score": "Use `keras_bert_layers.metrics.F1Score`.",
    "FBetaScore": _SUBCLASS,
    "IoU": {"sparse_y_pred": False},
    "MeanIoU": {"sparse_y_pred": False},
    "OneHotIoU": {"sparse_y_pred": False},
    "OneHotMeanIoU": {"sparse_y_pred": False},
}
_ALL = _FOR_LOGITS | _TOLD_OTHERWISE
_CLASS_NAMES = {name.lower(): name for name in _FOR_LOGITS} | {"bce": "BinaryCrossentropy"}


def metrics_for(task: Any, losses: list[Any], metrics: Any) -> Any:
    """Metrics of `compile` for a task, by its compiled and its default loss."""
    default = losses[-1]
    if type(default) is keras.losses.SparseCategoricalCrossentropy and len(getattr(task.output, "shape", ())) == 2:
        metrics = metrics_of_classes(metrics)
    return metrics_on_logits(type(task).__name__, metrics, losses)


def metrics_on_logits(owner: str, metrics: Any, losses: Any) -> Any:
    """Metrics of `compile`, in any structure, for outputs that are logits; they are if one of the losses says so.

    A metric of probabilities by name, as a class or as a function of Keras, is made for logits: with
    `from_logits=True`, or with a threshold of 0. An object that expects probabilities is refused.

    Raises:
        ValueError: an object that expects probabilities; a metric that Keras cannot make for logits.
    """
    of_logits = [loss for loss in keras.tree.flatten(losses) if getattr(loss, "from_logits", False)]
    if not of_logits:
        return metrics
    is_binary = type(of_logits[0]).__name__.startswith("Binary")
    return keras.tree.map_structure(lambda metric: _on_logits(owner, metric, is_binary), metrics)


def _on_logits(owner: str, metric: Any, is_binary: bool) -> Any:
    if isinstance(metric, keras.metrics.Metric):
        if _reads_probabilities(metric):
            raise _refusal(owner, type(metric).__name__, metric.get_config())
        return metric
    if isinstance(metric, str) and metric.lower() in ("accuracy", "acc"):
        # Keras would choose by shape: the highest of several columns, or a threshold of 0.5 for one.
        return keras.metrics.BinaryAccuracy(name=metric, threshold=0.0) if is_binary else metric
    found = class_and_options(metric, _CLASS_NAMES)
    if found is None:
        return metric
    name, options = found
    for_logits = _FOR_LOGITS[name]
    if isinstance(for_logits, str):
        raise _refusal(owner, name, metric)
    return getattr(keras.metrics, name)(**options, **for_logits)


def _reads_probabilities(metric: Any) -> bool:
    name, config = type(metric).__name__, metric.get_config()
    if type(metric) is not getattr(keras.metrics, name, None) or name not in _ALL:
        return False
    options = _ALL[name]
    if options is _THRESHOLDS:
        return config.get("top_k") is None and any(threshold != 0 for threshold in metric.thresholds)
    if name in _TOLD_OTHERWISE or options is _THRESHOLD:
        return bool(config.get("sparse_y_pred")) or 0 < (config.get("threshold") or 0) <= 1
    return isinstance(options, str) or config["from_logits"] is False


def _refusal(owner: str, name: str, received: Any) -> ValueError:
    cure = _ALL[name]
    if isinstance(received, dict):
        shown = {
            key: received[key] for key in ("threshold", "thresholds", "from_logits", "sparse_y_pred") if key in received
        }
        received = f"{name}({', '.join(f'{key}={value!r}' for key, value in shown.items())})"
    if not isinstance(cure, str):
        options = ", ".join(f"{key}={value}" for key, value in cure.items())
        cure = f"Make it with `keras.metrics.{name}({options})`; a probability of 0.5 is a logit of 0."
    return ValueError(checks.message(owner, "metrics", "read logits, which are this model's outputs", received, cure))
