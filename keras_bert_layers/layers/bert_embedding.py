"""`BertEmbedding`: token, segment and position embeddings."""

from typing import Any, Unpack

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import check_in_graph, constructor_arguments
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import LayerOptions, Shape, Tensor
from keras_bert_layers.layers._parts import part_of, serialized
from keras_bert_layers.layers.adapters import AdapterBank, chosen_adapter
from keras_bert_layers.layers.dense import dense
from keras_bert_layers.layers.initializers import truncated_normal
from keras_bert_layers.layers.layer_norm import LayerNorm
from keras_bert_layers.layers.padding_free import PaddingFreeLayer, RealTokens, real_tokens_of, with_padding
from keras_bert_layers.layers.positions import Positions
from keras_bert_layers.layers.summed_gradient import with_summed_gradient


@register
class BertEmbedding(PaddingFreeLayer):
    """The sum of token, segment and position embeddings, with LayerNorm and dropout.

    `dropout(LayerNorm(token[t] + segment[s] + position[p]))`, followed by a projection to `hidden_dim` if
    `embedding_dim` is another width. Without segments (`num_segments=0`, as in DistilBERT), `token[t] + position[p]`.

    Positions are 0, 1, 2, ... With a `position_offset` they are RoBERTa's: the first token has the position
    `position_offset`, and the id before it, `position_offset - 1`, is the padding's, which takes no position.

    With `embedding.packed_rows = True`, a row may hold several texts, and positions start again with each of them.

    The layer takes ids of any rank: `(batch, sequence)` and, with `position_ids`, `(tokens,)` too.

    An id out of range, also a negative one, never selects another row silently: TensorFlow on CPU and torch raise; the
    others (JAX, TensorFlow on GPU or under XLA, which cannot raise) give NaN at that token. A sequence longer than
    `max_sequence_length` raises everywhere: immediately if the length is known, else (in a TensorFlow graph) when the
    graph runs.

    Args:
        vocabulary_size: rows of the token embedding matrix.
        hidden_dim: width of the output.
        max_sequence_length: length of the longest sequence, in tokens. The position embedding matrix has
            `position_offset` more rows.
        num_segments: rows of the segment embedding matrix; 0 for none, and then segment ids are ignored.
        embedding_dim: width of the three matrices; None for `hidden_dim`, without a projection.
        dropout: dropout rate after LayerNorm, in [0, 1).
        layer_norm_epsilon: added to the variance in LayerNorm.
        initializer_range: standard deviation of the initial weights.
        position_offset: position of the first token; 2 in RoBERTa.
        use_bias: whether LayerNorm and the projection have a bias.
        positions: a `Positions` whose table, or nothing, is added in place of a trained position embedding; None for a
            trained one.
        projects_first: whether the projection comes before LayerNorm, without a bias, as in DeBERTa.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        token_ids: int `(..., sequence)`.
        segment_ids: int, of the shape of `token_ids`; None for segment 0 everywhere.
        position_ids: int, of the shape of `token_ids` or one that broadcasts to it; None for positions
            counted along the last axis.
        padding_mask: int or bool `(batch, sequence)`, 1 = real token. With a mask, and without `position_ids`, padding
            is not embedded in TensorFlow's graphs; the output there has no meaning. With `packed_rows`, int: the number
            of the text that a token belongs to, 1, 2, 3, ... along the row; 0 = padding.

    Returns:
        Hidden states, float `(..., sequence, hidden_dim)`.

    Raises:
        ValueError: if an argument is out of range, or the sequence is longer than `max_sequence_length`; if
            `padding_mask` numbers several texts without `packed_rows`, in TensorFlow's eager calls.

    Examples:
        >>> embedding = BertEmbedding(30522, 8, max_sequence_length=16)
        >>> tuple(embedding(keras.ops.convert_to_tensor([[101, 7592, 102]])).shape)
        (1, 3, 8)
        >>> tuple(embedding.token_embedding.shape)
        (30522, 8)

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 3 and figure 2. The factorised embedding: Lan et
        al. 2019, https://arxiv.org/abs/1909.11942, section 3.1. Positions from 2: `make_positions` in
        facebookresearch/fairseq, utils.py.
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        *,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        embedding_dim: int | None = None,
        dropout: float = 0.1,
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        position_offset: int = 0,
        use_bias: bool = True,
        positions: Positions | None = None,
        projects_first: bool = False,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(**kwargs)
        owner = type(self).__name__
        self.vocabulary_size = checks.positive_integer(owner, "vocabulary_size", vocabulary_size)
        self.hidden_dim = checks.positive_integer(owner, "hidden_dim", hidden_dim)
        self.max_sequence_length = checks.positive_integer(owner, "max_sequence_length", max_sequence_length)
        self.num_segments = checks.whole_number(owner, "num_segments", num_segments)
        self.embedding_dim = checks.optional(checks.positive_integer, owner, "embedding_dim", embedding_dim)
        self.dropout = checks.fraction(owner, "dropout", dropout)
        self.layer_norm_epsilon = checks.positive_number(owner, "layer_norm_epsilon", layer_norm_epsilon)
        self.initializer_range = checks.positive_number(owner, "initializer_range", initializer_range)
        self.position_offset = checks.whole_number(owner, "position_offset", position_offset)
        self.positions = part_of(owner, "positions", positions, Positions)
        self.use_bias = checks.boolean(owner, "use_bias", use_bias)
        self.projects_first = checks.boolean(owner, "projects_first", projects_first)
        policy = self.dtype_policy
        self.layer_norm = LayerNorm(epsilon=self.layer_norm_epsilon, center=use_bias, dtype=policy, name="layer_norm")
        self.dropout_layer = keras.layers.Dropout(self.dropout, dtype=policy, name="dropout")
        #: The adapters beside the token and the segment embedding; see `layers.adapters`.
        self.banks: dict[str, AdapterBank] = {}
        self.projection = None
        if embedding_dim is not None and embedding_dim != self.hidden_dim:
            options = {"use_bias": use_bias and not projects_first, "dtype": policy, "name": "projection"}
            self.projection = dense(self.hidden_dim, self.initializer_range, **options)

    def build(self, input_shape: Shape) -> None:
        """Creates the matrices, and the weights of LayerNorm and the projection."""
        width = self.embedding_dim or self.hidden_dim
        self.token_embedding = self._add_matrix("token_embedding", self.vocabulary_size, width)
        self.segment_embedding: Any = None
        if self.num_segments:
            self.segment_embedding = self._add_matrix("segment_embedding", self.num_segments, width)
        num_positions = self.position_offset + self.max_sequence_length
        self.position_embedding: Any
        if self.positions is None or self.positions.keeps_position_embedding:
            self.position_embedding = self._add_matrix("position_embedding", num_positions, width)
        else:
            self.position_embedding = self.positions.embedding_table(num_positions, width)
        self.layer_norm.build((None, None, self.hidden_dim if self.projects_first else width))
        if self.projection is not None:
            self.projection.build((None, None, width))

    def _add_matrix(self, name: str, rows: int, width: int) -> Any:
        return self.add_weight(
            name=name,
            shape=(rows, width),
            initializer=truncated_normal(self.initializer_range),
            # Rows are selected before the cast; autocast would cast the whole matrix at every call.
            autocast=False,
        )

    def call(
        self, token_ids: Tensor, segment_ids: Any = None, position_ids: Any = None, padding_mask: Any = None
    ) -> Any:
        """Embeds ids; see the class."""
        segment_ids = self._of_one_segment(segment_ids)
        texts = padding_mask if self.packed_rows else None
        if texts is None:
            self._check_one_text(padding_mask)
        real = real_tokens_of(padding_mask) if position_ids is None and self._skips_padding(padding_mask) else None
        positions = self._positions(token_ids, position_ids, texts, real)
        if real is None:
            return self._finished(self._sum(token_ids, segment_ids, positions))  # [..., S, H]
        segment_ids = None if segment_ids is None else real.select(segment_ids)
        return with_padding(real, self._finished(self._sum(real.select(token_ids), segment_ids, positions)))

    def _positions(self, token_ids: Tensor, position_ids: Tensor, texts: Any, real: RealTokens | None) -> Any:
        """The position embeddings to add, `[S, E]` or `[..., S, E]`, of real tokens `[T, E]`; None for nothing."""
        if self.position_embedding is None:
            self._check_length(token_ids.shape)
            return None
        if position_ids is None and not self.position_offset and texts is None:
            first = self._first_positions(token_ids)  # [S, E]
            return first if real is None else real.at_positions(first)
        ids = self.counted_positions(token_ids, texts) if position_ids is None else position_ids
        return _rows(self.position_embedding, ids if real is None else real.select(ids))

    def _sum(self, token_ids: Any, segment_ids: Any, positions: Tensor) -> Any:
        embedded = _rows(self.token_embedding, token_ids)  # [..., E]
        if self.segment_embedding is not None:
            embedded += self.segment_embedding[0] if segment_ids is None else _rows(self.segment_embedding, segment_ids)
        for name, bank in self.banks.items() if chosen_adapter() else ():
            ids = token_ids if name == "token_embedding" else segment_ids
            first, second = bank.pair
            embedded += ops.matmul(_rows(first, ops.zeros_like(token_ids) if ids is None else ids), second)
        return embedded if positions is None else embedded + positions

    def _of_one_segment(self, segment_ids: Tensor) -> Any:
        """Refuses, on TensorFlow, other segments where there is only one: TensorFlow's own error names no cause."""
        if self.num_segments != 1 or segment_ids is None or keras.backend.backend() != "tensorflow":
            return segment_ids
        rule = "`BertEmbedding`: `segment_ids` must be 0, as the encoder has one segment (`type_vocab_size` 1)."
        cure = "Received: others, as of the second text of a pair. Give single texts, or ids with segment_ids of zeros."
        return check_in_graph(segment_ids, ops.all(ops.equal(segment_ids, 0)), [f"{rule} {cure}"])

    def _check_one_text(self, padding_mask: Tensor) -> None:
        """Refuses packed rows, in TensorFlow's eager calls, where it costs no operation in a graph."""
        if keras.backend.backend() != "tensorflow" or not hasattr(padding_mask, "numpy"):
            return
        largest = int(padding_mask.numpy().max(initial=0))
        if largest > 1:
            cure = "For rows of several texts, set `packed_rows = True`, which the backbone has too."
            raise ValueError(checks.message(type(self).__name__, "padding_mask", "be 0 or 1", largest, cure))

    def _finished(self, embedded: Tensor) -> Any:
        before, after = (self.projection, None) if self.projects_first else (None, self.projection)
        hidden = self.dropout_layer(self.layer_norm(embedded if before is None else before(embedded)))
        return hidden if after is None else after(hidden)

    def _first_positions(self, token_ids: Tensor) -> Any:
        self._check_length(token_ids.shape)
        length = ops.shape(token_ids)[-1]
        matrix = ops.convert_to_tensor(self.position_embedding)
        # If a dynamic length is too long, `matrix[:length]` would return fewer rows; this raises.
        return ops.slice(matrix, (0, 0), (length, matrix.shape[1]))  # [S, E]

    def counted_positions(self, token_ids: Tensor, texts: Any) -> Any:
        """The position ids `[..., S]`, from the start of each text if there are numbers of `texts`.

        RoBERTa's are `position_offset`, ... without the padding, which has the id before.
        """
        self._check_length(token_ids.shape)
        counted = ops.arange(self.position_offset, self.position_offset + self.max_sequence_length, dtype="int32")
        counted = ops.slice(counted, (0,), (ops.shape(token_ids)[-1],))  # [S]; raises as above
        starts = None if texts is None else _starts(ops.cast(texts, "int32"))  # [B, S]
        if starts is not None:
            counted = counted - starts
        if not self.position_offset:
            return counted
        is_padding = token_ids == self.position_offset - 1
        num_skipped = ops.cumsum(ops.cast(is_padding, "int32"), axis=-1)
        if starts is not None:
            before = num_skipped - ops.cast(is_padding, "int32")
            num_skipped = num_skipped - ops.take_along_axis(before, starts, axis=-1)
        return ops.where(is_padding, self.position_offset - 1, counted - num_skipped)

    def _check_length(self, shape: Shape) -> None:
        if isinstance(shape[-1], int) and shape[-1] > self.max_sequence_length:
            rule = f"have at most `max_sequence_length` ({self.max_sequence_length}) tokens per row"
            cure = "Truncate the texts, or split them into windows."
            raise ValueError(checks.message(type(self).__name__, "token_ids.shape", rule, tuple(shape), cure))

    def compute_output_spec(
        self,
        token_ids: Tensor,
        segment_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        padding_mask: Tensor | None = None,
    ) -> Any:
        """Shape and dtype of the hidden states."""
        # Keras would call the layer, on JAX and torch with invented lengths, for which there may be too few positions.
        if position_ids is None:
            self._check_length(token_ids.shape)
        return keras.KerasTensor((*token_ids.shape, self.hidden_dim), dtype=self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        config = {**super().get_config(), **constructor_arguments(BertEmbedding, self)}
        return {**config, "positions": serialized(self.positions)}


def _starts(texts: Any) -> Any:
    """The index of the first token of each token's text, int `[B, S]`; that of text 1 is 0, as in a row of one text."""
    is_same = ops.equal(texts[:, :, None], texts[:, None, :])  # [B, S, S]
    return ops.where(texts > 1, ops.cast(ops.argmax(ops.cast(is_same, "int32"), axis=-1), "int32"), 0)


def _rows(matrix: Tensor, ids: Any) -> Any:
    count = matrix.shape[0]
    # Keras counts negative ids from the end; here they are out of range too.
    ids = ops.where(ids < 0, count, ids)
    # After `[..., None]` TensorFlow no longer knows the number of ids.
    rows = ops.take(with_summed_gradient(matrix), ids, axis=0)
    return ops.where(ops.expand_dims(ids >= count, -1), float("nan"), rows)
