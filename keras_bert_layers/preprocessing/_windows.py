"""Where the windows lie that a long text is read through, and what stands at each of their places."""

from __future__ import annotations

from typing import NamedTuple

from keras_bert_layers._internal.lazy import tf


class Windows(NamedTuple):
    """W windows over the tokens of B texts.

    Attributes:
        rows: int32 `[W]`, the text that a window shows a part of, in ascending order.
        begins: int32 `[W]`, the first token of that part, counted in the text.
        lengths: int32 `[W]`, how many tokens it has.
    """

    rows: tf.Tensor
    begins: tf.Tensor
    lengths: tf.Tensor


def lay_windows(num_tokens: tf.Tensor, room: tf.Tensor, overlap: int) -> Windows:
    """Windows of `room` tokens that cover each text, each window sharing `overlap` tokens with the one before it.

    The last window of a text ends with it. A text that fits into one window, the empty one too, has one.

    Args:
        num_tokens: int32 `[B]`, the length of each text.
        room: int32 `[B]`, how many tokens of a text its windows hold, more than `overlap`.
        overlap: tokens that neighbours share.

    Returns:
        The windows, text by text.
    """
    step = room - overlap  # [B]
    num_windows = 1 + tf.maximum(num_tokens - room + step - 1, 0) // step  # [B]
    rows = tf.repeat(tf.range(tf.size(num_tokens)), num_windows)  # [W]
    begins = tf.ragged.range(num_windows).flat_values * tf.gather(step, rows)  # [W]
    lengths = tf.minimum(tf.gather(room, rows), tf.gather(num_tokens, rows) - begins)  # [W]
    return Windows(rows, begins, lengths)


class Places(NamedTuple):
    """What stands at each place of W windows `[CLS] question [SEP] part of the context [SEP]`, S places wide.

    Attributes:
        question: int32 `[W, S]`, which token of the question stands there, where `is_question`.
        is_question: bool `[W, S]`.
        context: int32 `[W, S]`, which token of the context stands there, where `is_context`.
        is_context: bool `[W, S]`.
        is_second: bool `[W, S]`, the context and the `[SEP]` behind it.
        is_real: bool `[W, S]`, whether anything but padding stands there.
    """

    question: tf.Tensor
    is_question: tf.Tensor
    context: tf.Tensor
    is_context: tf.Tensor
    is_second: tf.Tensor
    is_real: tf.Tensor


def places(windows: Windows, question_lengths: tf.Tensor, width: tf.Tensor | int) -> Places:
    """The places of windows.

    Args:
        windows: where they lie in the contexts.
        question_lengths: int32 `[B]`.
        width: the number of places, S.

    Returns:
        The places.
    """
    place = tf.tile(tf.range(width)[None, :], [tf.size(windows.rows), 1])  # [W, S]
    first = tf.gather(question_lengths, windows.rows)[:, None] + 2  # [W, 1]
    last_separator = first + windows.lengths[:, None]  # [W, 1]
    is_real = place <= last_separator
    return Places(
        question=place - 1,
        is_question=(place >= 1) & (place < first - 1),
        context=place - first + windows.begins[:, None],
        is_context=(place >= first) & (place < last_separator),
        is_second=(place >= first) & is_real,
        is_real=is_real,
    )
