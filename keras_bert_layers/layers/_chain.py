"""What may come behind each tag of a chain: the recursions under `ConditionalRandomField`.

Axes: B batch, S sequence, C tags. `scores` `[C, C]`: how well each tag (column) follows each tag (row). `emissions`
`[B, S, C]`, `ends` `[C]`, and `real`, bool `[B, S]`: which positions have a tag.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keras import ops


def best_futures(scores: Any, emissions: Any, ends: Any, real: Any) -> Any:
    """The score of the best that can come behind each tag, up to a constant for each position; `[B, S, C]`."""
    return _futures(scores, emissions, ends, real, ops.max)


def total_futures(scores: Any, emissions: Any, ends: Any, real: Any) -> Any:
    """The logarithm of the sum of all that can come behind each tag, up to a constant for each position; `[B, S, C]`.

    It has a gradient of its own, since XLA has none for `keras.ops.scan` on TensorFlow. It takes the constants as
    given: what reads these numbers must not depend on them, as a softmax over the tags does not.
    """

    @ops.custom_gradient
    def total(scores: Any, emissions: Any, ends: Any, real_share: Any) -> tuple[Any, Callable[..., Any]]:
        real = ops.cast(real_share, "bool")
        futures = _futures(scores, emissions, ends, real, ops.logsumexp)

        def gradient(*args: Any, upstream: Any = None) -> tuple[Any, ...]:
            upstream = args[0] if upstream is None else upstream  # as the backend has it
            followers = ops.softmax(scores + (emissions + futures)[:, :, None, :], axis=-1)  # [B, S, C, C]
            before, last = _carried_on(upstream, followers, real)
            shares = ops.where(real[:, :, None], before, 0)  # [B, S, C]
            return (
                ops.einsum("bsi,bsij->ij", shares, followers),
                ops.einsum("bsi,bsij->bsj", shares, followers),
                ops.sum(last, axis=0),
                ops.zeros_like(real_share),
            )

        return futures, gradient

    return total(scores, emissions, ends, ops.cast(real, emissions.dtype))


def marginals(scores: Any, logits: Any, real: Any) -> Any:
    """The probability of each tag at each position.

    Args:
        scores: `[C + 1, C]`, the last row for the first tag.
        logits: emissions and `total_futures` together, `[B, S, C]`.
        real: bool `[B, S]`.

    Returns:
        `[B, S, C]`; 0 where `real` is false.
    """

    def step(before: Any, position: Any) -> tuple[Any, Any]:
        logit, is_real = position  # [B, C], [B]
        followers = ops.softmax(scores + logit[:, None, :], axis=-1)  # [B, C + 1, C]
        after = ops.einsum("bi,bij->bj", before, followers)
        after = ops.pad(after, [[0, 0], [0, 1]])  # [B, C + 1]; no tag is followed by the start
        return ops.where(is_real[:, None], after, before), after

    start = ops.pad(ops.zeros_like(logits[:, 0]), [[0, 0], [0, 1]], constant_values=1)  # [B, C + 1]
    _, probabilities = along(step, start, (logits, real))
    return ops.where(real[:, :, None], probabilities[:, :, :-1], 0)


def along(
    step: Callable[[Any, Sequence[Any]], tuple[Any, Any]], start: Any, columns: Sequence[Any], *, reverse: bool = False
) -> tuple[Any, Any]:
    """`keras.ops.scan` along the positions of columns `[B, S, ...]`.

    Args:
        step: what is carried and what the columns hold at a position `[B, ...]` -> what is carried on, and an output of
            the same shape and dtype.
        start: what is carried first.
        columns: tensors of the same length S.
        reverse: whether to go from the last position to the first.

    Returns:
        What is carried behind the last step, and the outputs `[B, S, ...]`.
    """
    # The scan goes over the places alone: on TensorFlow, Keras 3.15 refuses several columns of unknown length.
    columns = [ops.swapaxes(column, 0, 1) for column in columns]

    def at(carried: Any, place: Any) -> tuple[Any, Any]:
        return step(carried, [ops.take(column, place, axis=0) for column in columns])

    last, outputs = ops.scan(at, start, ops.arange(ops.shape(columns[0])[0]), reverse=reverse)
    return last, ops.swapaxes(outputs, 0, 1)


def _futures(scores: Any, emissions: Any, ends: Any, real: Any, reduce: Callable[..., Any]) -> Any:
    def step(future: Any, position: Any) -> tuple[Any, Any]:
        emission, is_real = position  # [B, C], [B]
        ahead = reduce(scores + (emission + future)[:, None, :], axis=-1)  # [B, C]
        # Only differences between tags count, and a long row's sum would lose in float32 what one position adds.
        ahead = ahead - ops.max(ahead, axis=-1, keepdims=True)
        return ops.where(is_real[:, None], ahead, future), future

    end = ends + ops.zeros_like(emissions[:, 0])  # [B, C]
    return along(step, end, (emissions, real), reverse=True)[1]


def _carried_on(upstream: Any, followers: Any, real: Any) -> tuple[Any, Any]:
    """What reaches each position from those before it, `[B, S, C]`, and what reaches the end, `[B, C]`."""

    def step(before: Any, position: Any) -> tuple[Any, Any]:
        own, share, is_real = position  # [B, C], [B, C, C], [B]
        spread = ops.einsum("bi,bij->bj", before, share)
        return own + ops.where(is_real[:, None], spread, before), before

    last, before = along(step, ops.zeros_like(upstream[:, 0]), (upstream, followers, real))
    return before, last
