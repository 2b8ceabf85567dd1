"""`extend_positions`: a model that reads longer texts, with the positions that it has."""

from __future__ import annotations

from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.tasks._other_positions import with_positions

OWNER = "extend_positions"


def extend_positions(model: Any, max_sequence_length: int, *, alpha: float = 0.4) -> Any:
    """Makes a model for longer texts, whose first positions are the old ones: hierarchical decomposition.

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
    checks.fraction(OWNER, "alpha", alpha)
    if alpha in (0, 0.5):
        raise ValueError(checks.message(OWNER, "alpha", "be above 0, below 1 and not 0.5", alpha))

    def rows(old: np.ndarray) -> np.ndarray:
        if max_sequence_length > len(old) ** 2:
            rule = f"be at most {len(old) ** 2}, the square of what the model has"
            raise ValueError(checks.message(OWNER, "max_sequence_length", rule, max_sequence_length))
        parts = (old - alpha * old[0]) / (1 - alpha)
        coarse, fine = np.divmod(np.arange(len(old), max_sequence_length), len(old))
        return np.concatenate([old, alpha * parts[coarse] + (1 - alpha) * parts[fine]])

    return with_positions(OWNER, model, max_sequence_length, rows)
