"""Decodes the logits of choices."""

from __future__ import annotations

from typing import Any

from keras_bert_layers._internal.lazy import tf


def decode_choices(logits: Any, choices: Any) -> dict[str, tf.Tensor]:
    """The most probable choice of each row, and the probabilities of all choices.

    Empty strings are padding for rows with fewer choices, and are never chosen.

    Args:
        logits: float `(batch, choices)`.
        choices: string `(batch, choices)`.

    Returns:
        `"choice"`: string `(batch,)`; `"choice_index"`: int32 `(batch,)`, its column; `"probabilities"`: float32
        `(batch, choices)`, rows that sum to 1, with 0 for padding. A row without any choice gives `""`, -1 and zeros.

    Examples:
        >>> answer = decode_choices([[0.0, 2.0, 9.0]], [["a boat", "a bridge", ""]])
        >>> answer["choice"].numpy().tolist(), answer["choice_index"].numpy().tolist()
        ([b'a bridge'], [1])
    """
    logits, choices = tf.cast(logits, tf.float32), tf.convert_to_tensor(choices, tf.string)
    present = tf.not_equal(choices, "")  # [B, choices]
    logits = tf.where(present, logits, logits.dtype.min)
    # One more column, which is chosen only if there is no other.
    one_column = [tf.shape(choices)[0], 1]
    candidates = tf.concat([choices, tf.fill(one_column, "")], axis=1)
    best = tf.argmax(tf.concat([logits, tf.fill(one_column, logits.dtype.min)], axis=1), 1, output_type=tf.int32)
    return {
        "choice": tf.gather(candidates, best, batch_dims=1),
        "choice_index": tf.where(tf.reduce_any(present, axis=-1), best, -1),
        "probabilities": tf.where(present, tf.nn.softmax(logits, axis=-1), 0.0),
    }
