"""`StaticBackbone`: a table of token vectors in the place of an encoder."""

from __future__ import annotations

import dataclasses
import sys
from os import PathLike
from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks, keras_models
from keras_bert_layers._internal.files import atomic_save
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Ids, Tensor
from keras_bert_layers.config import IDS
from keras_bert_layers.layers.initializers import truncated_normal
from keras_bert_layers.layers.padding_free import PaddingFreeLayer
from keras_bert_layers.layers.summed_gradient import with_summed_gradient


@dataclasses.dataclass(frozen=True)
class StaticConfig:
    """The sizes of a `StaticBackbone`, and what heads and preprocessors ask of a config; see there."""

    vocabulary_size: int
    hidden_dim: int
    # There are no positions, so a text may have any length.
    dropout, initializer_range, max_sequence_length = 0.0, 0.02, sys.maxsize

    def to_dict(self) -> dict[str, int]:
        """Every argument."""
        return dataclasses.asdict(self)


@register
class StaticBackbone(keras.Model):
    """A table of token vectors, which a head reads like the pooled output of a `BertBackbone`.

    The vector of a token does not depend on the tokens around it. A text is the mean of its tokens' vectors.
    `BertClassifier(encoder.backbone, ...)` makes a classifier on the table of a `BertStaticEncoder`, which both share.

    Args:
        vocabulary_size: number of token ids, which is the number of rows of the table.
        hidden_dim: width of a vector.
        dtype: dtype policy of the table; None for Keras's global policy.
        name: name of the model.

    Call arguments:
        inputs: as for a `BertBackbone`; `"segment_ids"` are ignored.

    Returns:
        A dictionary: `"pooled_output"`, float `(batch, hidden_dim)`, the mean over the real tokens, special ones
        included; zeros for a row without any.

    Raises:
        TypeError, ValueError: a size that is not an integer of at least 1.

    Examples:
        >>> backbone = StaticBackbone(vocabulary_size=9, hidden_dim=4)
        >>> ids = keras.ops.ones((2, 5), dtype="int32")
        >>> tuple(backbone({"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids})["pooled_output"].shape)
        (2, 4)
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        *,
        dtype: str | keras.DTypePolicy | None = None,
        name: str | None = None,
    ):
        checks.positive_integer("StaticBackbone", "vocabulary_size", vocabulary_size)
        checks.positive_integer("StaticBackbone", "hidden_dim", hidden_dim)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        inputs = {key: keras.Input((None,), dtype="int32", name=key) for key in IDS}
        table = MeanEmbedding(vocabulary_size, hidden_dim, dtype=policy, name="embedding")
        outputs = {"pooled_output": table(inputs["token_ids"], inputs["padding_mask"])}
        super().__init__(inputs, outputs, name=name)
        self.config = StaticConfig(vocabulary_size, hidden_dim)
        self.dtype_policy = policy

    def _run_through_graph(self, inputs: Ids, **functions: Any) -> Any:
        return keras_models.run_through_graph(self, inputs, **functions)

    def save(
        self, filepath: str | PathLike[str], overwrite: bool = True, zipped: bool | None = None, **kwargs: Any
    ) -> None:
        """Writes a `.keras` file, as `keras.Model.save`; a file there is replaced when the new one is complete."""
        atomic_save.save(self, filepath, overwrite, zipped, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        dtype = keras.dtype_policies.serialize(self.dtype_policy)
        return {**self.config.to_dict(), "dtype": dtype, "name": self.name}


class MeanEmbedding(PaddingFreeLayer):
    """The mean of the vectors of the real tokens of each row, `[B, H]` of token ids and a mask `[B, S]`.

    Args:
        vocabulary_size: rows of the table.
        hidden_dim: width of a vector.
        **kwargs: `name`, `dtype`.
    """

    def __init__(self, vocabulary_size: int, hidden_dim: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = StaticConfig(vocabulary_size, hidden_dim)
        shape, initializer = (vocabulary_size, hidden_dim), truncated_normal(self.config.initializer_range)
        # Rows are selected before the cast; autocast would cast the whole table at every call.
        self.token_embedding = self.add_weight(shape, initializer, name="token_embedding", autocast=False)

    def call(self, token_ids: Tensor, padding_mask: Tensor) -> Any:
        """Looks the tokens up; on TensorFlow by one operation, which keeps no vector of a single token."""
        if keras.backend.backend() == "tensorflow" and self.padding_free:
            real = tf.where(ops.cast(padding_mask, "bool"))  # [T, 2]
            ids, rows, num_rows = tf.gather_nd(token_ids, real), real[:, 0], tf.shape(token_ids)[0]
            mean = tf.sparse.segment_mean(tf.convert_to_tensor(self.token_embedding), ids, rows, num_segments=num_rows)
        else:
            mask = ops.cast(padding_mask, "float32")[..., None]  # [B, S, 1]
            vectors = ops.take(with_summed_gradient(self.token_embedding), token_ids, axis=0)  # [B, S, H]
            mean = ops.sum(vectors * mask, axis=1) / ops.maximum(ops.sum(mask, axis=1), 1)
        return ops.cast(mean, self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), **self.config.to_dict()}
