"""`extend_positions` and `interpolate_positions`: a model that reads longer texts, with more trained positions."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks, keras_models
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.tasks.graphs.heads import backbones_of
from keras_bert_layers.tasks.task import Task


def extend_positions(model: keras.Model, max_sequence_length: int, *, alpha: float = 0.4) -> Any:
    """Makes a model for longer texts by hierarchical decomposition of its positions; the first ones stay.

    With n old positions, the new position i * n + j is `alpha * u[i] + (1 - alpha) * u[j]`, where u are such that the
    first n positions stay as they are. Texts that the old model reads have the same outputs. Later positions are a
    start for further training, and need it.

    Args:
        model: a task or a `BertBackbone`; it stays as it is.
        max_sequence_length: the number of positions, at most the square of what the model has.
        alpha: the share of the coarse position, above 0, below 1, and not 0.5, for which the positions i * n + j and
            j * n + i would be equal.

    Returns:
        A new model of the same class, compiled as a new one is. Its preprocessor cuts texts where the old one does;
        give the task another one for longer texts.

    Raises:
        TypeError: the model is neither a task nor a backbone.
        ValueError: an argument out of range; an encoder without trained positions.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(
        ...     vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16, max_sequence_length=512
        ... )
        >>> extend_positions(kbl.BertBackbone(config), 2048).config.max_sequence_length
        2048

    References:
        Su Jianlin 2020, hierarchical decomposition of positions for BERT, https://kexue.fm/archives/7947.
    """
    checks.fraction("extend_positions", "alpha", alpha)
    if alpha in (0, 0.5):
        raise ValueError(checks.message("extend_positions", "alpha", "be above 0, below 1 and not 0.5", alpha))

    def rows(old: np.ndarray) -> np.ndarray:
        if max_sequence_length > len(old) ** 2:
            rule = f"be at most {len(old) ** 2}, the square of what the model has"
            raise ValueError(checks.message("extend_positions", "max_sequence_length", rule, max_sequence_length))
        parts = (old - alpha * old[0]) / (1 - alpha)
        coarse, fine = np.divmod(np.arange(len(old), max_sequence_length), len(old))
        return np.concatenate([old, alpha * parts[coarse] + (1 - alpha) * parts[fine]])

    return _with_positions("extend_positions", model, max_sequence_length, rows)


def interpolate_positions(model: Any, max_sequence_length: int) -> Any:
    """Makes a model for longer texts by linear interpolation of its positions.

    The first and the last position stay; new ones are on straight lines between neighbours. Every position
    is near one that the model was trained on, but neighbours are nearer to each other than they were: outputs of all
    texts change, and the model needs further training. `extend_positions` keeps the outputs of short texts.

    Args:
        model: a task or a `BertBackbone`; it stays as it is.
        max_sequence_length: the number of positions.

    Returns:
        A new model of the same class, compiled as a new one is. Its preprocessor cuts texts where the old one does;
        give the task another one for longer texts.

    Raises:
        TypeError: the model is neither a task nor a backbone.
        ValueError: `max_sequence_length` is not above what the model has; an encoder without trained positions.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(
        ...     vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16, max_sequence_length=512
        ... )
        >>> interpolate_positions(kbl.BertBackbone(config), 1024).config.max_sequence_length
        1024

    References:
        Chen et al. 2023, https://arxiv.org/abs/2306.15595, section 2.3, who do so with rotary positions.
    """

    def rows(old: np.ndarray) -> np.ndarray:
        places = np.linspace(0, len(old) - 1, max_sequence_length)
        before = np.minimum(places.astype(int), max(len(old) - 2, 0))
        after = np.minimum(before + 1, len(old) - 1)
        share = (places - before)[:, None]
        return (1 - share) * old[before] + share * old[after]

    return _with_positions("interpolate_positions", model, max_sequence_length, rows)


def _with_positions(owner: str, model: keras.Model, length: Any, rows: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Makes a model whose encoders read longer sequences.

    Args:
        owner: the public function that was called, for errors.
        model: a task or a `BertBackbone`.
        length: the new `max_sequence_length`.
        rows: from the vectors of the old positions, float64 `(old, width)`, to those of the new ones.

    Raises:
        TypeError: the model is neither.
        ValueError: an encoder has no trained positions, or `length` is not larger than what it has.
    """
    if not isinstance(model, Task | BertBackbone):
        raise TypeError(checks.message(owner, "model", "be a task or a BertBackbone", model))
    backbones = backbones_of(model)
    for backbone in backbones:
        if backbone.parts.positions is not None:
            rule = "have a trained position embedding"
            raise ValueError(checks.message(owner, "model", rule, backbone.parts.positions))
    smallest = max(backbone.config.max_sequence_length for backbone in backbones) + 1
    checks.integer(owner, "max_sequence_length", length, smallest=smallest, reason=", more than the model has")
    (offset,) = {backbone.config.position_offset for backbone in backbones}

    def all_rows(old: np.ndarray) -> np.ndarray:
        return np.concatenate([old[:offset], rows(old[offset:].astype("float64"))])

    changed = [backbone.get_layer("embedding").position_embedding for backbone in backbones]
    return keras_models.rebuild(model, _longer(model.get_config(), length), changed, all_rows)


def _longer(value: object, length: int) -> Any:
    """A config with another length wherever there is an encoder."""
    if not isinstance(value, dict):
        return value
    return {key: length if key == "max_sequence_length" else _longer(item, length) for key, item in value.items()}
