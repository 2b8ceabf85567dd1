"""Keras's metrics of probabilities and one-hot labels, for models with one class a row."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal.registration import register

# Those that take the second of two classes as the positive one, where they are not told of a class.
_OF_ONE_COLUMN = """
    AUC BinaryAccuracy BinaryCrossentropy BinaryFocalCrossentropy BinaryIoU FalseNegatives FalsePositives Precision
    PrecisionAtRecall Recall RecallAtPrecision SensitivityAtSpecificity SpecificityAtSensitivity TrueNegatives
    TruePositives
""".split()  # noqa: SIM905 - a line a name would be a page
# Metrics of Keras that compare one column a class; without those of class indices, such as "SparseCategorical...".
_OF_COLUMNS = [
    *_OF_ONE_COLUMN,
    *("CategoricalAccuracy", "CategoricalCrossentropy", "CategoricalFocalCrossentropy", "F1Score", "FBetaScore"),
    *("KLDivergence", "MeanSquaredError", "OneHotIoU", "OneHotMeanIoU", "Poisson", "TopKCategoricalAccuracy"),
]
_EXCLUDED = -1e9
_CLASS_NAMES = {name.lower(): name for name in _OF_COLUMNS} | {"bce": "BinaryCrossentropy", "mse": "MeanSquaredError"}


@register
class OfClasses(keras.metrics.Metric):
    """A metric of Keras on class indices and logits: it gets one-hot labels and the probabilities of the classes.

    A metric that was made for logits gets the logarithm of the odds of each class, so that its threshold of 0 is a
    probability of a half. Of two classes, metrics such as `AUC`, `Precision` and `Recall` get the second alone, unless
    they were made for one class or several.

    Args:
        metric: one of `keras.metrics`.
        name: the metric's name; that of `metric` if None.
        dtype: as in Keras.
    """

    def __init__(self, metric: keras.metrics.Metric, name: str | None = None, dtype: Any = None):
        super().__init__(name=name or metric.name, dtype=dtype)
        self.metric = metric

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds class indices `(batch,)`, or one column a class; and logits `(batch, classes)`."""
        labels, outputs = one_hot(y_true, y_pred), self._outputs(ops.cast(y_pred, "float32"))
        if y_pred.shape[-1] == 2 and self._takes_one_column():
            labels, outputs = labels[:, 1], outputs[:, 1]
        self.metric.update_state(labels, outputs, sample_weight=sample_weight)

    def _outputs(self, logits: Any) -> Any:
        config = self.metric.get_config()
        if type(self.metric).__name__.startswith("Categorical") and config.get("from_logits"):
            return logits
        thresholds = keras.tree.flatten([config.get("threshold"), config.get("thresholds")])
        given = [threshold for threshold in thresholds if threshold is not None]
        if not config.get("from_logits") and (not given or max(given) > 0):
            # Not `softmax`: Keras keeps its logits with its result, which binary losses then take for a sigmoid's.
            return ops.exp(ops.log_softmax(logits, axis=-1))
        is_own = ops.eye(ops.shape(logits)[-1], dtype="bool")[None]  # [1, C, C]
        return logits - ops.logsumexp(ops.where(is_own, _EXCLUDED, logits[:, None, :]), axis=-1)

    def _takes_one_column(self) -> bool:
        config = self.metric.get_config()
        told = config.get("class_id") is not None or config.get("top_k") is not None or config.get("multi_label")
        return type(self.metric).__name__ in _OF_ONE_COLUMN and not told

    def result(self) -> Any:
        """The metric's result."""
        return self.metric.result()

    def reset_state(self) -> None:
        """Forgets what was added."""
        self.metric.reset_state()

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "metric": keras.saving.serialize_keras_object(self.metric)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> OfClasses:
        """The metric of a `get_config` dictionary."""
        return cls(**{**config, "metric": keras.saving.deserialize_keras_object(config["metric"])})


def one_hot(y_true: Any, y_pred: Any) -> Any:
    """Labels as float32 `(batch, classes)`: class indices become 0 and 1; one column a class stays.

    Args:
        y_true: class indices `(batch,)` or `(batch, 1)`, or `(batch, classes)`.
        y_pred: `(batch, classes)`.
    """
    if has_columns(y_true, y_pred):
        return ops.cast(y_true, "float32")
    indices = ops.cast(ops.reshape(y_true, (-1,)), "int32")
    return ops.one_hot(indices, ops.shape(y_pred)[-1], dtype="float32")


def has_columns(y_true: Any, y_pred: Any) -> bool:
    """Whether labels have one column a class, as the outputs."""
    return len(y_true.shape) == 2 and y_true.shape[-1] == y_pred.shape[-1] != 1


def metrics_of_classes(metrics: Any) -> Any:
    """Metrics of `compile`, in any structure, with Keras's metrics of one column a class as `OfClasses`."""
    return keras.tree.map_structure(_of_classes, metrics)


def take_indices(metrics: Any) -> bool:
    """Whether one of the metrics of `compile` compares class indices."""
    names = (type(metric) for metric in keras.tree.flatten(metrics) if isinstance(metric, keras.metrics.Metric))
    return any(
        kind is not OfClasses
        and (kind.__name__.startswith("Sparse") or kind.__module__.startswith("keras_bert_layers."))
        for kind in names
    )


def _of_classes(metric: Any) -> Any:
    if isinstance(metric, keras.metrics.Metric):
        name = type(metric).__name__
        is_kerass = type(metric) is getattr(keras.metrics, name, None)
        return OfClasses(metric) if is_kerass and name in _OF_COLUMNS else metric
    if metric in ("accuracy", "acc"):  # Keras would decide by the labels of the first batch, for all of them
        return keras.metrics.SparseCategoricalAccuracy(name=metric)
    found = class_and_options(metric, _CLASS_NAMES)
    if found is None:
        return metric
    name, options = found
    return OfClasses(getattr(keras.metrics, name)(**options))


def class_and_options(metric: Any, class_names: Mapping[str, str]) -> tuple[str, dict[str, Any]] | None:
    """The class in `keras.metrics` of a metric, and what to make it with: Keras reports it under the name it was given.

    Args:
        metric: a name, or a class or a function of `keras.metrics`.
        class_names: names in small letters, without underscores -> classes.

    Returns:
        None if it is no metric of Keras, or not one of these.

    Examples:
        >>> class_and_options("binary_accuracy", {"binaryaccuracy": "BinaryAccuracy"})
        ('BinaryAccuracy', {'name': 'binary_accuracy'})
    """
    given = metric if isinstance(metric, str) else getattr(metric, "__name__", "")
    if not isinstance(metric, str) and (not given or getattr(keras.metrics, given, None) is not metric):
        return None
    found = class_names.get(given.replace("_", "").lower())
    return None if found is None else (found, {} if inspect.isclass(metric) else {"name": given})
