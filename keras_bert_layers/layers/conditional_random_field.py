"""`ConditionalRandomField` (CRF): scores the tags of a sequence jointly.

Axes: B batch, S sequence, C tags.
"""

from collections.abc import Callable, Sequence
from typing import Any, Unpack

import keras
import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.custom_gradients import freed_with
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import LayerOptions, Shape, Tensor
from keras_bert_layers.tag_scheme import check_tag_names, tag_scheme

# The score of a forbidden transition. Its exponential is 0 in float32, and sums of it over any length stay finite, so
# that the loss is finite even for a row with such a transition.
_FORBIDDEN = -1e4


@register
class ConditionalRandomField(keras.layers.Layer):
    """A linear-chain conditional random field (CRF): scores each tag together with the tag before it.

    `score(y) = start[y_1] + sum_t emission_t[y_t] + sum_t transition[y_(t-1), y_t] + end[y_last]`, and the probability
    of a row of tags is `exp(score(y))`, divided by the sum over all rows of tags. Initial weights are zero: the
    probabilities at each position are then a softmax of its emissions, except for tags that `tag_names` forbids.

    A call returns the probabilities of each position's tag. Training maximizes `log_likelihood`; `viterbi` returns the
    best row of tags. All values are float32 under every dtype policy, and stay small at any length.

    Axes: B batch, S sequence, C tags.

    Args:
        num_tags: the number of tags, at least 2.
        tag_names: None, or one name per tag in the order of their ids: "O", "B-person", "I-person" and so on. With
            names, only rows of tags that their scheme allows are possible: in BIO, an "I-" only after a "B-" or an "I-"
            of the same label.
        scheme: the scheme of `tag_names`, as for `BertTokenClassifier`; None to infer it from the names.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        emissions: float `(batch, sequence, num_tags)`, the logits of each position's tag.
        padding_mask: int or bool `(batch, sequence)`, 1 = position with a tag; None if all have one. Positions without
            a tag may be anywhere; the chain skips them.

    Returns:
        The marginal probabilities of each position's tag, float32 `(batch, sequence, num_tags)`; 0 where
        `padding_mask` is 0.

    Raises:
        TypeError: `tag_names` is not a list of strings.
        ValueError: `num_tags` is below 2, or `tag_names` is not a list of `num_tags` names; the scheme is unknown.

    Examples:
        >>> field = ConditionalRandomField(3, tag_names=["O", "B-person", "I-person"])
        >>> emissions = keras.ops.convert_to_tensor([[[0.0, 2.0, 3.0], [0.0, 0.0, 4.0]]])
        >>> field.viterbi(emissions).numpy().tolist()
        [[1, 2]]

    References:
        Lafferty et al. 2001, Conditional Random Fields; Rabiner 1989, A Tutorial on Hidden Markov Models, section III.
    """

    def __init__(
        self,
        num_tags: int,
        *,
        tag_names: Sequence[str] | None = None,
        scheme: str | None = None,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(autocast=False, **kwargs)
        owner = type(self).__name__
        self.num_tags = checks.integer(owner, "num_tags", num_tags, smallest=2)
        self.tag_names = None if tag_names is None else check_tag_names(owner, tag_names)
        if self.tag_names is not None and len(self.tag_names) != self.num_tags:
            raise ValueError(checks.message(owner, "tag_names", f"be {self.num_tags} names", self.tag_names))
        self.scheme = scheme
        # 0 for what may follow, and as the last tag, and a large negative value for the rest; rows as in `_scores`.
        self._penalties = np.zeros((self.num_tags + 1, self.num_tags), "float32")
        self._end_penalties = np.zeros(self.num_tags, "float32")
        if self.tag_names is not None:
            found = tag_scheme(owner, self.tag_names, scheme)
            self._penalties[~found.may_follow] = _FORBIDDEN
            self._end_penalties[~found.may_end] = _FORBIDDEN

    def build(self, input_shape: Shape) -> None:
        """Creates the scores of transitions, of the first tag and of the last."""
        if len(input_shape) != 3 or input_shape[-1] != self.num_tags:
            rule = f"be (batch, sequence, {self.num_tags})"
            raise ValueError(checks.message(type(self).__name__, "emissions.shape", rule, tuple(input_shape)))
        shapes = {"transitions": (self.num_tags, self.num_tags), "starts": (self.num_tags,), "ends": (self.num_tags,)}
        for name, shape in shapes.items():
            setattr(self, name, self.add_weight(shape=shape, initializer="zeros", autocast=False, name=name))

    def call(self, emissions: Tensor, padding_mask: Tensor | None = None) -> Any:
        """Computes each position's probabilities; see the class."""
        emissions, real = self._prepare(emissions, padding_mask)
        return _marginals(
            self.transition_scores(emissions.dtype), emissions + self._total_backward_scores(emissions, real), real
        )

    def log_likelihood(self, emissions: Tensor, tags: Tensor, padding_mask: Tensor | None = None) -> Any:
        """The log-probability of rows of tags.

        Args:
            emissions: as in a call.
            tags: int `(batch, sequence)`; ignored where `padding_mask` is 0.
            padding_mask: as in a call.

        Returns:
            Float32 `(batch,)`, at most 0; 0 for a row without tags.
        """
        emissions, real = self._prepare(emissions, padding_mask)
        tags = ops.where(real, ops.cast(tags, "int32"), 0)
        choices = ops.log_softmax(self.logits_given_past(emissions, tags, real), axis=-1)
        chosen = ops.take_along_axis(choices, tags[:, :, None], axis=-1)[:, :, 0]  # [B, S]
        return ops.sum(ops.where(real, chosen, 0), axis=-1)

    def logits_given_past(self, emissions: Tensor, tags: Tensor, padding_mask: Tensor | None = None) -> Any:
        """The logits of each position's tag, given the tags before it, summed over all tags after it.

        By the chain rule, the log-likelihood of a row is the sum of the log-softmax of these logits at the given tags.
        So the usual cross entropy of these logits, with or without weights, is the loss of the CRF.

        Args:
            emissions: as in a call.
            tags: int `(batch, sequence)`; ignored where `padding_mask` is 0.
            padding_mask: as in a call.

        Returns:
            Float32 `(batch, sequence, num_tags)`.
        """
        emissions, real = self._prepare(emissions, padding_mask)
        tags = ops.where(real, ops.cast(tags, "int32"), 0)

        def step(previous: Any, position: Any) -> tuple[Any, Any]:
            tag, is_real = position
            return ops.where(is_real, tag, previous), previous

        _, previous = _along(step, self._start_row(emissions), (tags, real))
        past = ops.take(self.transition_scores(emissions.dtype), previous, axis=0)  # [B, S, C]
        return past + emissions + self._total_backward_scores(emissions, real)

    def viterbi(self, emissions: Tensor, padding_mask: Tensor | None = None) -> Any:
        """The most probable row of tags.

        Args:
            emissions: as in a call.
            padding_mask: as in a call.

        Returns:
            Int32 `(batch, sequence)`; 0 where `padding_mask` is 0.
        """
        emissions, real = self._prepare(emissions, padding_mask)
        scores = self.transition_scores(emissions.dtype)

        def step(previous: Any, position: Any) -> tuple[Any, Any]:
            score, is_real = position  # [B, C], [B]
            tag = ops.cast(ops.argmax(ops.take(scores, previous, axis=0) + score, axis=-1), "int32")
            return ops.where(is_real, tag, previous), ops.where(is_real, tag, 0)

        backward = _backward_scores(scores[:-1], emissions, self.end_scores(emissions.dtype), real, ops.max)
        return _along(step, self._start_row(emissions), (emissions + backward, real))[1]

    def _total_backward_scores(self, emissions: Tensor, real: Tensor) -> Any:
        dtype = emissions.dtype
        with freed_with(self):
            return _total_backward_scores(self.transition_scores(dtype)[:-1], emissions, self.end_scores(dtype), real)

    def transition_scores(self, dtype: str) -> Any:
        """The score of each tag (column) after each tag (row), or as the first tag (last row); `[C + 1, C]`."""
        scores = ops.concatenate([self.transitions, self.starts[None]], axis=0)
        return ops.cast(scores, dtype) + ops.cast(self._penalties, dtype)

    def end_scores(self, dtype: str) -> Any:
        """The score of each tag as the last one, `[C]`."""
        return ops.cast(ops.convert_to_tensor(self.ends), dtype) + ops.cast(self._end_penalties, dtype)

    def _start_row(self, emissions: Tensor) -> Any:
        """The row of `transition_scores` for the first tag, once for each row of the batch; int32 `[B]`."""
        return ops.full((ops.shape(emissions)[0],), self.num_tags, dtype="int32")

    def _prepare(self, emissions: Tensor, padding_mask: Tensor | None) -> tuple[Any, Any]:
        """The emissions in at least float32, and whether each position has a tag, bool `[B, S]`."""
        emissions = ops.convert_to_tensor(emissions)
        if not self.built:
            self.build(emissions.shape)
        emissions = ops.cast(emissions, keras.backend.result_type(emissions.dtype, "float32"))
        if padding_mask is None:
            return emissions, ops.ones(ops.shape(emissions)[:2], dtype="bool")
        return emissions, ops.cast(padding_mask, "bool")

    def compute_output_spec(self, emissions: Tensor, padding_mask: Tensor | None = None) -> Any:
        """The shape of the emissions; float32."""
        return keras.KerasTensor(emissions.shape, dtype=keras.backend.result_type(emissions.dtype, "float32"))

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "num_tags": self.num_tags, "tag_names": self.tag_names, "scheme": self.scheme}


def _marginals(scores: Tensor, logits: Tensor, real: Tensor) -> Any:
    """The probability of each tag at each position.

    Args:
        scores: `[C + 1, C]`; the last row is for the first tag.
        logits: emissions and `_total_backward_scores`, added, `[B, S, C]`.
        real: bool `[B, S]`.

    Returns:
        `[B, S, C]`; 0 where `real` is false.
    """

    def step(before: Any, position: Any) -> tuple[Any, Any]:
        logit, is_real = position  # [B, C], [B]
        followers = ops.softmax(scores + logit[:, None, :], axis=-1)  # [B, C + 1, C]
        after = ops.einsum("bi,bij->bj", before, followers)
        after = ops.pad(after, [[0, 0], [0, 1]])  # [B, C + 1]; the start follows no tag
        return ops.where(is_real[:, None], after, before), after

    start = ops.pad(ops.zeros_like(logits[:, 0]), [[0, 0], [0, 1]], constant_values=1)  # [B, C + 1]
    _, probabilities = _along(step, start, (logits, real))
    return ops.where(real[:, :, None], probabilities[:, :, :-1], 0)


def _total_backward_scores(scores: Tensor, emissions: Tensor, ends: Tensor, real: Tensor) -> Any:
    """The log-sum-exp of the scores of all tags after each position, given its tag; up to a constant per position.

    The custom gradient is needed because XLA has none for `keras.ops.scan` on TensorFlow. It ignores the constants, so
    the caller's result must not depend on them; a softmax over the tags, for example, does not.

    Returns:
        `[B, S, C]`.
    """

    @ops.custom_gradient
    def total(scores: Tensor, emissions: Tensor, ends: Tensor, real_share: Tensor) -> tuple[Any, Callable[..., Any]]:
        real = ops.cast(real_share, "bool")
        backward = _backward_scores(scores, emissions, ends, real, ops.logsumexp)

        def gradient(*args: Any, upstream: Tensor | None = None) -> tuple[Any, ...]:
            upstream = args[0] if upstream is None else upstream  # the backends pass it differently
            followers = ops.softmax(scores + (emissions + backward)[:, :, None, :], axis=-1)  # [B, S, C, C]
            before, last = _accumulated(upstream, followers, real)
            shares = ops.where(real[:, :, None], before, 0)  # [B, S, C]
            return (
                ops.einsum("bsi,bsij->ij", shares, followers),
                ops.einsum("bsi,bsij->bsj", shares, followers),
                ops.sum(last, axis=0),
                ops.zeros_like(real_share),
            )

        return backward, gradient

    return total(scores, emissions, ends, ops.cast(real, emissions.dtype))


def _backward_scores(scores: Tensor, emissions: Tensor, ends: Tensor, real: Tensor, reduce: Callable[..., Any]) -> Any:
    """The best score (by `ops.max`), or the sum, of the tags after each position, given its tag, `[B, S, C]`.

    Up to a constant per position.
    """

    def step(after: Any, position: Any) -> tuple[Any, Any]:
        emission, is_real = position  # [B, C], [B]
        score = reduce(scores + (emission + after)[:, None, :], axis=-1)  # [B, C]
        # Only differences between tags count, and in float32 a long row's sum would lose what one position adds.
        score = score - ops.max(score, axis=-1, keepdims=True)
        return ops.where(is_real[:, None], score, after), after

    end = ends + ops.zeros_like(emissions[:, 0])  # [B, C]
    return _along(step, end, (emissions, real), reverse=True)[1]


def _accumulated(upstream: Tensor, followers: Tensor, real: Tensor) -> tuple[Any, Any]:
    """The gradient that reaches each position from those before it, `[B, S, C]`, and the end, `[B, C]`."""

    def step(before: Any, position: Any) -> tuple[Any, Any]:
        own, share, is_real = position  # [B, C], [B, C, C], [B]
        spread = ops.einsum("bi,bij->bj", before, share)
        return own + ops.where(is_real[:, None], spread, before), before

    last, before = _along(step, ops.zeros_like(upstream[:, 0]), (upstream, followers, real))
    return before, last


def _along(
    step: Callable[[Any, Sequence[Any]], tuple[Any, Any]],
    start: Tensor,
    columns: Sequence[Any],
    *,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """`keras.ops.scan` along the positions of columns `[B, S, ...]`.

    Args:
        step: a function of the carried value and the columns' values `[B, ...]` at a position; it returns the new
            carried value and an output of the same shape and dtype.
        start: the first carried value.
        columns: tensors of the same length S.
        reverse: whether to go from the last position to the first.

    Returns:
        The last carried value, and the outputs `[B, S, ...]`.
    """
    # The scan runs over indices: on TensorFlow, Keras 3.15 rejects several columns of unknown length.
    columns = [ops.swapaxes(column, 0, 1) for column in columns]

    def at(carried: Tensor, index: Tensor) -> tuple[Any, Any]:
        return step(carried, [ops.take(column, index, axis=0) for column in columns])

    last, outputs = ops.scan(at, start, ops.arange(ops.shape(columns[0])[0]), reverse=reverse)
    return last, ops.swapaxes(outputs, 0, 1)
