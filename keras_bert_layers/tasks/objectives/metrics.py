"""Metrics of `compile`: Keras's metrics of probabilities, for models whose outputs are logits."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Outputs, Tensor
from keras_bert_layers.export.text_task import TextTask

# Keras's metrics of probabilities that take the second of two classes as the positive one, unless they have a class.
_OF_ONE_COLUMN = """
    AUC BinaryAccuracy BinaryCrossentropy BinaryIoU FalseNegatives FalsePositives Precision PrecisionAtRecall Recall
    RecallAtPrecision SensitivityAtSpecificity SpecificityAtSensitivity TrueNegatives TruePositives
""".split()  # noqa: SIM905 - one name per line would be a page
_OF_PROBABILITIES = [*_OF_ONE_COLUMN, "CategoricalCrossentropy", "F1Score", "FBetaScore", "KLDivergence", "Poisson"]
# Those that are right for logits, but compare one column per class, which class indices are not.
_OF_COLUMNS = ["CategoricalAccuracy", "MeanSquaredError", "OneHotIoU", "OneHotMeanIoU", "TopKCategoricalAccuracy"]
# Those that compare class indices, and Keras's functions that no class makes for logits.
_OF_INDICES = ["Accuracy", "IoU", "MeanIoU", "SparseCategoricalCrossentropy"]
_FUNCTIONS = ["BinaryFocalCrossentropy", "CategoricalFocalCrossentropy"]
_BY_NAME = {name.lower(): name for name in (*_OF_PROBABILITIES, *_OF_COLUMNS, *_OF_INDICES, *_FUNCTIONS)}
_BY_NAME |= {"bce": "BinaryCrossentropy", "mse": "MeanSquaredError"}
_EXCLUDED = -1e9


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

    def __init__(
        self, metric: keras.metrics.Metric, name: str | None = None, dtype: str | keras.DTypePolicy | None = None
    ):
        super().__init__(name=name or metric.name, dtype=dtype)
        self.metric = metric

    def update_state(self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None) -> None:
        """Adds class indices `(batch,)`, or one column per class; and logits `(batch, classes)`."""
        config, name = self.metric.get_config(), type(self.metric).__name__
        labels, logits = one_hot(y_true, y_pred), ops.cast(y_pred, "float32")
        if name == "CategoricalCrossentropy" and config["from_logits"]:
            outputs = logits
        elif _reads_logits(config):
            is_own = ops.eye(ops.shape(logits)[-1], dtype="bool")[None]  # [1, C, C]
            outputs = logits - ops.logsumexp(ops.where(is_own, _EXCLUDED, logits[:, None, :]), axis=-1)
        else:
            # Not `softmax`: Keras keeps its logits with its result, which binary losses then take for a sigmoid's.
            outputs = ops.exp(ops.log_softmax(logits, axis=-1))
        has_class = config.get("class_id") is not None or config.get("top_k") is not None or config.get("multi_label")
        if y_pred.shape[-1] == 2 and name in _OF_ONE_COLUMN and not has_class:
            labels, outputs = labels[:, 1], outputs[:, 1]
        self.metric.update_state(labels, outputs, sample_weight=sample_weight)

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


@register
class OfSigmoid(OfClasses):
    """A metric of Keras on the logits of independent classes: it gets their probabilities, and labels unchanged."""

    def update_state(self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None) -> None:
        """Adds labels and logits of equal shape."""
        probabilities = ops.sigmoid(ops.cast(y_pred, "float32"))
        self.metric.update_state(y_true, probabilities, sample_weight=sample_weight)


@register
class PairAUC(keras.metrics.AUC):
    """Keras's `AUC` without pairs whose label is below 0, those of candidates that are absent."""

    def update_state(self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None) -> None:
        """Adds labels and logits of equal shape."""
        present = ops.cast(ops.convert_to_tensor(y_true) >= 0, "float32")
        super().update_state(y_true, y_pred, present if sample_weight is None else present * sample_weight)


def one_hot(y_true: Tensor, y_pred: Outputs) -> Any:
    """Labels as float32 `(batch, classes)`: class indices become 0 and 1; one column per class stays.

    Args:
        y_true: class indices `(batch,)` or `(batch, 1)`, or `(batch, classes)`.
        y_pred: `(batch, classes)`.
    """
    if has_columns(y_true, y_pred):
        return ops.cast(y_true, "float32")
    indices = ops.cast(ops.reshape(y_true, (-1,)), "int32")
    return ops.one_hot(indices, ops.shape(y_pred)[-1], dtype="float32")


def has_columns(y_true: Tensor, y_pred: Any) -> bool:
    """Whether labels have one column per class, as the outputs."""
    return len(y_true.shape) == 2 and y_true.shape[-1] == y_pred.shape[-1] != 1


def take_indices(metrics: Sequence[Any] | Mapping[str, Any]) -> bool:
    """Whether one of the metrics of `compile` compares class indices."""
    kinds = [type(metric) for metric in keras.tree.flatten(metrics)]
    ours = [kind for kind in kinds if kind.__module__.startswith("keras_bert_layers.") and kind is not OfClasses]
    return bool(ours) or any(kind.__name__.startswith("Sparse") for kind in kinds)


def metrics_for(task: TextTask, losses: list[Any], metrics: Sequence[Any] | Mapping[str, Any]) -> Any:
    """Metrics of `compile`, in any structure, for a task whose outputs are logits: those with such a loss.

    Keras's metrics of probabilities, objects and names, get the probabilities of the logits, and one-hot labels where
    labels are class indices. What was made for logits stays as it is. A name of this package's metrics stands for the
    one that the task has by default, or that suits its labels.

    Args:
        task: the task.
        losses: its compiled losses, and last the default one.
        metrics: as `keras.Model.compile` takes them.

    Raises:
        ValueError: a metric that would read logits as something else.
    """
    metrics = keras.tree.map_structure(lambda metric: _by_name(task, metric), metrics)
    of_logits = [loss for loss in keras.tree.flatten(losses) if getattr(loss, "from_logits", False)]
    if not of_logits:
        return metrics
    # A loss of the user's own may have any name; the default loss, which is the last, shows what the labels are.
    wrapper = OfSigmoid if any(type(loss).__name__.startswith("Binary") for loss in of_logits) else None
    if type(losses[-1]) is keras.losses.SparseCategoricalCrossentropy and len(getattr(task.output, "shape", ())) == 2:
        wrapper = OfClasses
    return keras.tree.map_structure(lambda metric: _for_logits(type(task).__name__, metric, wrapper), metrics)


def _by_name(task: TextTask, metric: Any) -> Any:
    """The metric of this package that a name stands for, if the task has one; anything else unchanged."""
    if not isinstance(metric, str) or metric.lower() in ("accuracy", "acc") or _name_in_keras(metric):
        return metric
    defaults = task.default_metrics()
    known = list(defaults if isinstance(defaults, list) else ())
    known += getattr(getattr(task, "label_kind", None), "named_metrics", list)()  # beside the default ones
    wanted = metric.replace("_", "").lower()
    by_name = {name: own for own in known for name in (own.name.replace("_", ""), type(own).__name__.lower())}
    return by_name.get(wanted, metric)


def _for_logits(owner: str, metric: str | keras.metrics.Metric, wrapper: type[OfClasses] | None) -> Any:
    """A metric, made or wrapped for logits; `wrapper` fits the labels, and None is for those of neither kind."""
    if isinstance(metric, str) and metric.lower() in ("accuracy", "acc"):
        # Keras would decide by the first batch: by the shape of labels and outputs, and with a threshold of 0.5.
        if wrapper is OfClasses:
            return keras.metrics.SparseCategoricalAccuracy(name=metric)
        return keras.metrics.BinaryAccuracy(name=metric, threshold=0.0) if wrapper is OfSigmoid else metric
    name = _name_in_keras(metric)
    if name is None or (name in _OF_COLUMNS and wrapper is not OfClasses and not _config(metric).get("sparse_y_pred")):
        return metric
    is_wrapped = wrapper is OfClasses and name not in _OF_INDICES
    if not isinstance(metric, keras.metrics.Metric) and name not in _FUNCTIONS:
        kind = getattr(keras.metrics, name)
        options: dict[str, Any] = {} if inspect.isclass(metric) else {"name": getattr(metric, "__name__", metric)}
        if not is_wrapped and "from_logits" in inspect.signature(kind).parameters:
            options["from_logits"] = True
        try:
            metric = kind(**options)
        except TypeError as error:  # such as PrecisionAtRecall, whose recall has no default
            cure = f"Make it yourself: `keras.metrics.{name}(...)` with its arguments."
            raise ValueError(checks.message(owner, "metrics", "need no arguments", metric, cure)) from error
    config = _config(metric)
    if config and name != "Accuracy" and not config.get("sparse_y_pred"):
        if is_wrapped:
            return OfClasses(metric)
        if _reads_logits(config) or name in ("IoU", "MeanIoU"):
            return metric
        if wrapper is OfSigmoid and name in _OF_PROBABILITIES and name != "CategoricalCrossentropy":
            return OfSigmoid(metric)
    cure = 'Use one that compares class indices, such as "accuracy", or one of your own that takes logits.'
    if wrong := next((key for key in ("from_logits", "sparse_y_pred") if key in config), None):
        cure = f"Make it with `keras.metrics.{name}({wrong}={wrong == 'from_logits'})`."
        metric = f"{name}({wrong}={config[wrong]})"
    raise ValueError(checks.message(owner, "metrics", "read logits, which are this model's outputs", metric, cure))


def _name_in_keras(metric: str | keras.metrics.Metric) -> str | None:
    """The class of Keras's, one of those above, that an object, a class, a function or a name stands for."""
    kind = type(metric) if isinstance(metric, keras.metrics.Metric) else metric
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    if not isinstance(kind, str) and getattr(keras.metrics, name, None) is not kind:
        return None
    return _BY_NAME.get(name.replace("_", "").lower())


def _config(metric: str | keras.metrics.Metric) -> dict[str, Any]:
    return metric.get_config() if isinstance(metric, keras.metrics.Metric) else {}


def _reads_logits(config: dict[str, Any]) -> bool:
    """Whether a metric was made for logits: with `from_logits=True`, or a threshold that no probability is."""
    thresholds = [config.get("threshold"), *keras.tree.flatten(config.get("thresholds"))]
    given = [threshold for threshold in thresholds if threshold is not None]
    return bool(config.get("from_logits")) or (bool(given) and not 0 < max(given) <= 1)
