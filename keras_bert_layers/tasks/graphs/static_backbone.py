"""`StaticBackbone`: a table of token vectors in the place of an encoder."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks, keras_models
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers.initializers import truncated_normal
from keras_bert_layers.layers.padding_free import PaddingFreeLayer
from keras_bert_layers.layers.positions import with_summed_gradient
from keras_bert_layers.tasks.inputs.questions import IDS


@dataclasses.dataclass(frozen=True, kw_only=True)
class StaticConfig:
    """The sizes of a `StaticBackbone`.

    Args:
        vocabulary_size: number of token ids, which is the number of rows of the table.
        hidden_dim: width of a vector.
        dropout: dropout rate of a head after the mean, in [0, 1).
        initializer_range: standard deviation of initial weights.

    Raises:
        TypeError, ValueError: an argument of another kind or out of range.
    """

    vocabulary_size: int
    hidden_dim: int
    dropout: float = 0.0
    initializer_range: float = 0.02

    def __post_init__(self) -> None:
        checks.positive_integer("StaticConfig", "vocabulary_size", self.vocabulary_size)
        checks.positive_integer("StaticConfig", "hidden_dim", self.hidden_dim)
        checks.fraction("StaticConfig", "dropout", self.dropout)
        checks.positive_number("StaticConfig", "initializer_range", self.initializer_range)

    @property
    def max_sequence_length(self) -> int:
        """As long as any text: there are no positions."""
        return sys.maxsize

    def to_dict(self) -> dict[str, Any]:
        """Every argument."""
        return dataclasses.asdict(self)


@register
class StaticBackbone(keras.Model):
    """A table of token vectors, with the inputs and outputs of a `BertBackbone`.

    The vector of a token does not depend on the tokens around it. A text is the mean of its tokens' vectors, so a head
    that reads `"pooled_output"` reads that mean: `BertClassifier(encoder.backbone, ...)` makes a classifier of a
    `BertStaticEncoder`, which shares the table.

    Args:
        config: the sizes, a `StaticConfig`.
        dtype: dtype policy of the table; None for Keras's global policy.
        name: name of the model.
        trainable: whether training changes the table.

    Call arguments:
        inputs: as for a `BertBackbone`; `"segment_ids"` are ignored.

    Returns:
        A dictionary: `"sequence_output"`, float `(batch, sequence, hidden_dim)`, the vector of each token; and
        `"pooled_output"`, float `(batch, hidden_dim)`, the mean over the real tokens, special ones included, and zeros
        for a row without any.

    Raises:
        TypeError: `config` is not a `StaticConfig`.

    Examples:
        >>> backbone = StaticBackbone(StaticConfig(vocabulary_size=9, hidden_dim=4))
        >>> ids = keras.ops.ones((2, 5), dtype="int32")
        >>> outputs = backbone({"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids})
        >>> tuple(outputs["sequence_output"].shape), tuple(outputs["pooled_output"].shape)
        ((2, 5, 4), (2, 4))
    """

    def __init__(self, config: StaticConfig, *, dtype: Any = None, name: str | None = None, trainable: bool = True):
        checks.instance("StaticBackbone", "config", config, StaticConfig)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        inputs = {key: keras.Input((None,), dtype="int32", name=key) for key in IDS}
        table = TokenVectors(config, dtype=policy, name="embedding")
        ids, mask = inputs["token_ids"], inputs["padding_mask"]
        super().__init__(inputs, {"sequence_output": table(ids), "pooled_output": table(ids, mask)}, name=name)
        self.config = config
        self.dtype_policy = policy
        self.trainable = trainable

    _run_through_graph = keras_models.run_through_graph

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, the config as a dictionary."""
        dtype = keras.dtype_policies.serialize(self.dtype_policy)
        return {"config": self.config.to_dict(), "dtype": dtype, "name": self.name, "trainable": self.trainable}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> StaticBackbone:
        """A new table from a `get_config` dictionary, with initial weights."""
        return cls(**{**config, "config": StaticConfig(**config["config"])})


class TokenVectors(PaddingFreeLayer):
    """The vectors of tokens, or with a mask their mean over each row.

    Args:
        config: the sizes.
        **kwargs: `name`, `dtype`.
    """

    def __init__(self, config: StaticConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config
        self.token_embedding = self.add_weight(
            name="token_embedding",
            shape=(config.vocabulary_size, config.hidden_dim),
            initializer=truncated_normal(config.initializer_range),
            autocast=False,  # rows are selected before the cast
        )
        self.built = True

    def call(self, token_ids: Any, padding_mask: Any = None) -> Any:
        """`[B, S, H]`, or with a mask `[B, H]`."""
        if padding_mask is not None and keras.backend.backend() == "tensorflow" and self.padding_free:
            real = tf.where(ops.cast(padding_mask, "bool"))  # [T, 2]
            ids, rows = tf.gather_nd(token_ids, real), real[:, 0]
            # One operation, which holds no vector for each token: several times as fast as a mean of rows.
            mean = tf.sparse.segment_mean(self.token_embedding, ids, rows, num_segments=ops.shape(token_ids)[0])
            return ops.cast(mean, self.compute_dtype)
        vectors = ops.cast(ops.take(with_summed_gradient(self.token_embedding), token_ids, axis=0), self.compute_dtype)
        if padding_mask is None:
            return vectors
        real = ops.cast(padding_mask, "float32")[..., None]  # [B, S, 1]
        total = ops.sum(ops.cast(vectors, "float32") * real, axis=1)
        return ops.cast(total / ops.maximum(ops.sum(real, axis=1), 1), self.compute_dtype)

    def compute_output_spec(self, token_ids: Any, padding_mask: Any = None) -> keras.KerasTensor:
        """Shape and dtype of the vectors."""
        shape = token_ids.shape if padding_mask is None else token_ids.shape[:1]
        return keras.KerasTensor((*shape, self.config.hidden_dim), dtype=self.compute_dtype)
