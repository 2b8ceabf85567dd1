"""`TextCorpus`: rows to pretrain on, made from files of text while a model trains."""

from __future__ import annotations

import dataclasses
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.data.pretraining.document_files import Block, DocumentFiles
from keras_bert_layers.data.pretraining.row_source import records_of_blocks, rows_of_bytes
from keras_bert_layers.preprocessing.rows.token_documents import TokenDocuments
from keras_bert_layers.preprocessing.rows.token_rows import RowRule, TokenRows
from keras_bert_layers.preprocessing.tokenizer import Tokenizer, check_is_tokenizer

Item = TypeVar("Item")
Result = TypeVar("Result")

OWNER = "TextCorpus"
# Of the number of a row, the bits that count the rows of one block.
ROW_BITS = 28
LARGEST_SEED = 2**63 - 1


def in_order(function: Callable[[Item], Result], items: Iterable[Item], *, num_threads: int) -> Iterator[Result]:
    """Maps a function over items with threads, and yields the results in order.

    Args:
        function: should spend its time in code that does not hold Python's lock.
        items: they are read one by one, in the caller's thread, and at most `num_threads + 1` ahead.
        num_threads: the number of threads.
    """
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(num_threads)
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > num_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _Tokens(NamedTuple):
    """A block as ids."""

    number: int
    documents: TokenDocuments


class TextCorpus:
    r"""Makes rows to pretrain on from text files, new ones in every epoch, in memory that does not grow with the files.

    Documents are read in blocks, and a block's rows depend on the seed, the epoch and the block's number alone. They
    are in random order. So are the units of the files, from which blocks are read (see `DocumentFiles`). Threads
    tokenize blocks while the model trains on the rows.

    Every epoch reads and tokenizes the files again. `write_shards` writes the same rows to files.

    Args:
        documents: where the documents are.
        tokenizer: makes ids of text.
        rule: makes rows of documents, such as `preprocessing.NextSentence()`.
        max_length: the largest number of tokens in a row, special tokens included.
        seed: the same seed gives the same rows; from 0 to 2**63 - 1.

    Attributes:
        num_duplicates: None: no epoch repeats the rows of another.
        num_rows: None: the number is not known before the rows are made.

    Raises:
        TypeError, ValueError: an argument that is not valid.

    Examples:
        >>> import keras_bert_layers as kbl, pathlib, tempfile
        >>> from keras_bert_layers.preprocessing import FullSentences
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "corpus.txt").write_text("It rains\nWe stay\n\nIt rains\n")
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "it", "rains", "we", "stay"])
        >>> files = kbl.data.DocumentFiles(folder / "corpus.txt", separated_by="blank_lines")
        >>> corpus = TextCorpus(files, tokenizer, rule=FullSentences(), max_length=12)
        >>> [row["token_ids"].numpy().tolist() for row in corpus.dataset(epoch=0)]
        [[2, 4, 5, 6, 7, 3, 4, 5, 3]]

    References:
        Random numbers from counters instead of a running generator: Salmon et al. 2011,
        https://doi.org/10.1145/2063384.2063405.
    """

    num_duplicates = None
    num_rows = None
    static_masks = False

    def __init__(
        self,
        documents: DocumentFiles,
        tokenizer: Tokenizer,
        *,
        rule: RowRule,
        max_length: int = 128,
        seed: int = 0,
    ):
        cure = "Make one with `DocumentFiles(files)`."
        self.documents = checks.instance(OWNER, "documents", documents, DocumentFiles, cure)
        check_is_tokenizer(OWNER, tokenizer)
        self.tokenizer = tokenizer
        self.rule = _checked_rule(rule)
        self.max_length = checks.positive_integer(OWNER, "max_length", max_length)
        self.seed = checks.whole_number(OWNER, "seed", seed)
        if seed > LARGEST_SEED:
            raise ValueError(checks.message(OWNER, "seed", "be at most 2**63 - 1", seed))

    def dataset(self, epoch: int) -> tf.data.Dataset:
        """The rows of an epoch.

        Args:
            epoch: an integer of at least 0, or an int64 scalar tensor.

        Returns:
            A `tf.data.Dataset` of single rows, as of `RowSource.dataset`: dictionaries with `"token_ids"`,
            `"segment_ids"` and `"padding_mask"`, int32 `(tokens,)`; `"label"`, an int32 scalar, where the rule has
            labels; and `"row"`, an int64 scalar.

        Raises:
            ValueError: when the rows are taken, a document that cannot be used; TensorFlow shows it as its own error.
        """
        return self.records(epoch).map(rows_of_bytes)

    def records(self, epoch: int) -> tf.data.Dataset:
        """The rows of `dataset` in bytes; `rows_of_records` takes one or a batch of them."""
        return records_of_blocks(self._blocks, self.rule, epoch)

    rows_of_records = staticmethod(rows_of_bytes)

    def tokens(self, block: Block) -> _Tokens:
        """The documents of a block as ids."""
        return _Tokens(block.number, TokenDocuments.from_text(block.documents, self.tokenizer, owner=OWNER))

    def rows(self, block: _Tokens, epoch: int) -> tuple[TokenRows, np.ndarray]:
        """The rows of a block in an epoch, and their numbers, int64 `(rows,)`."""
        sequence = np.random.SeedSequence([self.seed, epoch, block.number])
        seed = int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))
        ids, segments, bounds = np.zeros(0, np.int32), np.zeros(0, np.int8), np.zeros(1, np.int64)
        rows = TokenRows(ids, segments, ids, bounds, ids if self.rule.has_labels else None)
        if len(block.documents):
            rows = self.rule.rows(block.documents, self.tokenizer, max_length=self.max_length, seed=seed)
            rows = rows.take(_shuffled(len(rows), sequence.spawn(1)[0]))
        if len(rows) >> ROW_BITS:
            rule, cure = (
                f"a block must have less than 2**{ROW_BITS} rows",
                "Pass a smaller `block_bytes` to `DocumentFiles`.",
            )
            raise ValueError(checks.row_message(OWNER, rule, str(len(rows)), cure))
        return rows, (block.number << ROW_BITS) + np.arange(len(rows), dtype=np.int64)

    def _blocks(self, epoch: int) -> Iterator[tuple[TokenRows, np.ndarray]]:
        order = unit_order(self.seed, epoch, self.documents.num_units)
        blocks = (block for unit in order for block in self.documents.blocks(int(unit)))
        return in_order(lambda block: self.rows(self.tokens(block), epoch), blocks, num_threads=num_threads())


def _checked_rule(rule: Any) -> RowRule:
    if isinstance(rule, type) or not (dataclasses.is_dataclass(rule) and hasattr(rule, "rows")):
        raise TypeError(checks.message(OWNER, "rule", "be a rule such as `preprocessing.NextSentence()`", rule))
    return rule  # type: ignore[return-value]


def unit_order(seed: int, epoch: int, num_units: int) -> np.ndarray:
    """The order in which the units of the files are read in an epoch, int64 `(units,)`."""
    return _shuffled(num_units, np.random.SeedSequence([seed, epoch]))


def num_threads() -> int:
    """How many blocks are processed at the same time: one per core, and at most 4, to save memory."""
    return min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def _shuffled(count: int, sequence: np.random.SeedSequence) -> np.ndarray:
    """The numbers below `count` in random order.

    NumPy keeps the numbers of its bit generators the same between versions, but not those that are made of them.
    """
    return np.argsort(np.random.PCG64(sequence).random_raw(count), kind="stable")
