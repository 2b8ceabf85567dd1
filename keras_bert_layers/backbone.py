"""`BertBackbone`: the BERT encoder as a functional Keras model."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import keras

from keras_bert_layers._internal import checks, keras_models
from keras_bert_layers._internal.checks import constructor_arguments
from keras_bert_layers._internal.files import atomic_save
from keras_bert_layers._internal.hints import unavailable
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Ids
from keras_bert_layers.config import IDS, BertConfig
from keras_bert_layers.layers.adapters import add_banks, refuse_adapters, using_adapter
from keras_bert_layers.layers.attention_kernels import LONG_ROW
from keras_bert_layers.layers.bert_embedding import BertEmbedding
from keras_bert_layers.layers.encoder_parts import EncoderParts, new_layer
from keras_bert_layers.layers.layer_norm import FinalLayerNorm
from keras_bert_layers.layers.lora import enable_lora, is_lora
from keras_bert_layers.layers.pooler import HeadTransform, Pooler
from keras_bert_layers.layers.positions import Positions
from keras_bert_layers.layers.sequence_pooling import SequencePooling
from keras_bert_layers.layers.transformer_encoder_block import TransformerEncoderBlock


@register
class BertBackbone(keras.Model):
    """The BERT encoder: ids in, hidden states out.

    A functional model of the layers `embedding`, `encoder_block_0`, `encoder_block_1`, ... and `pooler`. With a shared
    block, as in ALBERT, `encoder_block_0` is the only one, called `config.num_layers` times. The initial weights are
    random (and repeatable with `keras.utils.set_random_seed`); `load_backbone` reads checkpoints.

    Args:
        config: sizes and rates.
        return_hidden_states: whether the outputs include `"hidden_states"`.
        return_attention_scores: whether the outputs include `"attention_scores"`.
        dtype: dtype policy of all layers, such as "mixed_bfloat16"; None for Keras's global policy.
        name: name of the model.
        trainable: whether training changes the weights.
        parts: the parts that are not BERT's, such as other positions; None for BERT's own. Only a `.keras` file stores
            them; checkpoints of other programs have no place for them.
        lora_rank: the rank of LoRA, as after `enable_lora`; None for no LoRA.
        lora_alpha: as in `enable_lora`.
        lora_blocks: as in `enable_lora`.

    Call arguments:
        inputs: a dictionary of three int32 tensors `(batch, sequence)`: `"token_ids"`, `"segment_ids"` and
            `"padding_mask"`, 1 = real token (for rows of several texts, see `packed_rows`). The sequence is at most
            `config.max_sequence_length` long; a longer one raises (see `layers.BertEmbedding`, also for ids out of
            range).
        adapter: the name of one of `adapters`; None for the weights alone.

    Returns:
        A dictionary:

        - `"sequence_output"`: float `(batch, sequence, hidden_dim)`, the last hidden states;
        - `"pooled_output"`: float `(batch, hidden_dim)`;
        - `"hidden_states"`, optional: a list of `num_layers + 1` tensors `(batch, sequence, hidden_dim)`, from the
          output of the embedding to the last hidden states;
        - `"attention_scores"`, optional: a list of `num_layers` tensors `(batch, num_heads, sequence, sequence)`.

        The values at padding are finite and have no meaning. In TensorFlow's graphs, dense layers work on real tokens
        only (see `padding_free`), and the last block works on first tokens only if just `"pooled_output"` is used.

    Raises:
        TypeError: if `config` is not a `BertConfig`, or `parts` are not `EncoderParts`.

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
        dtype: str | keras.DTypePolicy | None = None,
        name: str | None = None,
        trainable: bool = True,
        parts: EncoderParts | None = None,
        lora_rank: int | None = None,
        lora_alpha: float | None = None,
        lora_blocks: int | None = None,
    ):
        owner = type(self).__name__
        cure = "Make one with `BertConfig.from_dict`, or `checkpoints.config_from_huggingface` and its like."
        checks.instance(owner, "config", config, BertConfig, cure)
        checks.boolean(owner, "return_hidden_states", return_hidden_states)
        checks.boolean(owner, "return_attention_scores", return_attention_scores)
        parts = checks.instance(owner, "parts", EncoderParts() if parts is None else parts, EncoderParts)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        inputs = {key: keras.Input(shape=(None,), dtype="int32", name=key) for key in IDS}
        hidden_states, attention_scores, first = _encode(config, parts, policy, inputs, return_attention_scores)
        options = {"initializer_range": config.initializer_range, "dtype": policy, "name": "pooler"}
        pooler = head_transform(config, parts, **options) or Pooler(activation=config.pooler_activation, **options)
        outputs: dict[str, Any] = {"sequence_output": hidden_states[-1], "pooled_output": pooler(first)}
        if return_hidden_states:
            outputs["hidden_states"] = hidden_states
        if return_attention_scores:
            outputs["attention_scores"] = attention_scores

        super().__init__(inputs=inputs, outputs=outputs, name=name)
        self.config = config
        self.parts = parts
        self.hidden_states = tuple(hidden_states)  # the `output` of a shared block is that of its first call
        self.return_hidden_states = return_hidden_states
        self.return_attention_scores = return_attention_scores
        self.dtype_policy = policy
        self.trainable = trainable  # after the layers exist, to which Keras passes it on
        self.lora_rank: int | None = None
        self.lora_alpha: float | None = None
        self.lora_blocks: int | None = None
        if lora_rank is not None:
            self.enable_lora(lora_rank, lora_alpha, lora_blocks)

    from_preset, from_pretrained = unavailable("Use `keras_bert_layers.load_backbone(source)`.")
    (save_pretrained,) = unavailable("Use `checkpoints.save_huggingface(backbone, directory)`.", 1)

    def call(
        self, inputs: Ids, training: bool | None = None, mask: Any = None, adapter: str | None = None, **kwargs: Any
    ) -> Any:
        """The outputs for a batch of ids; see the class."""
        checks.one_of(type(self).__name__, "adapter", adapter, [None, *self.adapters])
        with using_adapter(adapter):
            return super().call(inputs, training=training, mask=mask, **kwargs)

    def compute_output_spec(self, inputs: Ids, *_: Any, adapter: str | None = None, **__: Any) -> Any:
        """Shapes and dtypes of the outputs."""
        checks.one_of(type(self).__name__, "adapter", adapter, [None, *self.adapters])
        return super().compute_output_spec(inputs)

    def _run_through_graph(self, inputs: Any, **functions: Any) -> Any:
        return keras_models.run_through_graph(self, inputs, **functions)

    def save(
        self, filepath: str | PathLike[str], overwrite: bool = True, zipped: bool | None = None, **kwargs: Any
    ) -> None:
        """Writes a `.keras` file, as `keras.Model.save`; a file there is replaced when the new one is complete."""
        atomic_save.save(self, filepath, overwrite, zipped, **kwargs)

    def save_weights(
        self, filepath: str | PathLike[str], overwrite: bool = True, max_shard_size: float | None = None
    ) -> None:
        """Writes the weights, as `keras.Model.save_weights`; a file there is replaced when the new one is complete."""
        atomic_save.save_weights(self, filepath, overwrite, max_shard_size)

    @property
    def blocks(self) -> list[TransformerEncoderBlock]:
        """The block of each layer, from the first on: `config.num_layers` blocks, or one so many times."""
        names = self.parts.block_names(self.config.num_layers)
        return [self.get_layer(name) for name in names]

    def check_blocks(self, owner: str, argument: str, count: int | None, cure: str = "") -> None:
        """ValueError for some of the blocks, but not all, of an encoder whose blocks are one."""
        if self.parts.shares_block and count not in (None, 0, self.config.num_layers):
            rule = f"be 0 or all {self.config.num_layers} layers, as one block is shared by all"
            raise ValueError(checks.message(owner, argument, rule, count, cure))

    def enable_lora(self, rank: int, lora_alpha: float | None = None, lora_blocks: int | None = None) -> None:
        """Enables LoRA: trains two small matrices beside each large one, instead of the large ones.

        In every block the dense layers of attention (`query_key_value`, `output_projection`) and of the feed-forward
        network (`intermediate`, `output_projection`) add `alpha / rank * x A B` to their outputs. All other weights of
        the backbone are frozen; a task trains its head too. Outputs change only by training, as B starts with zeros.
        Files, exports and `clone_model` include LoRA, and `save_peft` writes it alone. A task that is made already gets
        a new optimizer state the next time that it trains or is saved.

        Args:
            rank: the width between A and B, such as 8.
            lora_alpha: scales what is added; `rank` if None.
            lora_blocks: how many of the last blocks get matrices; None for all. The lower ones are only frozen, so that
                `CombinedTasks` can share them between tasks.

        Raises:
            ValueError: LoRA is enabled already; more blocks than there are; some of the layers of a shared block.

        Examples:
            >>> config = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
            >>> backbone = BertBackbone(config)
            >>> backbone.enable_lora(2)
            >>> len(backbone.trainable_weights)
            8

        References:
            Hu et al. 2021, https://arxiv.org/abs/2106.09685, section 4.1.
        """
        owner = type(self).__name__
        refuse_adapters(owner, self)
        checks.positive_integer(owner, "rank", rank)
        checks.optional(checks.positive_number, owner, "lora_alpha", lora_alpha)
        if self.lora_rank is not None:
            cure = "Make the backbone again, or load it, for another rank."
            raise ValueError(checks.message(owner, "rank", "be given once", rank, cure))
        num_layers = self.config.num_layers
        checks.one_of(owner, "lora_blocks", lora_blocks, [None, *range(1, num_layers + 1)])
        self.check_blocks(owner, "lora_blocks", lora_blocks)
        for block in dict.fromkeys(self.blocks[-(lora_blocks or num_layers) :]):
            enable_lora(block, rank, lora_alpha)
        for weight in self.weights:
            weight.trainable = is_lora(weight)
        self.lora_rank, self.lora_alpha, self.lora_blocks = rank, lora_alpha, lora_blocks

    def add_adapters(self, ranks: Mapping[str, int]) -> None:
        """Adds adapters: matrices of low rank beside the weights, of which a call chooses those of one by its name.

        Every dense layer adds `x A B` to its output, and the embedding of tokens and of segments the same to its rows.
        The matrices begin as zeros, and are never trained; `load_task` reads those of Jina embeddings v3. Files and
        SavedModels include them. LoRA, quantization, ONNX files, other layouts and recipes that change layers or
        vocabularies refuse them: these want one adapter, merged into the weights, as `load_backbone(adapter=...)` does.

        Args:
            ranks: the rank of each adapter by its name; empty for no change.

        Raises:
            ValueError: there are adapters already; a rank is not positive.

        Examples:
            >>> config = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
            >>> backbone = BertBackbone(config)
            >>> backbone.add_adapters({"query": 2, "passage": 4})
            >>> outputs = backbone(backbone.input, adapter="query")
        """
        refuse_adapters(type(self).__name__, self)
        for rank in ranks.values():
            checks.positive_integer(type(self).__name__, "ranks", rank)
        if ranks:
            add_banks(self, ranks)

    @property
    def adapters(self) -> dict[str, int]:
        """The rank of each adapter by its name; empty without any."""
        banks = self.get_layer("embedding").banks
        return dict(banks["token_embedding"].ranks) if banks else {}

    @property
    def padding_free(self) -> bool:
        """Whether the embedding and the blocks skip padding in TensorFlow's graphs.

        True by default; `compile` of a task sets it too, to False for `jit_compile=True`.
        """
        return self.get_layer("embedding").padding_free

    @padding_free.setter
    def padding_free(self, value: bool) -> None:
        self._set_on_layers("padding_free", value)

    @property
    def rematerialize(self) -> bool:
        """Gradient checkpointing: whether training computes each block again for its gradients, to save memory.

        False by default. Set it before `fit`, or compile again.
        """
        return self.get_layer("encoder_block_0").rematerialize

    @rematerialize.setter
    def rematerialize(self, value: bool) -> None:
        checks.boolean(type(self).__name__, "rematerialize", value)
        self._set_on_layers("rematerialize", value)

    @property
    def packed_rows(self) -> bool:
        """Whether a row of ids may hold several texts, without padding between them.

        False by default, and not saved: the weights are those of an ordinary backbone. With True,
        `"padding_mask"` is the number of the text that each token belongs to, 1, 2, 3, ... along the row, and 0 for
        padding. Tokens attend to their own text only, and positions start again with each text, so that every token has
        the output that it has in a row of its own. `"pooled_output"` is that of the row's first text. With a mask of 0
        and 1 nothing changes.

        Without it, a mask of larger numbers would be read as one text; TensorFlow's eager calls refuse it. A change
        drops the functions that the backbone and its tasks were compiled to; compile other models of it again.
        """
        return self.get_layer("embedding").packed_rows

    @packed_rows.setter
    def packed_rows(self, value: bool) -> None:
        checks.boolean(type(self).__name__, "packed_rows", value)
        if value == self.packed_rows:
            return
        self._set_on_layers("packed_rows", value)
        self.train_function = self.test_function = self.predict_function = None

    def _set_on_layers(self, name: str, value: bool) -> None:
        """Sets a property of the embedding and the blocks, wherever a layer has it."""
        for layer in self.layers:
            if hasattr(layer, name):
                setattr(layer, name, value)

    def quantize(self, mode: str | None = None, config: Any = None, **options: Any) -> None:
        """Quantizes the dense layers, as `keras.Model.quantize`.

        Args:
            mode: "int8", "int4" or "float8"; that of `config` if None.
            config: Keras's quantization config.
            **options: further arguments of `keras.Model.quantize`.

        Raises:
            ValueError: another mode.
        """
        keras_models.quantize(self, mode, config, **options)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, the config as a dictionary; and the quantized layers, after `quantize`."""
        dtype = keras.dtype_policies.serialize(self.dtype_policy)
        config = {**constructor_arguments(BertBackbone, self), "config": self.config.to_dict(), "dtype": dtype}
        if self.adapters:
            config["adapters"] = self.adapters
        config["parts"] = None if self.parts.are_of_bert else keras.saving.serialize_keras_object(self.parts)
        return keras_models.with_quantized_layers(self, config)

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None) -> BertBackbone:
        """A new backbone from a `get_config` dictionary, with initial weights."""
        arguments = keras_models.constructor_config(config)
        adapters = arguments.pop("adapters", {})
        if arguments.get("parts") is not None:
            arguments["parts"] = keras.saving.deserialize_keras_object(arguments["parts"])
        backbone = cls(**{**arguments, "config": BertConfig.from_dict(config["config"])})
        backbone.add_adapters(adapters)
        return keras_models.made_quantized(backbone, config)


def head_transform(config: BertConfig, parts: EncoderParts, **options: Any) -> HeadTransform | None:
    """The new layer before the last one of a head, of an encoder with `normalizes_heads`; None for others."""
    if not parts.normalizes_heads:
        return None
    activation, epsilon = config.pooler_activation, config.layer_norm_epsilon
    return HeadTransform(activation=activation, layer_norm_epsilon=epsilon, use_bias=parts.use_bias, **options)


def _encode(
    config: BertConfig, parts: EncoderParts, policy: str | keras.DTypePolicy, inputs: dict[str, Any], with_scores: bool
) -> tuple[list[Any], list[Any], Any]:
    """Makes the embedding and the blocks, and calls them on symbolic inputs.

    The last block is called twice, once for the first tokens only. A graph runs the call that its outputs need.

    Returns:
        The hidden states, from the output of the embedding to that of the last block; the attention scores of each
        block, if asked for; and the last hidden state of the first tokens, `[B, H]`.
    """
    positions, local_positions = _new_positions(config, parts, policy)
    embedding = BertEmbedding(
        config.vocabulary_size,
        config.hidden_dim,
        max_sequence_length=config.max_sequence_length,
        num_segments=config.num_segments,
        embedding_dim=config.embedding_dim,
        position_offset=config.position_offset,
        use_bias=parts.use_bias,
        positions=positions,
        projects_first=parts.projects_first,
        dtype=policy,
        name="embedding",
        **_shared(config),
    )
    hidden_states = [embedding(inputs["token_ids"], inputs["segment_ids"], padding_mask=inputs["padding_mask"])]
    attention_scores = []
    for index in range(config.num_layers):
        is_local = parts.local_attention is not None and parts.local_attention.is_local(index)
        if index == 0 or not parts.shares_block:
            block = _new_block(config, parts, policy, index, local_positions if is_local else positions)
        hidden = block(hidden_states[-1], inputs["padding_mask"], return_attention_scores=with_scores)
        block.attention.reads_long_rows = config.max_sequence_length > LONG_ROW  # other attentions may ignore it
        if with_scores:
            hidden, scores = hidden
            attention_scores.append(scores)
        hidden_states.append(hidden)
    first = block(hidden_states[-2], inputs["padding_mask"], first_token_only=True)  # [B, H]
    if parts.normalize_first:
        options = {"epsilon": config.layer_norm_epsilon, "center": parts.use_bias, "dtype": policy}
        norm = FinalLayerNorm(name="final_layer_norm", **options)
        hidden_states[-1], first = norm(hidden_states[-1]), norm(first)
    if parts.pooling == "mean":
        pool = SequencePooling("mean", dtype=policy, name="pooling")
        first = pool(hidden_states[-1], padding_mask=inputs["padding_mask"])
    return hidden_states, attention_scores, first


def _shared(config: BertConfig) -> dict[str, Any]:
    """The arguments that the embedding and the blocks share."""
    return {name: getattr(config, name) for name in ("dropout", "layer_norm_epsilon", "initializer_range")}


def _new_positions(config: BertConfig, parts: EncoderParts, policy: str | keras.DTypePolicy) -> tuple[Any, Any]:
    """The positions of an encoder, built, or None; and those of its local blocks, which may be the same."""
    local = parts.local_attention
    patterns = {"positions": parts.positions, "local_positions": None if local is None else local.positions}
    heads = (None, config.num_heads, None, config.hidden_dim // config.num_heads)
    made = {}
    for name, pattern in patterns.items():
        made[name] = new_layer(pattern, name=name, dtype=policy, max_sequence_length=config.max_sequence_length)
        if pattern is not None:
            made[name].build(heads)
    return made["positions"], made["local_positions"] or made["positions"]


def _new_block(
    config: BertConfig, parts: EncoderParts, policy: str | keras.DTypePolicy, index: int, positions: Positions | None
) -> TransformerEncoderBlock:
    """The block of this index, with these positions in its attention."""
    local = parts.local_attention
    window = local.window if local is not None and local.is_local(index) else None
    options: dict[str, Any] = {"positions": positions, "causal": parts.causal, "window": window}
    if parts.attention is None:
        options["attention_dropout"] = config.attention_dropout
    else:
        given = {name: value for name, value in options.items() if value}
        options = {"attention": new_layer(parts.attention, name="attention", dtype=policy, **given)}
    return TransformerEncoderBlock(
        config.num_heads,
        config.intermediate_dim,
        feed_forward=new_layer(parts.feed_forward, name="feed_forward", dtype=policy),
        convolution=new_layer(None if index else parts.convolution, name="convolution", dtype=policy),
        activation=config.activation,
        normalize_first=parts.normalize_first,
        normalizes_attention=parts.normalizes_first_attention or index > 0,
        use_bias=parts.use_bias,
        dtype=policy,
        name=f"encoder_block_{index}",
        **_shared(config),
        **options,
    )
