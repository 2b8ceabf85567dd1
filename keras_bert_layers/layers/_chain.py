"""The forward and backward recursions of a linear chain, for `ConditionalRandomField`.

Axes: B batch, S sequence, C tags. `scores` `[C, C]`: the score of each tag (column) after each tag (row). `emissions`
`[B, S, C]`, `ends` `[C]`, and `real`, bool `[B, S]`: whether a position has a tag.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keras import ops


def best_backward_scores(scores: Any, emissions: Any, ends: Any, real: Any) -> Any:
    """The best score of the tags after each position, given its tag; up to a constant a position, `[B, S, C]`."""
    return _backward_scores(scores, emissions, ends, real, ops.max)


def total_backward_scores(scores: Any, emissions: Any, ends: Any, real: Any) -> Any:
    """The log-sum-exp of the scores of all tags after each position, given its tag; up to a constant a position.

    The custom gradient is needed because XLA has none for `keras.ops.scan` on TensorFlow. It ignores the constants, so
    the caller's result must not depend on them; a softmax over the tags, for example, does not.

    Returns:
        `[B, S, C]`.
    """

    @ops.custom_gradient
    def total(scores: Any, emissions: Any, ends: Any, real_share: Any) -> tuple[Any, Callable[..., Any]]:
        real = ops.cast(real_share, "bool")
        backward = _backward_scores(scores, emissions, ends, real, ops.logsumexp)

        def gradient(*args: Any, upstream: Any = None) -> tuple[Any, ...]:
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


def marginals(scores: Any, logits: Any, real: Any) -> Any:
    """The probability of each tag at each position.

    Args:
        scores: `[C + 1, C]`; the last row is for the first tag.
        logits: emissions and `total_backward_scores`, added, `[B, S, C]`.
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
    _, probabilities = along(step, start, (logits, real))
    return ops.where(real[:, :, None], probabilities[:, :, :-1], 0)


def along(
    step: Callable[[Any, Sequence[Any]], tuple[Any, Any]], start: Any, columns: Sequence[Any], *, reverse: bool = False
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

    def at(carried: Any, index: Any) -> tuple[Any, Any]:
        return step(carried, [ops.take(column, index, axis=0) for column in columns])

    last, outputs = ops.scan(at, start, ops.arange(ops.shape(columns[0])[0]), reverse=reverse)
    return last, ops.swapaxes(outputs, 0, 1)


def _backward_scores(scores: Any, emissions: Any, ends: Any, real: Any, reduce: Callable[..., Any]) -> Any:
    def step(after: Any, position: Any) -> tuple[Any, Any]:
        emission, is_real = position  # [B, C], [B]
        score = reduce(scores + (emission + after)[:, None, :], axis=-1)  # [B, C]
        # Only differences between tags count, and in float32 a long row's sum would lose what one position adds.
        score = score - ops.max(score, axis=-1, keepdims=True)
        return ops.where(is_real[:, None], score, after), after

    end = ends + ops.zeros_like(emissions[:, 0])  # [B, C]
    return along(step, end, (emissions, real), reverse=True)[1]


def _accumulated(upstream: Any, followers: Any, real: Any) -> tuple[Any, Any]:
    """The gradient that reaches each position from those before it, `[B, S, C]`, and the end, `[B, C]`."""

    def step(before: Any, position: Any) -> tuple[Any, Any]:
        own, share, is_real = position  # [B, C], [B, C, C], [B]
        spread = ops.einsum("bi,bij->bj", before, share)
        return own + ops.where(is_real[:, None], spread, before), before

    last, before = along(step, ops.zeros_like(upstream[:, 0]), (upstream, followers, real))
    return before, last
