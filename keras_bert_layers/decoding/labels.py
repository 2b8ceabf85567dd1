"""From a classifier's logits to names and probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_bert_layers._internal.lazy import tf


def decode_labels(logits: Any, class_names: Sequence[str]) -> dict[str, tf.Tensor]:
    """The most probable class of each row, and the probabilities of all.

    Args:
        logits: float `(batch, classes)`.
        class_names: one name a class, in the order of the columns.

    Returns:
        `"label"`: string `(batch,)`; `"probabilities"`: float32 `(batch, classes)`, rows that sum to 1.

    Raises:
        ValueError: as many names as classes are not given.

    Examples:
        >>> answer = decode_labels([[0.0, 2.0]], ["bad", "good"])
        >>> answer["label"].numpy().tolist()
        [b'good']
    """
    logits = tf.cast(logits, tf.float32)
    if logits.shape[-1] is not None and logits.shape[-1] != len(class_names):
        raise ValueError(
            f"`decode_labels`: `class_names` must have one name for each of the {logits.shape[-1]} classes. "
            f"Received: {len(class_names)} names, {list(class_names)}."
        )
    return {
        "label": tf.gather(tf.constant(list(class_names)), tf.argmax(logits, axis=-1)),
        "probabilities": tf.nn.softmax(logits, axis=-1),
    }
