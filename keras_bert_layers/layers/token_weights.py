"""`TokenWeights`: a weight for each token of the vocabulary that is in a text, without an encoder."""

from typing import Any, Unpack

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import LayerOptions, Shape, Tensor


@register
class TokenWeights(keras.layers.Layer):
    """A weight for each token of the vocabulary that is in a text, whatever is around it: no encoder runs.

    The first and the last real token of a row, such as `[CLS]` and `[SEP]`, do not count.

    Args:
        vocabulary_size: how many tokens there are. Their weights begin as 1; training keeps them at 0 or above.
        **kwargs: `name`, and `trainable`: whether training changes the weights.

    Call arguments:
        token_ids: int `(batch, sequence)`.
        padding_mask: int or bool `(batch, sequence)`, 1 = real token; padding comes last.

    Returns:
        Float32 `(batch, vocabulary_size)`: the weights of the tokens that are there, 0 for others.

    Raises:
        ValueError: an argument out of range.

    Examples:
        >>> ids, mask = ops.array([[1, 4, 3, 4, 2, 0]]), ops.array([[1, 1, 1, 1, 1, 0]])
        >>> ops.convert_to_numpy(TokenWeights(5)(ids, mask)).tolist()
        [[0.0, 0.0, 0.0, 1.0, 1.0]]

    References:
        Geng et al. 2024, arXiv:2411.04403; `SparseStaticEmbedding` of sentence-transformers, which reads two tokens
        more of a text that is cut, as it adds no `[CLS]` and `[SEP]`.
    """

    def __init__(self, vocabulary_size: int, **kwargs: Unpack[LayerOptions]):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.vocabulary_size = checks.positive_integer("TokenWeights", "vocabulary_size", vocabulary_size)

    def build(self, token_ids_shape: Shape | None, padding_mask_shape: Shape | None = None) -> None:
        """Creates the weights."""
        options: dict[str, Any] = {"constraint": keras.constraints.NonNeg(), "name": "token_weights"}
        self.token_weights = self.add_weight((self.vocabulary_size,), "ones", **options)

    def call(self, token_ids: Tensor, padding_mask: Tensor) -> Any:
        """Looks the weights up; see the class."""
        num_rows, length = ops.shape(token_ids)
        place, last = ops.arange(length)[None], ops.sum(ops.cast(padding_mask, "int32"), axis=1, keepdims=True) - 1
        is_inside = ops.cast(ops.logical_and(place > 0, place < last), "float32")
        cells = ops.arange(num_rows)[:, None] * self.vocabulary_size + ops.cast(token_ids, "int32")
        size = num_rows * self.vocabulary_size
        counts = ops.segment_sum(ops.reshape(is_inside, (-1,)), ops.reshape(cells, (-1,)), num_segments=size)
        is_there = ops.cast(ops.reshape(counts, (-1, self.vocabulary_size)) > 0, "float32")
        return is_there * self.token_weights

    def compute_output_spec(self, token_ids: Tensor, padding_mask: Tensor) -> Any:
        """Shape and dtype of the weights."""
        return keras.KerasTensor((token_ids.shape[0], self.vocabulary_size), dtype="float32")

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "vocabulary_size": self.vocabulary_size}
