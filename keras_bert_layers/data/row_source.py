"""`RowSource`: rows to pretrain on that need not fit into memory."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from keras_bert_layers.preprocessing._text_layer import Tokenizer
from keras_bert_layers.preprocessing.row_rule import RowRule


@runtime_checkable
class RowSource(Protocol):
    """What `BertPretrainer.fit` and `BertMaskedLM.fit` take beside texts in memory: rows, epoch by epoch.

    `TextCorpus` and `TokenShards` are two of them; an object of yours with these attributes is another.
    """

    #: Made the rows.
    rule: RowRule
    #: Made the ids.
    tokenizer: Tokenizer
    #: The largest number of tokens in a row.
    max_length: int
    #: How many rows every epoch has at least; None if this is not known.
    num_rows: int | None

    def dataset(self, epoch: Any) -> Any:
        """The rows of an epoch, in the same order each time.

        Args:
            epoch: an int from 0 on, or an int64 scalar tensor.

        Returns:
            A `tf.data.Dataset` of single rows, each a dictionary: int32 `(tokens,)` `"token_ids"`, `"segment_ids"` and
            `"padding_mask"`, which holds the number of the text in its row, from 1 on; int64 scalar `"row"`, which no
            other row of the epoch has; and if the rule has labels, int32 scalar `"label"`.
        """
        ...
