"""`RowSource`: the protocol of what gives rows to pretrain on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.rows.token_rows import RowRule, TokenRows
from keras_bert_layers.preprocessing.tokenizer import Tokenizer

SEQUENCES = ("token_ids", "segment_ids", "padding_mask")
Blocks = Iterable[tuple[TokenRows, np.ndarray]]


@runtime_checkable
class RowSource(Protocol):
    """The protocol of `TextCorpus` and `TokenShards`: rows of token ids, epoch by epoch, in a fixed order."""

    #: Makes rows of documents.
    rule: RowRule
    #: Made ids of text.
    tokenizer: Tokenizer
    #: The largest number of tokens in a row, special tokens included.
    max_length: int
    #: Determines all random choices.
    seed: int
    #: The number of epochs whose rows differ, after which they repeat; None if every epoch draws new ones.
    num_duplicates: int | None
    #: Whether rows that repeat have the same masks again.
    static_masks: bool
    #: The number of rows in each of these epochs; None if it is not known.
    num_rows: tuple[int, ...] | None

    def dataset(self, epoch: Any) -> Any:
        """The rows of an epoch.

        Args:
            epoch: an integer of at least 0, or an int64 scalar tensor.

        Returns:
            A `tf.data.Dataset` of single rows, dictionaries with `"token_ids"`, `"segment_ids"` and `"padding_mask"`,
            int32 `(tokens,)`, special tokens included; `"label"`, an int32 scalar, where the rule has labels; and
            `"row"`, an int64 scalar, a number that no other row of the epoch has. The mask is 1; in a packed row, which
            holds several texts, it is the number of the text.
        """
        ...


def rows_of_blocks(blocks: Callable[[int], Blocks], rule: RowRule, epoch: Any) -> tf.data.Dataset:
    """The rows of an epoch, as `RowSource.dataset` gives them.

    Args:
        blocks: returns rows and their numbers, int64 `(rows,)`, block by block, for an epoch.
        rule: what made the rows.
        epoch: an integer of at least 0, or an int64 scalar tensor.
    """
    names = (*SEQUENCES, "bounds", "row", *(("label",) if rule.has_labels else ()))
    dtypes = tf.int32, tf.int8, tf.int32, tf.int64, tf.int64, tf.int32
    signature = {name: tf.TensorSpec([None], dtype) for name, dtype in zip(names, dtypes, strict=False)}

    flat = partial(_flat_blocks, blocks, names)
    made = tf.data.Dataset.from_generator(flat, output_signature=signature, args=(epoch,))
    return made.prefetch(1).flat_map(_rows_of_block)


# Not inside of `rows_of_blocks`: AutoGraph warns of a function that holds a generator.
def _flat_blocks(blocks: Callable[[int], Blocks], names: tuple[str, ...], epoch: Any) -> Iterator[dict[str, Any]]:
    for rows, numbers in blocks(int(epoch)):
        values = rows.token_ids, rows.segment_ids, rows.text_numbers, rows.bounds, numbers, rows.labels
        yield dict(zip(names, values, strict=False))


def _rows_of_block(flat: dict[str, tf.Tensor]) -> tf.data.Dataset:
    bounds = flat["bounds"]

    def row(index: tf.Tensor) -> dict[str, tf.Tensor]:
        start = bounds[index : index + 1]
        length = bounds[index + 1 : index + 2] - start
        found = {name: tf.cast(tf.slice(flat[name], start, length), tf.int32) for name in SEQUENCES}
        return found | {name: flat[name][index] for name in ("row", "label") if name in flat}

    return tf.data.Dataset.range(tf.size(bounds, tf.int64) - 1).map(row)
