"""Classification heads: logits of a sequence, of each token, or of the choices of multiple choice."""

from typing import Any, Unpack

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import constructor_arguments
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Ids, LayerOptions, Shape, Tensor
from keras_bert_layers.layers.dense import dense
from keras_bert_layers.layers.padding_free import of_each_token

# The score of an absent choice: finite, so that no gradient is NaN, and 0 after a softmax in float32.
ABSENT_SCORE = -1e9


@register
class ClassificationHead(keras.layers.Layer):
    """A classification head: dropout and a dense layer, from a vector to the logits of classes.

    `dropout(x) W + b`, computed in float32 under every dtype policy, for exact probabilities and losses.

    Args:
        num_classes: number of classes.
        dropout: dropout rate of the input, in [0, 1).
        initializer_range: standard deviation of the initial weights.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(..., hidden_dim)`.

    Returns:
        Logits, float32 `(..., num_classes)`.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> tuple(ClassificationHead(num_classes=3)(keras.ops.ones((2, 8))).shape)
        (2, 3)

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 4.1; `create_model` in google-research/bert,
        run_classifier.py.
    """

    def __init__(
        self, num_classes: int, *, dropout: float = 0.1, initializer_range: float = 0.02, **kwargs: Unpack[LayerOptions]
    ):
        super().__init__(**kwargs)
        owner = type(self).__name__
        self.num_classes = checks.positive_integer(owner, "num_classes", num_classes)
        self.dropout = checks.fraction(owner, "dropout", dropout)
        self.initializer_range = checks.positive_number(owner, "initializer_range", initializer_range)

    def build(self, input_shape: Shape) -> None:
        """Creates the dense layer."""
        self.dropout_layer = keras.layers.Dropout(self.dropout, dtype=self.dtype_policy, name="dropout")
        self.dense = dense(self.num_classes, self.initializer_range, dtype="float32")
        self.dense.build(input_shape)

    def call(self, hidden: Tensor) -> Any:
        """Computes logits; see the class."""
        return of_each_token(lambda tokens: self.dense(self.dropout_layer(tokens)), hidden)

    def compute_output_spec(self, hidden: Tensor) -> Any:
        """Shape and dtype of the logits."""
        return keras.KerasTensor((*hidden.shape[:-1], self.num_classes), dtype="float32")

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), **constructor_arguments(ClassificationHead, self)}


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
        >>> tuple(TokenClassificationHead(num_tags=5)(keras.ops.ones((2, 7, 8))).shape)
        (2, 7, 5)

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 5.3.
    """

    def __init__(
        self, num_tags: int, *, dropout: float = 0.1, initializer_range: float = 0.02, **kwargs: Unpack[LayerOptions]
    ):
        num_tags = checks.positive_integer(type(self).__name__, "num_tags", num_tags)
        super().__init__(num_tags, dropout=dropout, initializer_range=initializer_range, **kwargs)
        self.num_tags = num_tags

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        config = super().get_config()
        config["num_tags"] = config.pop("num_classes")
        return config


@register
class FlattenChoices(keras.layers.Layer):
    """Merges the axes of rows and choices, so that a backbone reads each choice as a row.

    `(batch, choices, sequence)` becomes `(batch * choices, sequence)`, with the choices of a row one after the other.
    `MultipleChoiceHead` splits the scores into rows again.

    Call arguments:
        ids: int `(batch, choices, sequence)`.

    Returns:
        The same ids, `(batch * choices, sequence)`.

    Examples:
        >>> tuple(FlattenChoices()(keras.ops.ones((2, 4, 9), dtype="int32")).shape)
        (8, 9)
    """

    def call(self, ids: Ids) -> Any:
        """Merges the first two axes; see the class."""
        return ops.reshape(ids, (-1, ops.shape(ids)[-1]))  # [B * choices, S]

    def compute_output_spec(self, ids: Tensor) -> Any:
        """Shape and dtype of the output."""
        return keras.KerasTensor((None, ids.shape[-1]), dtype=ids.dtype)


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

    def __init__(self, *, dropout: float = 0.1, initializer_range: float = 0.02, **kwargs: Unpack[LayerOptions]):
        super().__init__(1, dropout=dropout, initializer_range=initializer_range, **kwargs)

    def call(self, pooled: Tensor, choice_mask: Tensor | None = None) -> Any:
        """Computes scores; see the class."""
        scores = ops.squeeze(super().call(pooled), axis=-1)
        if choice_mask is None:
            return scores
        return ops.where(ops.cast(choice_mask, "bool"), ops.reshape(scores, ops.shape(choice_mask)), ABSENT_SCORE)

    def compute_output_spec(self, pooled: Tensor, choice_mask: Tensor | None = None) -> Any:
        """Shape and dtype of the scores."""
        shape = pooled.shape[:-1] if choice_mask is None else choice_mask.shape
        return keras.KerasTensor(shape, dtype="float32")

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        config = super().get_config()
        del config["num_classes"]
        return config
