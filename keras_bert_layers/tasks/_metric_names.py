"""Which of Keras's metrics is meant by what `compile` is given."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import keras


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
