"""Pretraining rows of two segments: `NextSentence`, `SentenceOrder`, and `SentencePairs` without special tokens."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.rows.token_documents import TokenDocuments
from keras_bert_layers.preprocessing.rows.token_rows import TokenRows, framed
from keras_bert_layers.preprocessing.tokenizer import Tokenizer

NUM_SPECIAL_TOKENS = 3  # [CLS] first [SEP] second [SEP]

Tokens = tuple[int, int]  # first, and end
#: First token and end of both segments, and the label.
Pair: TypeAlias = tuple[int, ...]


class Segments:
    """Documents of sentences, from which pairs of segments are drawn.

    Documents are split into chunks of sentences that just fill a row. In a share of the documents the rows are shorter,
    with a random length.

    Args:
        documents: what to split; its tokens stay where they are.
        max_length: the largest number of tokens in a row, special tokens included.
        short_rate: the share of documents with shorter rows.
    """

    def __init__(self, documents: TokenDocuments, *, max_length: int, short_rate: float):
        self.bounds = documents.sentence_bounds.tolist()
        self.starts = documents.document_bounds.tolist()
        self._budget = max_length - NUM_SPECIAL_TOKENS
        self._short_rate = short_rate

    def draw(self, seed: int, pairs_in: Callable[[Segments, int, int, random.Random], Iterator[Pair]]) -> np.ndarray:
        """The pairs of all documents, int64 `(pairs, 5)`: first token and end of both segments, and the label.

        Args:
            seed: the same seed gives the same pairs.
            pairs_in: from these segments, the index of a document, the number of tokens that its chunks aim at, and a
                generator to the document's pairs.
        """
        generator = random.Random(seed)
        pairs: list[Pair] = []
        for document in range(len(self.starts) - 1):
            is_short = generator.random() < self._short_rate
            target = generator.randint(2, self._budget) if is_short else self._budget
            pairs.extend(pairs_in(self, document, target, generator))
        return np.array(pairs, np.int64).reshape(-1, 5)

    def tokens(self, start: int, end: int) -> Tokens:
        """The tokens of a run of sentences."""
        return self.bounds[start], self.bounds[end]

    def filled(self, start: int, stop: int, num_tokens: int) -> int:
        """The end of a run of sentences: `num_tokens` tokens or more, or all up to `stop`; never empty."""
        return bisect_left(self.bounds, self.bounds[start] + num_tokens, start + 1, stop)

    def random_segment(self, document: int, num_tokens: int, generator: random.Random) -> tuple[int, int]:
        """Sentences of another document, from a random position."""
        num_others = len(self.starts) - 2
        if num_others:
            other = generator.randrange(num_others)
            document = other + (other >= document)
        stop = self.starts[document + 1]
        start = generator.randrange(self.starts[document], stop)
        return start, self.filled(start, stop, num_tokens)

    def fitting(self, first: Tokens, second: Tokens, generator: random.Random) -> Pair:
        """The tokens of two segments, shortened until they fit."""
        bounds = [*first, *second]
        sizes = first[1] - first[0], second[1] - second[0]
        for side, kept in enumerate(kept_lengths(*sizes, self._budget)):
            num_cut = sizes[side] - kept
            # Each token is cut at the front with probability 1/2: count the ones in random bits.
            num_front = generator.getrandbits(num_cut).bit_count() if num_cut else 0
            bounds[2 * side] += num_front
            bounds[2 * side + 1] -= num_cut - num_front
        return tuple(bounds)


def kept_lengths(first_length: int, second_length: int, budget: int) -> tuple[int, int]:
    """The lengths that remain if the longer segment, or the second at equal lengths, loses tokens one by one."""
    half = budget // 2
    first_kept = max(budget - half, budget - second_length)
    second_kept = max(half, budget - first_length)
    return min(first_length, first_kept), min(second_length, second_kept)


class _PairRows:
    """Rows `[CLS] first [SEP] second [SEP]` of pairs of segments, with a label; the base of two dataclasses."""

    has_labels: ClassVar[bool] = True
    is_packed: ClassVar[bool] = False
    short_rate: float

    def __post_init__(self) -> None:
        for argument, value in vars(self).items():
            object.__setattr__(self, argument, checks.share(type(self).__name__, argument, value))

    def rows(self, documents: TokenDocuments, tokenizer: Tokenizer, *, max_length: int, seed: int) -> TokenRows:
        """Makes rows of documents, in their order; see `RowRule`. `max_length` is at least 5."""
        max_length = check_arguments(type(self).__name__, tokenizer, max_length)
        segments = Segments(documents, max_length=max_length, short_rate=self.short_rate)
        pairs = segments.draw(seed, self.pairs_in)
        return framed(
            documents.ids,
            pairs[:, [0, 2]].ravel(),
            pairs[:, [1, 3]].ravel(),
            tokenizer,
            row_bounds=np.arange(0, 2 * len(pairs) + 1, 2),
            segments=np.tile([0, 1], len(pairs)),
            labels=pairs[:, 4].astype(np.int32),
        )

    def pairs_in(self, segments: Segments, document: int, target: int, generator: random.Random) -> Iterator[Pair]:
        """The pairs whose first segment is from one document; see `Segments.draw`."""
        raise NotImplementedError


@dataclass(frozen=True)
class NextSentence(_PairRows):
    """BERT's own rows: in half of them the second text follows the first, else it is from another document.

    The pairs are those of `SentencePairs` with the same seed; it describes how they are drawn. With a single document,
    random second texts are from that document.

    Args:
        random_next_rate: probability that a chunk of two sentences or more gets a random second text, in [0, 1]. A
            chunk of one sentence always gets one.
        short_rate: the share of documents with shorter rows, in [0, 1].

    Raises:
        TypeError: an argument that is not a number.
        ValueError: an argument out of range.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "it", "rains", "we", "stay"])
        >>> documents = TokenDocuments.from_text([["It rains", "We stay"], ["We"]], tokenizer)
        >>> rows = NextSentence(random_next_rate=0).rows(documents, tokenizer, max_length=16, seed=4)
        >>> rows.take([0]).token_ids.tolist(), rows.labels.tolist()
        ([2, 4, 5, 3, 6, 7, 3], [0, 1])

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 3.1 and appendix A.1.
    """

    random_next_rate: float = 0.5
    short_rate: float = 0.1

    def pairs_in(self, segments: Segments, document: int, target: int, generator: random.Random) -> Iterator[Pair]:
        """Pairs of which the second segment follows the first (0), or is from another document (1)."""
        start, stop = segments.starts[document : document + 2]
        while start < stop:
            end = segments.filled(start, stop, target)
            border = start + (generator.randint(1, end - start - 1) if end - start > 1 else 1)
            is_random = end - start == 1 or generator.random() < self.random_next_rate
            first, second = segments.tokens(start, border), (border, end)
            if is_random:
                second = segments.random_segment(document, target - (first[1] - first[0]), generator)
            yield (*segments.fitting(first, segments.tokens(*second), generator), int(is_random))
            # The sentences that a random segment replaces begin the next chunk.
            start = border if is_random else end


@dataclass(frozen=True)
class SentenceOrder(_PairRows):
    """ALBERT's rows: two neighbouring texts of a document, in order (label 0), or in half of the rows swapped (1).

    Chunks of sentences that just fill a row are split at a random sentence, as for `NextSentence`. A chunk of one
    sentence is split inside of it; a sentence of a single token that is a chunk on its own is left out. A pair that is
    too long loses tokens of its longer text one by one, at random from the front or the back.

    Args:
        short_rate: the share of documents with shorter rows, in [0, 1].

    Raises:
        TypeError: an argument that is not a number.
        ValueError: an argument out of range.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "it", "rains", "we", "stay"])
        >>> documents = TokenDocuments.from_text([["It rains", "We stay"]], tokenizer)
        >>> [SentenceOrder().rows(documents, tokenizer, max_length=16, seed=seed).token_ids.tolist() for seed in (4, 1)]
        [[2, 4, 5, 3, 6, 7, 3], [2, 6, 7, 3, 4, 5, 3]]

    References:
        Lan et al. 2019, https://arxiv.org/abs/1909.11942, section 3.1; `create_instances_from_document` in
        google-research/albert, create_pretraining_data.py, has the same labels. It gives a chunk of one sentence a
        second text from another document, with label 1.
    """

    short_rate: float = 0.1

    def pairs_in(self, segments: Segments, document: int, target: int, generator: random.Random) -> Iterator[Pair]:
        """Pairs of neighbours, in order (0) or swapped (1)."""
        start, stop = segments.starts[document : document + 2]
        while start < stop:
            end = segments.filled(start, stop, target)
            first, last = segments.tokens(start, end)
            if last - first > 1:
                if end - start > 1:
                    border = segments.bounds[start + generator.randint(1, end - start - 1)]
                else:  # One sentence has no neighbour in its chunk, so that it is split itself.
                    border = first + generator.randint(1, last - first - 1)
                pair = (first, border), (border, last)
                is_swapped = generator.random() < 0.5
                yield (*segments.fitting(pair[is_swapped], pair[not is_swapped], generator), int(is_swapped))
            start = end


class SentencePairs:
    """Draws pairs of segments: in half of the rows the second follows the first, else it is from another document.

    Each document is split into chunks of sentences that just fill a row, and each chunk is split at a random sentence.
    The two parts make a pair, or the first part makes a pair with sentences from a random position in a random other
    document. In the second case the unused second part becomes the start of the next chunk. A chunk of one sentence
    always gets a random second segment. In one of ten documents the rows are shorter, with a random length. A pair that
    is too long loses tokens of its longer segment one by one, at random from the front or the back.

    The documents are tokenized once, and kept with 4 bytes per token. A pair is five integers, so that a whole epoch
    can be shuffled.

    Args:
        documents: sequences of sentences, which are strings. Sentences without tokens and documents without sentences
            are skipped.
        tokenizer: a `BertTokenizer`.
        max_length: the largest number of tokens in a row, special tokens included; at least 5.
        random_next_rate: probability that a chunk of two sentences or more gets a random second segment, in [0, 1].
        short_rate: the share of documents with shorter rows, in [0, 1].

    Raises:
        TypeError: a document that is not a list, or a sentence that is not a string; the message shows it.
        ValueError: an argument out of range; documents without any token.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "it", "rains", "we", "stay"])
        >>> pairs = SentencePairs([["It rains.", "We stay."], ["We rains."]], tokenizer, max_length=16)
        >>> drawn = pairs.draw(seed=4)
        >>> first, second = pairs.segments(drawn)
        >>> first[0].numpy().tolist(), second[0].numpy().tolist(), int(drawn[0, 4])
        ([4, 5, 1], [6, 7, 1], 0)

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 3.1 and appendix A.1;
        `create_instances_from_document` and `truncate_seq_pair` in google-research/bert, create_pretraining_data.py.
        With a single document, random segments are from that document, as there.
    """

    def __init__(
        self,
        documents: Sequence[Sequence[str]],
        tokenizer: Tokenizer,
        *,
        max_length: int = 128,
        random_next_rate: float = 0.5,
        short_rate: float = 0.1,
    ):
        owner = "SentencePairs"
        max_length = check_arguments(owner, tokenizer, max_length)
        self.budget = max_length - NUM_SPECIAL_TOKENS
        self.random_next_rate = checks.share(owner, "random_next_rate", random_next_rate)
        self.short_rate = checks.share(owner, "short_rate", short_rate)
        tokens = TokenDocuments.from_text(documents, tokenizer, owner=owner)
        self._ids = tokens.ids
        if not len(self._ids):
            raise ValueError(checks.message(owner, "documents", "hold at least one token", len(documents)))
        self._segments = Segments(tokens, max_length=max_length, short_rate=self.short_rate)

    def draw(self, seed: int) -> np.ndarray:
        """Draws one epoch of pairs, document by document.

        Args:
            seed: the same seed gives the same pairs.

        Returns:
            int64 `(pairs, 5)`: start and end of the first segment, as indices of the tokens of all documents; start and
            end of the second; and 0 if the second follows the first, 1 if it is random.
        """
        return self._segments.draw(seed, NextSentence(self.random_next_rate, self.short_rate).pairs_in)

    def segments(self, pairs: Any) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Looks up the tokens of pairs, in graph.

        Args:
            pairs: rows from `draw`, int64 `(pairs, 5)`.

        Returns:
            First and second segments, each ragged int32 `(pairs, tokens)`.
        """
        pairs = tf.convert_to_tensor(pairs, tf.int64)
        first, second = (tf.ragged.range(pairs[:, column], pairs[:, column + 1]) for column in (0, 2))
        return tf.gather(self._ids, first), tf.gather(self._ids, second)


def check_arguments(owner: str, tokenizer: Tokenizer, max_length: Any) -> int:
    """`max_length`; TypeError or ValueError unless a pair fits, and the tokenizer is of models pretrained on pairs."""
    if not (isinstance(tokenizer, Tokenizer) and tokenizer.second_segment):
        cure = "XLM-RoBERTa is pretrained without pairs: use `BertMaskedLM`, with `FullSentences` or `PackedTexts`."
        raise TypeError(checks.message(owner, "tokenizer", "be a BertTokenizer", tokenizer, cure))
    reason = ", for [CLS], two tokens and two [SEP]"
    return checks.integer(owner, "max_length", max_length, smallest=NUM_SPECIAL_TOKENS + 2, reason=reason)
