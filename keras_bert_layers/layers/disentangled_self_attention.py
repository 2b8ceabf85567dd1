"""`DisentangledSelfAttention`: DeBERTa's attention, to contents and to relative positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Unpack

from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.keras_models import Untracked
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import LayerOptions, Tensor
from keras_bert_layers.layers._dropout import Dropout
from keras_bert_layers.layers.attention_kernels import InTurns, Kernel
from keras_bert_layers.layers.dense import dense
from keras_bert_layers.layers.relative_vectors import RelativeVectors
from keras_bert_layers.layers.self_attention import SelfAttention


class _Dropouts(Dropout):
    """The dropout of probabilities, whose random state is repeated with that of another layer.

    Args:
        rate: the dropout rate.
        other: the layer, which is called as often.
        **kwargs: `name`, `dtype`, `trainable`.
    """

    def __init__(self, rate: float, other: Dropout, **kwargs: Unpack[LayerOptions]):
        super().__init__(rate, **kwargs)
        self._other = Untracked(other)

    def draw(self, count: int) -> list[Any]:
        """Draws the seeds of the next `count` calls of both."""
        return [super().draw(count), self._other.value.draw(count)]

    @contextmanager
    def replay(self, seeds: Sequence[Any]) -> Iterator[None]:
        """Makes the calls of both inside the context drop values by these seeds."""
        with super().replay(seeds[0]), self._other.value.replay(seeds[1]):
            yield


@register
class DisentangledSelfAttention(SelfAttention):
    """DeBERTa's self-attention: products of contents, and of contents with vectors of their distance.

    The score of query i and key j is `(Q_i K_j + Q_i PK_d + K_j PQ_d) / sqrt(3 D)`, where d is their distance, and PK
    and PQ are projections of the vectors of a `RelativeVectors`. With one of the two last products, the root is that of
    2 D. All else is that of `SelfAttention`.

    The vectors are projected for the distances of a row only. Each product with them is one for all distances of a
    query, `[B, N, Q, S + Q]`, of which each query takes its own. With `attention.reads_long_rows = True`, on TensorFlow
    and outside of training, those of one head of a long row at a time are in memory.

    Args:
        num_heads: number of heads; divides the width of the input.
        content_to_position: whether there is the product of queries with positions.
        position_to_content: whether there is the product of keys with positions.
        shares_projections: whether PK and PQ are those of keys and queries; if not, they have their own.
        vector_dropout: dropout rate of the vectors of distances, in [0, 1).
        **kwargs: `positions`, a `RelativeVectors`, and the other arguments of `SelfAttention`.

    Raises:
        TypeError: other `positions`, when the layer is built.
        ValueError: if an argument is out of range.

    Examples:
        >>> from keras_bert_layers.layers import RelativeVectors
        >>> attention = DisentangledSelfAttention(2, positions=RelativeVectors(max_distance=4))
        >>> tuple(attention(ops.ones((3, 5, 8))).shape)
        (3, 5, 8)

    References:
        He et al. 2020, https://arxiv.org/abs/2006.03654, section 3.1; `DisentangledSelfAttention` in transformers,
        models/deberta_v2/modeling_deberta_v2.py.
    """

    def __init__(
        self,
        num_heads: int,
        *,
        content_to_position: bool = True,
        position_to_content: bool = True,
        shares_projections: bool = False,
        vector_dropout: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(num_heads, **kwargs)
        owner = type(self).__name__
        self.content_to_position = checks.boolean(owner, "content_to_position", content_to_position)
        self.position_to_content = checks.boolean(owner, "position_to_content", position_to_content)
        self.shares_projections = checks.boolean(owner, "shares_projections", shares_projections)
        self.vector_dropout = checks.fraction(owner, "vector_dropout", vector_dropout)

    def build(self, input_shape: Any) -> None:
        """Creates the projections, as wide as the input."""
        checks.instance(type(self).__name__, "positions", self.positions, RelativeVectors)
        super().build(input_shape)
        options: dict[str, Any] = {"dtype": self.dtype_policy}
        self.vector_dropout_layer = Dropout(self.vector_dropout, name="vector_dropout", **options)
        self.dropout_layer = _Dropouts(self.dropout, self.vector_dropout_layer, name="dropout", **options)
        width = input_shape[-1]
        for name in self.own_projections:
            layer = dense(width, self.initializer_range, name=name, use_bias=self.use_bias, **options)
            layer.build((None, width))
            setattr(self, name, layer)

    @property
    def own_projections(self) -> list[str]:
        """The names of the projections of positions that the layer has."""
        kinds = {"position_key": self.content_to_position, "position_query": self.position_to_content}
        return [name for name, is_there in kinds.items() if is_there and not self.shares_projections]

    @property
    def num_products(self) -> int:
        """How many products a score is the sum of."""
        return 1 + self.content_to_position + self.position_to_content

    def _kernel(self, query: Tensor, key: Tensor, padding_mask: Tensor, call: Any) -> Kernel:
        """All scores at once, or in turns; what it adds to the scores is made of the vectors that they need."""
        full: Any = super()._kernel(query, key, padding_mask, call)
        takes_turns = self._takes_turns(call) and not call.needs_scores and full.is_same_for_all_queries
        full = full._replace(bias=self._vectors(ops.shape(query)[2], ops.shape(key)[2]))
        return InTurns(full) if takes_turns else full

    def _vectors(self, num_queries: Any, num_keys: Any) -> Any:
        """Keys at the distances Q - 1, ..., -S, then queries at 1 - S, ..., Q; None without any products with them."""
        vectors, indices = self.positions.between(num_queries, num_keys)
        vectors = self.vector_dropout_layer(vectors)
        parts = [self.heads_of(vectors, 1, ops.flip(indices[:-1], 0))] if self.content_to_position else []
        parts += [self.heads_of(vectors, 0, indices[1:])] if self.position_to_content else []
        return ops.concatenate(parts, axis=2)[0] if parts else None  # [N, S + Q or twice as many, D]

    def scores(self, query: Tensor, key: Tensor, bias: Any = None) -> Any:
        """The three products, scaled; see the class and `SelfAttention.scores`. `bias` has the vectors of distances."""
        share = self.num_products**-0.5
        query = query * share
        scores, num_queries, num_keys = super().scores(query, key), ops.shape(query)[-2], ops.shape(key)[-2]
        if self.content_to_position:
            scores = scores + _shifted(super().scores(query, bias[:, : num_queries + num_keys]), num_keys)
        if self.position_to_content:
            queries = bias[:, -(num_queries + num_keys) :]
            of_keys = _shifted(super().scores(key * share, queries), num_queries)  # [..., S, Q]
            scores = scores + ops.swapaxes(of_keys, -1, -2)
        return scores

    def heads_of(self, vectors: Tensor, part: int, indices: Tensor) -> Any:
        """The queries (part 0) or keys (part 1) of vectors `[R, H]` at some indices, `[1, N, len(indices), D]`."""
        width = vectors.shape[-1]
        if not self.shares_projections:
            projected = (self.position_key if part else self.position_query)(vectors)
        elif self.query_key_value.quantization_mode is not None:  # only the layer can read its kernel
            projected = self.query_key_value(vectors)[:, part * width :][:, :width]
        else:
            columns = slice(part * width, (part + 1) * width)
            projected = ops.matmul(vectors, self.query_key_value.kernel[:, columns])
            bias = self.query_key_value.bias
            projected = projected if bias is None else projected + bias[columns]
        return self._split_heads(ops.take(projected, indices, axis=0)[None], 1)[0]

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), **checks.constructor_arguments(DisentangledSelfAttention, self)}


def _shifted(products: Tensor, num_columns: Any) -> Any:
    """`[..., R, C]` of `[..., R, R + C]`: row r begins at column R - 1 - r."""
    *heads, rows, columns = ops.shape(products)
    flat = ops.reshape(products, (*heads, rows * columns))
    # One column less moves each row by one to the left.
    flat = ops.reshape(flat[..., rows - 1 : -1], (*heads, rows, columns - 1))
    return flat[..., :num_columns]
