"""Runs a model over any number of windows, in parts that fit into memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras_bert_layers._internal.lazy import tf

# With more windows at once, the attention scores of BERT-base over 384 tokens take more than a few 100 MB.
WINDOWS_PER_PART = 32


def in_parts(
    function: Callable[[dict[str, tf.Tensor]], tuple[tf.Tensor, ...]],
    windows: dict[str, tf.Tensor],
    *,
    width: Callable[[tf.Tensor], tf.Tensor | int],
    sizes: tuple[tuple[Any, tuple[int | None, ...]], ...],
) -> tuple[tf.Tensor, ...]:
    """The outputs of a function for windows, computed for a part of similar length at a time.

    Args:
        function: takes windows and returns tensors, windows first.
        windows: tensors `[W, S]`, among them `"padding_mask"`.
        width: maps the lengths of some windows to the width that they are padded to.
        sizes: the dtype of each output of the function, and its axes after the windows.

    Returns:
        The outputs for all windows, in their order.
    """
    lengths = tf.reduce_sum(windows["padding_mask"], axis=1)  # [W]
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    num_parts = tf.maximum((tf.size(order) + WINDOWS_PER_PART - 1) // WINDOWS_PER_PART, 1)
    results = tuple(
        tf.TensorArray(dtype, num_parts, element_shape=(None, *axes), infer_shape=False) for dtype, axes in sizes
    )

    def one_part(part: tf.Tensor, results: tuple[tf.TensorArray, ...]) -> tuple[tf.Tensor, tuple[tf.TensorArray, ...]]:
        chosen = order[part * WINDOWS_PER_PART : (part + 1) * WINDOWS_PER_PART]
        needed = width(tf.gather(lengths, chosen))
        outputs = function({name: tf.gather(tensor, chosen)[:, :needed] for name, tensor in windows.items()})
        return part + 1, tuple(result.write(part, output) for result, output in zip(results, outputs, strict=True))

    _, results = tf.while_loop(
        lambda part, _: part < num_parts, one_part, (tf.constant(0), results), parallel_iterations=1
    )
    position = tf.math.invert_permutation(order)
    return tuple(tf.gather(result.concat(), position) for result in results)
