"""`MultipleChoiceHead`: one score for each choice."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers.classification_head import ClassificationHead

# The score of an absent choice: finite, so that no gradient is NaN, and 0 after a softmax in float32.
ABSENT_SCORE = -1e9


@register
class MultipleChoiceHead(ClassificationHead):
    """A multiple-choice head: dropout and a dense layer with one output, the score of a choice.

    `dropout(x) w + b`, computed in float32 under every dtype policy, for exact probabilities and losses. The softmax of
    the scores of a row are the probabilities of its choices. Rows may have different numbers of choices: absent choices
    are masked, and get a score of -1e9, so that their probability is 0.

    Args:
        dropout: dropout rate of the input, in [0, 1).
        initializer_range: standard deviation of the initial weights.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        pooled: float `(..., hidden_dim)`, such as `(batch, choices, hidden_dim)`.
        choice_mask: int or bool, one value for each vector, 1 = the choice exists; None if all exist. The scores have
            its shape: with a mask `(batch, choices)`, `pooled` may be `(batch * choices, hidden_dim)`.

    Returns:
        Scores, float32 `(...)`, or in the shape of the mask.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> tuple(MultipleChoiceHead()(keras.ops.ones((2, 4, 8))).shape)
        (2, 4)

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 4.4 (SWAG).
    """

    def __init__(self, *, dropout: float = 0.1, initializer_range: float = 0.02, **kwargs: Any):
        super().__init__(1, dropout=dropout, initializer_range=initializer_range, **kwargs)

    def call(self, pooled: Any, choice_mask: Any = None) -> Any:
        """Computes scores; see the class."""
        scores = ops.squeeze(super().call(pooled), axis=-1)
        if choice_mask is None:
            return scores
        return ops.where(ops.cast(choice_mask, "bool"), ops.reshape(scores, ops.shape(choice_mask)), ABSENT_SCORE)

    def compute_output_spec(self, pooled: Any, choice_mask: Any = None) -> Any:
        """Shape and dtype of the scores."""
        shape = pooled.shape[:-1] if choice_mask is None else choice_mask.shape
        return keras.KerasTensor(shape, dtype="float32")

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        config = super().get_config()
        del config["num_classes"]
        return config
