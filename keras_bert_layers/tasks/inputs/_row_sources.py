"""Masked batches of the rows of a `RowSource`."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.data.pretraining.row_source import RowSource
from keras_bert_layers.preprocessing._random_numbers import mask_seeds
from keras_bert_layers.tasks.inputs._epochs import Epochs, of_length
from keras_bert_layers.tasks.inputs._row_order import RowOrder

# Rows of neighbouring blocks; those of a block are shuffled when they are made.
SHUFFLED_ROWS = 10_000
ORDER_ROW = 2**62  # no row of a source has this number


def check_source(data: Any, source: RowSource, *, has_labels: bool) -> None:
    """Refuses rows that were made for another task, or by another tokenizer; ValueError."""
    if source.rule.has_labels != has_labels:
        rule = "hold pairs of texts" if has_labels else "hold rows without labels"
        cure = "`NextSentence` and `SentenceOrder` make pairs, for `BertPretrainer`. Other rows are for `BertMaskedLM`."
        raise ValueError(checks.message(data.owner, "x", rule, source.rule, cure))
    if source.tokenizer.get_config() != data.preprocessor.tokenizer.get_config():
        cure = "Make the rows with the tokenizer of the task's preprocessor."
        rule = "hold ids of the task's own tokenizer"
        raise ValueError(checks.message(data.owner, "x", rule, source.tokenizer, cure))


def masked_batches(data: Any, source: RowSource, batch_size: int | None, epochs: Epochs | None) -> tf.data.Dataset:
    """Batches with masks that follow from a seed, the epoch and a row's number alone.

    Args:
        data: the task's `MaskedInputs`.
        source: where the rows are from.
        batch_size: rows a batch, 32 if None.
        epochs: the epochs of training; None for evaluation, which reads epoch 0 in its order.
    """
    size = 32 if batch_size is None else checks.positive_integer(data.owner, "batch_size", batch_size)
    if epochs is None:
        zero = tf.constant(0, tf.int64)
        return _counted(_of_epoch(data, source, size, zero + (data.masking.seed or 0), zero), source, size, None)
    if source.num_rows is None and not epochs.are_endless:
        cure = "The number of rows of this source is not known before an epoch ends. `TokenShards` know theirs."
        raise ValueError(checks.message(data.owner, "steps_per_epoch", "be given", None, cure))
    if epochs.order is RowOrder.BY_LENGTH:
        rule, cure = (
            "be False where rows are made of documents",
            "Their rule made them about as long as `max_length` allows.",
        )
        raise ValueError(checks.message(data.owner, "group_by_length", rule, True, cure))
    shuffle = epochs.order is RowOrder.SHUFFLED

    def of_epoch(seed: Any, epoch: Any) -> tf.data.Dataset:
        return _of_epoch(data, source, size, seed, epoch, shuffle=shuffle)

    return _counted(epochs.seeded(data.masking.seed).numbered(of_epoch), source, size, epochs)


def _counted(dataset: tf.data.Dataset, source: RowSource, batch_size: int, epochs: Epochs | None) -> tf.data.Dataset:
    if source.num_rows is None:
        return dataset
    return of_length(dataset, -(-min(source.num_rows) // batch_size), epochs)


def _of_epoch(
    data: Any, source: RowSource, batch_size: int, seed: Any, epoch: Any, *, shuffle: bool = False
) -> tf.data.Dataset:
    rows = source.dataset(epoch)
    if source.num_rows is not None:
        rows = rows.take(min(source.num_rows))  # Keras wants equally many steps in each epoch
    if shuffle:
        order = mask_seeds(seed, epoch, tf.constant([ORDER_ROW], tf.int64))[0]
        rows = rows.shuffle(SHUFFLED_ROWS, seed=order, reshuffle_each_iteration=False)
    # JAX compiles each length, and packed rows are full.
    is_full = source.rule.is_packed or keras.backend.backend() == "jax" or data.preprocessor.padding != "longest"
    width = source.max_length if is_full else None
    shapes = {name: [] if name in ("row", "label") else [width] for name in rows.element_spec}
    pad_id = tf.constant(data.preprocessor.tokenizer.pad_id, tf.int32)
    padding = {name: pad_id if name == "token_ids" else None for name in shapes}

    masks_epoch = epoch % source.num_duplicates if source.static_masks else epoch

    def masked(batch: dict[str, Any]) -> tuple[Any, ...]:
        numbers, labels = batch.pop("row"), batch.pop("label", None)
        return data.with_labels(data.generator(batch, seed=mask_seeds(seed, masks_epoch, numbers)), labels, None)

    return rows.padded_batch(batch_size, shapes, padding).map(masked, num_parallel_calls=tf.data.AUTOTUNE)
