"""`interpolate_positions`: a model that reads longer texts, with its positions stretched over them."""

from __future__ import annotations

from typing import Any

import numpy as np

from keras_bert_layers.tasks._other_positions import with_positions

OWNER = "interpolate_positions"


def interpolate_positions(model: Any, max_sequence_length: int) -> Any:
    """Makes a model for longer texts, whose positions are the old ones with others between them.

    The first and the last position stay; what is between them is on straight lines between neighbours. Every position
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

    return with_positions(OWNER, model, max_sequence_length, rows)
