"""`BertBackbone`: the encoder as a functional Keras model."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.config import BertConfig
from keras_bert_layers.layers import BertEmbedding, Pooler, TransformerEncoderBlock


@register
class BertBackbone(keras.Model):
    """The BERT encoder: ids in, hidden states out.

    A functional model of the layers `embedding`, `encoder_block_0`, `encoder_block_1`, ... and `pooler`. Fresh weights
    are random (`keras.utils.set_random_seed` makes them the same again); checkpoints are read by `load_backbone`.

    Args:
        config: sizes and rates.
        return_hidden_states: whether the outputs hold `"hidden_states"`.
        return_attention_scores: whether the outputs hold `"attention_scores"`.
        dtype: dtype policy of all layers, e.g. "mixed_bfloat16"; None for Keras's global one.
        name: name of the model.
        trainable: whether training changes the weights.

    Call arguments:
        inputs: a dictionary of three int32 tensors `(batch, sequence)`: `"token_ids"`, `"segment_ids"` and
            `"padding_mask"`, 1 = real token. The sequence is at most `config.max_sequence_length` long; a longer one
            raises (see `layers.BertEmbedding`, also for ids out of range).

    Returns:
        A dictionary:

        - `"sequence_output"`: float `(batch, sequence, hidden_dim)`, the last hidden states;
        - `"pooled_output"`: float `(batch, hidden_dim)`;
        - `"hidden_states"`, if asked: a list of `num_layers + 1` of `(batch, sequence, hidden_dim)`, the output of the
          embedding first, the last hidden states last;
        - `"attention_scores"`, if asked: a list of `num_layers` of `(batch, num_heads, sequence, sequence)`.

        What stands at padding positions is finite and has no meaning. In TensorFlow's graphs dense layers work on real
        tokens only (see `padding_free`), and the last block on first tokens only where nothing but `"pooled_output"` is
        read.

    Raises:
        TypeError: if `config` is not a `BertConfig`.

    Examples:
        >>> config = BertConfig(vocabulary_size=99, hidden_dim=8, num_layers=2, num_heads=2, intermediate_dim=12)
        >>> backbone = BertBackbone(config)
        >>> ids = keras.ops.ones((1, 5), dtype="int32")
        >>> outputs = backbone({"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids})
        >>> tuple(outputs["sequence_output"].shape), tuple(outputs["pooled_output"].shape)
        ((1, 5, 8), (1, 8))

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805; `BertModel` in google-research/bert, modeling.py.
    """

    def __init__(
        self,
        config: BertConfig,
        *,
        return_hidden_states: bool = False,
        return_attention_scores: bool = False,
        dtype: Any = None,
        name: str | None = None,
        trainable: bool = True,
    ):
        owner = type(self).__name__
        if not isinstance(config, BertConfig):
            cure = "Use BertConfig.from_dict, BertConfig.from_huggingface or BertConfig.from_google on a dictionary."
            raise TypeError(checks.message(owner, "config", "be a BertConfig", config, cure))
        checks.boolean(owner, "return_hidden_states", return_hidden_states)
        checks.boolean(owner, "return_attention_scores", return_attention_scores)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        names = ("token_ids", "segment_ids", "padding_mask")
        inputs = {key: keras.Input(shape=(None,), dtype="int32", name=key) for key in names}
        hidden_states, attention_scores, first = _encode(config, policy, inputs, return_attention_scores)
        pooler = Pooler(initializer_range=config.initializer_range, dtype=policy, name="pooler")
        outputs: dict[str, Any] = {"sequence_output": hidden_states[-1], "pooled_output": pooler(first)}
        if return_hidden_states:
            outputs["hidden_states"] = hidden_states
        if return_attention_scores:
            outputs["attention_scores"] = attention_scores

        super().__init__(inputs=inputs, outputs=outputs, name=name)
        self.config = config
        self.return_hidden_states = return_hidden_states
        self.return_attention_scores = return_attention_scores
        self.dtype_policy = policy
        self.trainable = trainable  # only now are there layers to pass it on to

    @property
    def padding_free(self) -> bool:
        """Whether the embedding and the blocks leave padding out, in TensorFlow's graphs.

        True at first; `compile` of a task sets it too, to False for `jit_compile=True`.
        """
        return self.get_layer("embedding").padding_free

    @padding_free.setter
    def padding_free(self, value: bool) -> None:
        for layer in self.layers:
            if isinstance(layer, BertEmbedding | TransformerEncoderBlock):
                layer.padding_free = value

    @property
    def rematerialize(self) -> bool:
        """Whether training computes each block again for its gradients, and keeps less in memory; False at first.

        Set it before `fit`, or compile anew. Also called gradient checkpointing.
        """
        return self.get_layer("encoder_block_0").rematerialize

    @rematerialize.setter
    def rematerialize(self, value: bool) -> None:
        checks.boolean(type(self).__name__, "rematerialize", value)
        for layer in self.layers:
            if isinstance(layer, TransformerEncoderBlock):
                layer.rematerialize = value

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, the config as a dictionary."""
        return {
            "config": self.config.to_dict(),
            "return_hidden_states": self.return_hidden_states,
            "return_attention_scores": self.return_attention_scores,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            "name": self.name,
            "trainable": self.trainable,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> BertBackbone:
        """The backbone that `get_config` describes, with fresh weights."""
        return cls(**{**config, "config": BertConfig.from_dict(config["config"])})


def _encode(
    config: BertConfig, policy: Any, inputs: dict[str, Any], with_scores: bool
) -> tuple[list[Any], list[Any], Any]:
    """All hidden states, the embedding first; the attention scores of all blocks where asked for; the first tokens.

    The last block computes the first tokens apart from the rest: of the two, a graph runs what its outputs need.
    """
    hidden_states = [
        _embedding(config, policy)(inputs["token_ids"], inputs["segment_ids"], padding_mask=inputs["padding_mask"])
    ]
    attention_scores = []
    for index in range(config.num_layers):
        block = _encoder_block(config, policy, index)
        hidden = block(hidden_states[-1], inputs["padding_mask"], return_attention_scores=with_scores)
        if with_scores:
            hidden, scores = hidden
            attention_scores.append(scores)
        hidden_states.append(hidden)
    first = block(hidden_states[-2], inputs["padding_mask"], first_token_only=True)  # [B, H]
    return hidden_states, attention_scores, first


def _embedding(config: BertConfig, policy: Any) -> BertEmbedding:
    return BertEmbedding(
        config.vocabulary_size,
        config.hidden_dim,
        max_sequence_length=config.max_sequence_length,
        num_segments=config.num_segments,
        embedding_dim=config.embedding_dim,
        dropout=config.dropout,
        layer_norm_epsilon=config.layer_norm_epsilon,
        initializer_range=config.initializer_range,
        dtype=policy,
        name="embedding",
    )


def _encoder_block(config: BertConfig, policy: Any, index: int) -> TransformerEncoderBlock:
    return TransformerEncoderBlock(
        config.num_heads,
        config.intermediate_dim,
        activation=config.activation,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        layer_norm_epsilon=config.layer_norm_epsilon,
        initializer_range=config.initializer_range,
        dtype=policy,
        name=f"encoder_block_{index}",
    )
