"""`TokenClassificationHead`: logits of tags for each token."""

from __future__ import annotations

from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers.classification_head import ClassificationHead


@register
class TokenClassificationHead(ClassificationHead):
    """A token classification head: dropout and a dense layer, from each token's vector to the logits of its tag.

    `dropout(x) W + b`, computed in float32 under every dtype policy, for exact probabilities and losses. It is a
    `ClassificationHead` for all tokens instead of one vector.

    Args:
        num_tags: number of tags.
        dropout: dropout rate of the input, in [0, 1).
        initializer_range: standard deviation of the initial weights.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(batch, sequence, hidden_dim)`; any `(..., hidden_dim)`.

    Returns:
        Logits, float32 `(batch, sequence, num_tags)`; any `(..., num_tags)`.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> import keras
        >>> tuple(TokenClassificationHead(num_tags=5)(keras.ops.ones((2, 7, 8))).shape)
        (2, 7, 5)

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 5.3.
    """

    def __init__(self, num_tags: int, *, dropout: float = 0.1, initializer_range: float = 0.02, **kwargs: Any):
        num_tags = checks.positive_integer(type(self).__name__, "num_tags", num_tags)
        super().__init__(num_tags, dropout=dropout, initializer_range=initializer_range, **kwargs)
        self.num_tags = num_tags

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        config = super().get_config()
        config["num_tags"] = config.pop("num_classes")
        return config
