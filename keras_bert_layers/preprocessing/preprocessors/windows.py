"""Overlapping windows over texts that are too long for one input."""

from __future__ import annotations

from typing import NamedTuple

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.tokenizer import Tokenizer
from keras_bert_layers.preprocessing.tokens.tokens import rows_of_lengths

NO_OFFSET = -1


class LaidWindows(NamedTuple):
    """W windows over the tokens of B texts.

    Attributes:
        rows: int32 `[W]`, the text that each window shows a part of, in ascending order.
        begins: int32 `[W]`, the index of the part's first token in the text.
        lengths: int32 `[W]`, the number of tokens in the part.
    """

    rows: tf.Tensor
    begins: tf.Tensor
    lengths: tf.Tensor


def lay_windows(num_tokens: tf.Tensor, room: tf.Tensor, overlap: int) -> LaidWindows:
    """Covers each text with windows of `room` tokens; each window shares `overlap` tokens with the one before it.

    The last window of a text ends with the text. A text that fits into one window gets one, even if it is empty.

    Args:
        num_tokens: int32 `[B]`, the length of each text.
        room: int32 `[B]`, the number of tokens of a text that fit into a window; more than `overlap`.
        overlap: the number of tokens that neighbouring windows share.

    Returns:
        The windows, text by text.
    """
    step = room - overlap  # [B]
    num_windows = 1 + tf.maximum(num_tokens - room + step - 1, 0) // step  # [B]
    rows = tf.cast(rows_of_lengths(num_windows), tf.int32)  # [W]
    begins = tf.ragged.range(num_windows).flat_values * tf.gather(step, rows)  # [W]
    lengths = tf.minimum(tf.gather(room, rows), tf.gather(num_tokens, rows) - begins)  # [W]
    return LaidWindows(rows, begins, lengths)


def fill_windows(
    windows: LaidWindows,
    question_ids: tf.RaggedTensor,
    context: tuple[tf.RaggedTensor, ...],
    width: tf.Tensor | int,
    tokenizer: Tokenizer,
    *,
    begins: tuple[tf.Tensor, tf.Tensor] | None = None,
) -> dict[str, tf.Tensor]:
    """The model inputs `[CLS] question [SEP] part of the context [SEP] [PAD] ...` of W windows, S tokens wide.

    Args:
        windows: the windows over the contexts.
        question_ids: ragged int32 `[B, tokens]`.
        context: ids, starts and ends of the contexts' tokens, each ragged int32 `[B, tokens]`.
        width: S.
        tokenizer: what the special tokens are from.
        begins: whether each token of the contexts, and of the questions, begins a word, bool, to return
            `"begins_word"`.

    Returns:
        What a call of `SpanPreprocessor`, or `with_words` of it, returns.
    """
    ids, starts, ends = (tokens.flat_values for tokens in context)
    position = tf.tile(tf.range(width)[None, :], [tf.size(windows.rows), 1])  # [W, S], as all that follows
    num_separators = tokenizer.num_pair_separators
    question_lengths = tf.gather(row_lengths(question_ids), windows.rows)[:, None]  # [W, 1]
    first = question_lengths + 1 + num_separators  # [W, 1], the context's first position
    last = first + windows.lengths[:, None]  # [W, 1], the position of the last [SEP]
    is_real = position <= last
    is_question = (position >= 1) & (position < first - num_separators)
    is_context = (position >= first) & (position < last)
    # Indices into one list of all tokens: those of the contexts, those of the questions, and the special ones.
    special_ids = tf.constant([tokenizer.start_id, tokenizer.separator_id, tokenizer.pad_id], tf.int32)
    all_ids = tf.concat([ids, question_ids.flat_values, special_ids], 0)
    of_context = position - first + windows.begins[:, None] + _row_starts(context[0], windows.rows)
    of_question = position - 1 + _row_starts(question_ids, windows.rows) + tf.size(ids)
    of_special = tf.size(all_ids) - tf.where(is_real, tf.where(position == 0, 3, 2), 1)
    of_others = tf.where(is_question, of_question, of_special)
    of_offset, of_all = tf.where(is_context, of_context, tf.size(ids)), tf.where(is_context, of_context, of_others)
    words = {}
    if begins is not None:
        all_begin = tf.concat([*begins, tf.ones_like(special_ids, tf.bool)], 0)
        words = {"begins_word": tf.cast(tf.gather(all_begin, of_all), tf.int32)}
    return {
        **words,
        "token_ids": tf.gather(all_ids, of_all),
        "segment_ids": tf.cast((position >= first) & is_real, tf.int32),
        "padding_mask": tf.cast(is_real, tf.int32),
        "rows": windows.rows,
        "starts": tf.gather(tf.concat([starts, [NO_OFFSET]], 0), of_offset),
        "ends": tf.gather(tf.concat([ends, [NO_OFFSET]], 0), of_offset),
    }


def row_lengths(tokens: tf.RaggedTensor) -> tf.Tensor:
    """The number of tokens in each row, int32 `(batch,)`."""
    return tf.cast(tokens.row_lengths(), tf.int32)


def _row_starts(tokens: tf.RaggedTensor, rows: tf.Tensor) -> tf.Tensor:
    """The index of the first token of some rows among all tokens, int32 `[W, 1]`."""
    return tf.cast(tf.gather(tokens.row_starts(), rows), tf.int32)[:, None]
