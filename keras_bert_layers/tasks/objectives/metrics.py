"""Metrics of `compile`: losses see logits, and Keras's metrics see probabilities."""

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

# Keras's metrics, by name in small letters and without underscores. The others of its module see no labels.
_BY_NAME = {
    name.lower(): kind
    for name, kind in vars(keras.metrics).items()
    if inspect.isclass(kind) and name not in ("Mean", "MeanMetricWrapper", "Metric", "Sum")
}
_ALIASES = {"bce": "BinaryCrossentropy", "mse": "MeanSquaredError", "mae": "MeanAbsoluteError"}
_ALIASES |= {"mape": "MeanAbsolutePercentageError", "msle": "MeanSquaredLogarithmicError"}
_BY_NAME |= {alias: _BY_NAME[name.lower()] for alias, name in _ALIASES.items()}
# They compare one distribution with another, which labels of several classes are not.
_OF_ONE_CLASS = ("CategoricalCrossentropy", "SparseCategoricalCrossentropy", "categorical_focal_crossentropy")
_EXCLUDED = -1e9


@register
class OfClasses(keras.metrics.Metric):
    """A metric of Keras on class indices and logits: it gets one-hot labels and the probabilities of the classes.

    A metric that was made for logits gets the logarithm of the odds of each class, so that its threshold of 0 is a
    probability of a half; one that compares the classes gets the logits. One of class indices gets them. Of two
    classes, metrics such as `AUC`, `Precision` and `Recall` get the second alone, unless they were made for one class
    or several.

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
        if _compares_indices(self.metric):
            outputs = ops.argmax(logits, axis=-1)
        elif not _sees_logits(self.metric):
            # Not `softmax`: Keras keeps its logits with its result, which binary losses then take for a sigmoid's.
            outputs = ops.exp(ops.log_softmax(logits, axis=-1))
        elif name.startswith("Categorical"):
            outputs = logits
        else:
            is_own = ops.eye(ops.shape(logits)[-1], dtype="bool")[None]  # [1, C, C]
            outputs = logits - ops.logsumexp(ops.where(is_own, _EXCLUDED, logits[:, None, :]), axis=-1)
        has_class = config.get("class_id") is not None or config.get("top_k") is not None or config.get("multi_label")
        if name.startswith("Sparse") or name in ("Accuracy", "IoU", "MeanIoU"):
            labels = ops.argmax(labels, axis=-1)
        elif y_pred.shape[-1] == 2 and _counts_positives(name, config) and not has_class:
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

    Keras's metrics, objects and names, get the probabilities of the logits, and one-hot labels where labels are class
    indices. What was made for logits, a metric of this package and one of the user's own get the logits. A name of this
    package's metrics stands for the one that the task has by default, or that suits its labels.

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
    if not isinstance(metric, str) or metric.lower() in ("accuracy", "acc"):
        return metric
    defaults = task.default_metrics()
    known = list(defaults if isinstance(defaults, list) else ())
    known += getattr(getattr(task, "label_kind", None), "named_metrics", list)()  # beside the default ones
    wanted = metric.replace("_", "").lower()
    ours = [own for own in known if type(own).__module__.startswith("keras_bert_layers.metrics.")]
    by_name = {name: own for own in ours for name in (own.name.replace("_", ""), type(own).__name__.lower())}
    return by_name.get(wanted, metric)


def _for_logits(owner: str, metric: Any, wrapper: type[OfClasses] | None) -> Any:
    """A metric, made or wrapped for logits; `wrapper` fits the labels, and None is for those of neither kind."""
    if isinstance(metric, str) and metric.lower() in ("accuracy", "acc"):
        # Keras would decide by the first batch: by the shape of labels and outputs, and with a threshold of 0.5.
        if wrapper is OfClasses:
            return keras.metrics.SparseCategoricalAccuracy(name=metric)
        return keras.metrics.BinaryAccuracy(name=metric, threshold=0.0) if wrapper is OfSigmoid else metric
    kind = _kind_in_keras(metric)
    if kind is None:
        return metric
    made = metric if isinstance(metric, keras.metrics.Metric) else _made(owner, metric, kind)
    name, config = getattr(metric, "__name__", kind.__name__), made.get_config()
    takes_outputs = name.startswith("Sparse") and config.get("from_logits") is not False
    if takes_outputs or (wrapper is not OfClasses and (_sees_logits(made) or config.get("sparse_y_pred") is False)):
        return made
    is_of_one_class = _compares_indices(made) or name in _OF_ONE_CLASS
    if wrapper is OfClasses or (wrapper is OfSigmoid and not is_of_one_class):
        return wrapper(made)
    cure = 'Use one that compares class indices, such as "accuracy", or one of your own that takes logits.'
    if wrong := next((key for key in ("from_logits", "sparse_y_pred") if key in config), None):
        cure = f"Make it with `keras.metrics.{name}({wrong}={wrong == 'from_logits'})`."
        metric = f"{name}({wrong}={config[wrong]})"
    raise ValueError(checks.message(owner, "metrics", "read logits, which are this model's outputs", metric, cure))


def _made(owner: str, given: Any, kind: type[keras.metrics.Metric]) -> keras.metrics.Metric:
    """The metric of a name, a class or a function of Keras; for logits, where it can be made so."""
    options: dict[str, Any] = {} if inspect.isclass(given) else {"name": getattr(given, "__name__", given)}
    if kind is keras.metrics.MeanMetricWrapper:
        options["fn"] = given
    if "from_logits" in inspect.signature(kind).parameters:
        options["from_logits"] = True
    try:
        return kind(**options)
    except TypeError as error:  # such as PrecisionAtRecall, whose recall has no default
        cure = f"Make it yourself: `keras.metrics.{kind.__name__}(...)` with its arguments."
        raise ValueError(checks.message(owner, "metrics", "need no arguments", given, cure)) from error


def _kind_in_keras(metric: Any) -> type[keras.metrics.Metric] | None:
    """Keras's class for an object, a class, a function or a name of Keras's; None for what is not Keras's."""
    kind = type(metric) if isinstance(metric, keras.metrics.Metric) else metric
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    if not isinstance(kind, str) and getattr(keras.metrics, name, None) is not kind:
        return None
    other = keras.metrics.MeanMetricWrapper if inspect.isfunction(metric) else None
    return _BY_NAME.get(name.replace("_", "").lower(), other)


def _sees_logits(metric: keras.metrics.Metric) -> bool:
    """Whether it was made for logits: with `from_logits=True`, a threshold that no probability is, or for margins."""
    config = metric.get_config()
    thresholds = [config.get("threshold"), *keras.tree.flatten(config.get("thresholds"))]
    given = [threshold for threshold in thresholds if threshold is not None]
    is_beyond = bool(given) and not 0 < max(given) <= 1
    return bool(config.get("from_logits")) or is_beyond or type(metric).__name__.endswith("Hinge")


def _compares_indices(metric: keras.metrics.Metric) -> bool:
    """Whether the outputs that it reads are class indices."""
    return type(metric).__name__ == "Accuracy" or bool(metric.get_config().get("sparse_y_pred"))


def _counts_positives(name: str, config: Mapping[str, Any]) -> bool:
    """Whether a metric is of one probability, that of the positive class."""
    return name.startswith("Binary") or not {"thresholds", "num_thresholds"}.isdisjoint(config)
