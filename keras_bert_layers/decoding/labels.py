"""Decodes the logits of classes and of choices to labels and probabilities."""

from __future__ import annotations

from collections.abc import Sequence

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Tensor


def decode_labels(logits: Tensor, class_names: Sequence[str]) -> dict[str, tf.Tensor]:
    """The most probable class of each row, and the probabilities of all classes.

    Args:
        logits: float `(batch, classes)`.
        class_names: one name for each class, in the order of the columns.

    Returns:
        `"label"`: string `(batch,)`; `"probabilities"`: float32 `(batch, classes)`, rows that sum to 1.

    Raises:
        ValueError: the number of names is not that of the classes.

    Examples:
        >>> answer = decode_labels([[0.0, 2.0]], ["bad", "good"])
        >>> answer["label"].numpy().tolist()
        [b'good']
    """
    logits = _checked("decode_labels", logits, class_names)
    return {
        "label": tf.gather(tf.constant(list(class_names)), tf.argmax(logits, axis=-1)),
        "probabilities": tf.nn.softmax(logits, axis=-1),
    }


def decode_label_sets(
    logits: Tensor, class_names: Sequence[str], *, threshold: float | Sequence[float] = 0.5
) -> dict[str, tf.Tensor]:
    """All classes of each row with a probability above a threshold, and the probabilities of all classes.

    Args:
        logits: float `(batch, classes)`.
        class_names: one name for each class, in the order of the columns.
        threshold: a class is a label of the row if its probability is greater; one number, or one for each class.

    Returns:
        `"label"`: string `(batch, labels)`, the most probable first, padded with `""` to the row with the most labels,
        and without columns if there are no labels; `"probabilities"`: float32 `(batch, classes)`, each between 0 and 1
        on its own.

    Raises:
        ValueError: the number of names is not that of the classes.

    Examples:
        >>> answer = decode_label_sets([[1.0, 2.0], [3.0, -1.0]], ["funny", "sad"])
        >>> answer["label"].numpy().tolist()
        [[b'sad', b'funny'], [b'funny', b'']]
    """
    probabilities = tf.sigmoid(_checked("decode_label_sets", logits, class_names))
    order = tf.math.top_k(probabilities, k=len(class_names)).indices  # [B, C]
    chosen = tf.gather(probabilities > threshold, order, batch_dims=1)
    names = tf.where(chosen, tf.gather(tf.constant(list(class_names)), order), "")
    widest = tf.reduce_sum(tf.cast(tf.reduce_any(chosen, axis=0), tf.int32))
    return {"label": names[:, :widest], "probabilities": probabilities}


def _checked(owner: str, logits: Tensor, class_names: Sequence[str]) -> tf.Tensor:
    """The logits in float32; ValueError unless there is one name for each column."""
    logits = tf.cast(logits, tf.float32)
    if logits.shape[-1] is not None:
        rule, unit = f"have one name for each of the {logits.shape[-1]} classes", f"names, {list(class_names)}"
        checks.length(owner, "class_names", class_names, logits.shape[-1], rule=rule, unit=unit)
    return logits


def decode_choices(logits: Tensor, choices: Tensor) -> dict[str, tf.Tensor]:
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
