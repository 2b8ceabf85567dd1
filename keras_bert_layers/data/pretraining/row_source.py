"""`RowSource`: where rows to pretrain on come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.rows.token_rows import RowRule, TokenRows
from keras_bert_layers.preprocessing.tokenizer import Tokenizer


@runtime_checkable
class RowSource(Protocol):
    """What `TextCorpus` and `TokenShards` have in common: rows of token ids, epoch by epoch, in a fixed order."""

    #: What makes rows of documents.
    rule: RowRule
    #: What made ids of text.
    tokenizer: Tokenizer
    #: The largest number of tokens in a row, special tokens included.
    max_length: int
    #: What all that is random follows from.
    seed: int
    #: The number of epochs with other rows, after which they come again; None if every epoch draws anew.
    num_duplicates: int | None
    #: Whether the masks of rows come again with them.
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
            `"row"`, an int64 scalar, a number that no other row of the epoch has. The mask is 1, and where texts are
            packed the number of the text in its row.
        """
        ...


Blocks = Iterable[tuple[TokenRows, np.ndarray]]


def rows_of_blocks(blocks: Callable[[int], Blocks], rule: RowRule, epoch: Any) -> tf.data.Dataset:
    """The rows of an epoch, as `RowSource.dataset` gives them.

    Args:
        blocks: from the epoch to rows and their numbers, int64 `(rows,)`, block by block.
        rule: what made the rows.
        epoch: an integer of at least 0, or an int64 scalar tensor.
    """
    flat = {"ids": tf.int32, "segments": tf.int8, "texts": tf.int32, "bounds": tf.int64, "rows": tf.int64}
    if rule.has_labels:
        flat["labels"] = tf.int32
    signature = {name: tf.TensorSpec([None], dtype) for name, dtype in flat.items()}

    def flat_blocks(epoch: Any) -> Iterator[dict[str, np.ndarray]]:
        for rows, numbers in blocks(int(epoch)):
            flat = {"ids": rows.token_ids, "segments": rows.segment_ids, "texts": rows.text_numbers}
            flat |= {"bounds": rows.bounds, "rows": numbers}
            yield flat if rows.labels is None else {**flat, "labels": rows.labels}

    made = tf.data.Dataset.from_generator(flat_blocks, output_signature=signature, args=(epoch,))
    return made.prefetch(1).flat_map(_rows_of_block)


def _rows_of_block(flat: dict[str, tf.Tensor]) -> tf.data.Dataset:
    bounds = flat["bounds"]

    def row(index: tf.Tensor) -> dict[str, tf.Tensor]:
        start = bounds[index : index + 1]
        length = bounds[index + 1 : index + 2] - start
        found = {
            "token_ids": tf.slice(flat["ids"], start, length),
            "segment_ids": tf.cast(tf.slice(flat["segments"], start, length), tf.int32),
            "padding_mask": tf.slice(flat["texts"], start, length),
            "row": flat["rows"][index],
        }
        return found if "labels" not in flat else {**found, "label": flat["labels"][index]}

    return tf.data.Dataset.range(tf.size(bounds, tf.int64) - 1).map(row)
