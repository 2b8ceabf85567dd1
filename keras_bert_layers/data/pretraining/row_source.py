"""`RowSource`: where rows to pretrain on come from."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from keras_bert_layers.preprocessing._text_layer import Tokenizer
from keras_bert_layers.preprocessing.row_rule import RowRule


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
