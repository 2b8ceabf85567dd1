"""Finds `[MASK]` tokens, and decodes the logits of a masked language model to tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Tensor


def find_masks(token_ids: Tensor, mask_id: int) -> tuple[tf.Tensor, tf.Tensor]:
    """The positions of `[MASK]` in each row.

    Args:
        token_ids: int `(batch, sequence)`.
        mask_id: the id of `[MASK]`.

    Returns:
        Positions, int32 `(batch, masks)`, ascending, 0 after a row's last mask; and the number of masks in each row,
        int32 `(batch,)`. The number of columns is that of the row with the most masks.

    Examples:
        >>> positions, counts = find_masks([[2, 9, 4, 9], [2, 4, 4, 4]], mask_id=9)
        >>> positions.numpy().tolist(), counts.numpy().tolist()
        ([[1, 3], [0, 0]], [2, 0])
    """
    is_mask = tf.convert_to_tensor(token_ids) == mask_id
    counts = tf.reduce_sum(tf.cast(is_mask, tf.int32), axis=-1)  # [B]
    num_masks = tf.maximum(tf.reduce_max(counts), 0)  # without rows, the maximum is the smallest integer
    # A stable sort moves the masks to the front and keeps their order.
    positions = tf.argsort(tf.cast(~is_mask, tf.int32), axis=-1, stable=True)[:, :num_masks]  # [B, M]
    return positions * tf.sequence_mask(counts, num_masks, dtype=tf.int32), counts


def decode_masks(
    logits: Tensor, columns: Any, vocabulary: Sequence[str], *, num_columns: Any, top_k: int
) -> dict[str, tf.Tensor]:
    """The most probable tokens for each mask, best first.

    Args:
        logits: float `(batch, masks, vocabulary_size)`; columns after the last token are ignored.
        columns: int32 `(batch, masks)`, the column of the answer for each mask; -1 for padding.
        vocabulary: the tokens, as they shall be shown.
        num_columns: the number of columns of the answer.
        top_k: the number of tokens for each mask.

    Returns:
        `"token"`: string `(batch, num_columns, top_k)`, as in `vocabulary`;
        `"probability"`: float32 of that shape. Columns without a mask contain `""` and -1.

    Examples:
        >>> answer = decode_masks([[[0.0, 3.0, 1.0]]], [[0]], ["it", "rains", "snows"], num_columns=2, top_k=2)
        >>> answer["token"].numpy().tolist()
        [[[b'rains', b'snows'], [b'', b'']]]
    """
    logits, columns = tf.cast(logits, tf.float32), tf.convert_to_tensor(columns)
    num_rows, num_tokens = tf.shape(logits)[0], len(vocabulary)
    is_mask = columns >= 0
    row = tf.broadcast_to(tf.range(num_rows)[:, None], tf.shape(columns))
    indices = tf.stack([tf.boolean_mask(row, is_mask), tf.boolean_mask(columns, is_mask)], axis=-1)
    logits = tf.boolean_mask(logits, is_mask)[:, :num_tokens]  # [masks of all rows, V]
    best, ids = tf.math.top_k(logits, top_k)
    probability = tf.exp(best - tf.reduce_logsumexp(logits, axis=-1, keepdims=True))
    empty = tf.fill([num_rows, num_columns, top_k], tf.constant(num_tokens))
    ids = tf.tensor_scatter_nd_update(empty, indices, ids)
    return {
        "token": tf.gather(tf.constant([*vocabulary, ""]), ids),
        "probability": tf.tensor_scatter_nd_update(tf.cast(tf.ones_like(empty), tf.float32) * -1, indices, probability),
    }
