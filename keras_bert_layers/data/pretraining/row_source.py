"""`RowSource`: the protocol of what gives rows to pretrain on."""

from __future__ import annotations

import itertools
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
    """The protocol of `TextCorpus` and `TokenShards`: rows of token ids, epoch by epoch, in a fixed order.

    A source may have two more methods, which training then uses in place of `dataset`, as they cost less:
    `records(epoch)`, the same rows in another form, and `rows_of_records(records)`, which makes rows of a batch of
    records, with ragged sequences `(batch, tokens)`.
    """

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

    def dataset(self, epoch: int) -> Any:
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


def records_of_blocks(blocks: Callable[[int], Blocks], rule: RowRule, epoch: Any) -> tf.data.Dataset:
    """The rows of an epoch as `rows_of_bytes` takes them: like those of `RowSource.dataset`, with sequences as strings.

    Args:
        blocks: returns rows and their numbers, int64 `(rows,)`, block by block, for an epoch.
        rule: what made the rows.
        epoch: an integer of at least 0, or an int64 scalar tensor.
    """
    names = (*SEQUENCES, "row", *(("label",) if rule.has_labels else ()))
    dtypes = (*[tf.string] * len(SEQUENCES), tf.int64, tf.int32)
    signature = {name: tf.TensorSpec([None], dtype) for name, dtype in zip(names, dtypes, strict=False)}
    in_bytes = partial(_blocks_in_bytes, blocks, names)
    made = tf.data.Dataset.from_generator(in_bytes, output_signature=signature, args=(epoch,))
    return made.prefetch(1).flat_map(tf.data.Dataset.from_tensor_slices)


# Not inside of `records_of_blocks`: AutoGraph warns of a function that holds a generator.
def _blocks_in_bytes(blocks: Callable[[int], Blocks], names: tuple[str, ...], epoch: int) -> Iterator[dict[str, Any]]:
    for rows, numbers in blocks(int(epoch)):
        contents = [array.astype("<i4").tobytes() for array in (rows.token_ids, rows.segment_ids, rows.text_numbers)]
        bounds = list(itertools.pairwise((4 * rows.bounds).tolist()))
        sequences = [np.array([content[start:end] for start, end in bounds], object) for content in contents]
        yield dict(zip(names, (*sequences, numbers, rows.labels), strict=False))


def rows_of_bytes(records: dict[str, Any]) -> dict[str, Any]:
    """A row of `records_of_blocks`; of a batch of them the rows, with ragged sequences."""

    def sequence(content: tf.Tensor) -> Any:
        values = tf.io.decode_raw(tf.strings.reduce_join(content), tf.int32)
        if content.shape.rank == 0:
            return values
        return tf.RaggedTensor.from_row_lengths(values, tf.strings.length(content) // 4, validate=False)

    return {name: sequence(value) if name in SEQUENCES else value for name, value in records.items()}
