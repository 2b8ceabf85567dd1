"""Truncation of pairs of texts."""

from __future__ import annotations

from keras_bert_layers._internal.lazy import tf

SIDES = ("right", "left")
TRUNCATIONS = ("longest_first", "only_first", "only_second")


def truncate_pair(
    first_ids: tf.RaggedTensor, second_ids: tf.RaggedTensor, *, budget: int, truncation: str, side: str, reference: str
) -> list[tf.RaggedTensor]:
    """Shortens the two texts of each pair until they fit together.

    Args:
        first_ids: ragged int32 `(batch, tokens)`.
        second_ids: ragged int32 `(batch, tokens)`.
        budget: the number of tokens that both may have together, at least 0.
        truncation: `"longest_first"`, `"only_first"` or `"only_second"`.
        side: `"right"` to cut texts at their ends, `"left"` to cut them at their beginnings.
        reference: whose rule applies to an odd budget under `"longest_first"`: `"google"` removes a token of the second
            text at equal lengths, so the first keeps one more; `"huggingface"` (its tokenizers library) leaves one more
            to the text that was longer, or to the second text if both were equally long.

    Returns:
        The two shortened ragged tensors.

    Raises:
        tf.errors.InvalidArgumentError: a text that must not be shortened is longer than `budget`.

    References:
        `_truncate_seq_pair` in google-research/bert `create_pretraining_data.py`; `truncate_encodings` in
        huggingface/tokenizers `utils/truncation.rs`.
    """
    first_length = tf.cast(first_ids.row_lengths(), tf.int32)  # [B]
    second_length = tf.cast(second_ids.row_lengths(), tf.int32)  # [B]
    if truncation == "longest_first":
        first_kept, second_kept = _longest_first(first_length, second_length, budget, reference)
    elif truncation == "only_first":
        first_kept, second_kept = _rest(second_length, budget, "only_first"), second_length
    else:
        first_kept, second_kept = first_length, _rest(first_length, budget, "only_second")
    return [keep(first_ids, first_kept, side), keep(second_ids, second_kept, side)]


def _longest_first(
    first_length: tf.Tensor, second_length: tf.Tensor, budget: int, reference: str
) -> tuple[tf.Tensor, tf.Tensor]:
    """The number of tokens to keep of each text, int32 `(batch,)` each."""
    half = budget // 2
    first_is_longer = first_length > second_length
    if reference == "google":
        first_half = tf.fill(tf.shape(first_length), budget - half)
    else:
        first_half = tf.where(first_is_longer, budget - half, half)
    # The shorter text is not truncated as long as the longer one keeps at least as many tokens.
    first_kept = tf.maximum(first_half, budget - second_length)
    second_kept = tf.maximum(budget - first_half, budget - first_length)
    return tf.minimum(first_length, first_kept), tf.minimum(second_length, second_kept)


def _rest(whole_length: tf.Tensor, budget: int, truncation: str) -> tf.Tensor:
    """What is left of the budget after the text that is not truncated."""
    other = "second" if truncation == "only_first" else "first"
    check = tf.debugging.assert_less_equal(
        whole_length,
        budget,
        message=f'`BertPreprocessor`: under truncation="{truncation}" the {other} text must fit into max_length on its '
        f"own, that is, have at most {budget} tokens. Shorten it, raise max_length, or "
        'use truncation="longest_first".',
    )
    with tf.control_dependencies([] if check is None else [check]):
        return budget - whole_length


def keep(ids: tf.RaggedTensor, kept: tf.Tensor | int, side: str) -> tf.RaggedTensor:
    """The first `kept` tokens of each row, or with side `"left"` the last; shorter rows do not change."""
    starts = tf.cast(ids.row_starts(), tf.int32)
    lengths = tf.cast(ids.row_lengths(), tf.int32)
    kept = tf.minimum(lengths, kept)
    starts += lengths - kept if side == "left" else 0
    return tf.gather(ids.flat_values, tf.ragged.range(starts, starts + kept))
