"""Pairs of segments for next-sentence prediction."""

from __future__ import annotations

import itertools
import random
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.preprocessors.text_layer import Tokenizer
from keras_bert_layers.preprocessing.rows.framed_rows import framed_pairs
from keras_bert_layers.preprocessing.rows.token_documents import TokenDocuments
from keras_bert_layers.preprocessing.rows.token_rows import TokenRows
from keras_bert_layers.preprocessing.word_piece.bert_tokenizer import BertTokenizer

NUM_SPECIAL_TOKENS = 3  # [CLS] first [SEP] second [SEP]
SMALLEST = NUM_SPECIAL_TOKENS + 2
SMALLEST_REASON = ", for [CLS], two tokens and two [SEP]"

Tokens = tuple[int, int]  # first, and end


class SegmentPairs:
    """Splits documents into chunks of sentences that just fill a row, and each chunk at a random sentence.

    Args:
        documents: what to split; its tokens stay where they are.
        max_length: the largest number of tokens in a row, special tokens included.
        short_rate: the share of documents with shorter rows, with a random length.
    """

    def __init__(self, documents: TokenDocuments, *, max_length: int, short_rate: float):
        self._bounds = documents.sentence_bounds.tolist()
        self._starts = documents.document_bounds.tolist()
        self._budget = max_length - NUM_SPECIAL_TOKENS
        self._short_rate = short_rate

    def next_sentence(self, seed: int, *, random_next_rate: float) -> np.ndarray:
        """Pairs of which the second segment follows the first (0), or is from another document (1).

        Returns:
            int64 `(pairs, 5)`: first token and end of both segments, and the label.
        """
        return self._drawn(
            seed, lambda document, generator: self._next_sentence_in(document, generator, random_next_rate)
        )

    def sentence_order(self, seed: int) -> np.ndarray:
        """Pairs of neighbours, in order (0) or swapped (1); as `next_sentence` returns them."""
        return self._drawn(seed, self._sentence_order_in)

    def _drawn(self, seed: int, pairs_in: Callable[[int, random.Random], Iterator[tuple[int, ...]]]) -> np.ndarray:
        generator = random.Random(seed)
        documents = range(len(self._starts) - 1)
        pairs = itertools.chain.from_iterable(pairs_in(document, generator) for document in documents)
        return np.array(list(pairs), np.int64).reshape(-1, 5)

    def _next_sentence_in(
        self, document: int, generator: random.Random, random_next_rate: float
    ) -> Iterator[tuple[int, ...]]:
        """Pairs whose first segment is from a document."""
        target = self._target(generator)
        start, stop = self._starts[document], self._starts[document + 1]
        while start < stop:
            end = self._filled(start, stop, target)
            border = start + (generator.randint(1, end - start - 1) if end - start > 1 else 1)
            is_random = end - start == 1 or generator.random() < random_next_rate
            second = (border, end)
            if is_random:
                wanted = target - (self._bounds[border] - self._bounds[start])
                second = self._random_segment(document, wanted, generator)
            yield (*self._fitting(self._tokens(start, border), self._tokens(*second), generator), int(is_random))
            # What a random segment takes the place of begins the next chunk.
            start = border if is_random else end

    def _sentence_order_in(self, document: int, generator: random.Random) -> Iterator[tuple[int, ...]]:
        """Pairs of neighbours in a document."""
        target = self._target(generator)
        start, stop = self._starts[document], self._starts[document + 1]
        while start < stop:
            end = self._filled(start, stop, target)
            first, last = self._tokens(start, end)
            if last - first > 1:
                if end - start > 1:
                    border = self._bounds[start + generator.randint(1, end - start - 1)]
                else:  # One sentence has no neighbour in its chunk, so that it is split itself.
                    border = first + generator.randint(1, last - first - 1)
                pair = (first, border), (border, last)
                is_swapped = generator.random() < 0.5
                yield (*self._fitting(pair[is_swapped], pair[not is_swapped], generator), int(is_swapped))
            start = end

    def _target(self, generator: random.Random) -> int:
        """The number of tokens that the chunks of a document aim at."""
        return generator.randint(2, self._budget) if generator.random() < self._short_rate else self._budget

    def _tokens(self, start: int, end: int) -> Tokens:
        """The tokens of a run of sentences."""
        return self._bounds[start], self._bounds[end]

    def _filled(self, start: int, stop: int, num_tokens: int) -> int:
        """The end of a run of sentences: `num_tokens` tokens or more, or all up to `stop`; never empty."""
        return bisect_left(self._bounds, self._bounds[start] + num_tokens, start + 1, stop)

    def _random_segment(self, document: int, num_tokens: int, generator: random.Random) -> tuple[int, int]:
        """Sentences of another document, from a random position."""
        num_others = len(self._starts) - 2
        if num_others:
            other = generator.randrange(num_others)
            document = other + (other >= document)
        stop = self._starts[document + 1]
        start = generator.randrange(self._starts[document], stop)
        return start, self._filled(start, stop, num_tokens)

    def _fitting(self, first: Tokens, second: Tokens, generator: random.Random) -> tuple[int, int, int, int]:
        """The tokens of two segments, shortened until they fit."""
        bounds = [*first, *second]
        sizes = first[1] - first[0], second[1] - second[0]
        for side, kept in enumerate(kept_lengths(*sizes, self._budget)):
            num_cut = sizes[side] - kept
            # Each token is cut at the front with probability 1/2: count the ones in random bits.
            num_front = generator.getrandbits(num_cut).bit_count() if num_cut else 0
            bounds[2 * side] += num_front
            bounds[2 * side + 1] -= num_cut - num_front
        return bounds[0], bounds[1], bounds[2], bounds[3]


def kept_lengths(first_length: int, second_length: int, budget: int) -> tuple[int, int]:
    """The lengths that remain if the longer segment, or the second at equal lengths, loses tokens one by one."""
    half = budget // 2
    first_kept = max(budget - half, budget - second_length)
    second_kept = max(half, budget - first_length)
    return min(first_length, first_kept), min(second_length, second_kept)


@dataclass(frozen=True)
class NextSentence:
    """BERT's own rows: in half of them the second text follows the first, else it is from another document.

    The pairs are those of `SentencePairs` with the same seed, which says how they are drawn. With a single document,
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

    has_labels: ClassVar[bool] = True
    is_packed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for argument in ("random_next_rate", "short_rate"):
            object.__setattr__(self, argument, checks.share("NextSentence", argument, getattr(self, argument)))

    def rows(self, documents: TokenDocuments, tokenizer: Tokenizer, *, max_length: int, seed: int) -> TokenRows:
        """Makes rows of documents, in their order; see `RowRule`. `max_length` is at least 5."""
        checks.integer("NextSentence", "max_length", max_length, smallest=SMALLEST, reason=SMALLEST_REASON)
        pairs = SegmentPairs(documents, max_length=max_length, short_rate=self.short_rate)
        drawn = pairs.next_sentence(seed, random_next_rate=self.random_next_rate)
        return framed_pairs("NextSentence", documents.ids, drawn, tokenizer)


@dataclass(frozen=True)
class SentenceOrder:
    """ALBERT's rows: two neighbouring texts of a document, in order (label 0), or in half of the rows swapped (1).

    Chunks of sentences that just fill a row are split at a random sentence, as for `NextSentence`. A chunk of one
    sentence is split inside of it; a sentence of a single token that is a chunk by itself is left out. A pair that is
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

    has_labels: ClassVar[bool] = True
    is_packed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "short_rate", checks.share("SentenceOrder", "short_rate", self.short_rate))

    def rows(self, documents: TokenDocuments, tokenizer: Tokenizer, *, max_length: int, seed: int) -> TokenRows:
        """Makes rows of documents, in their order; see `RowRule`. `max_length` is at least 5."""
        checks.integer("SentenceOrder", "max_length", max_length, smallest=SMALLEST, reason=SMALLEST_REASON)
        pairs = SegmentPairs(documents, max_length=max_length, short_rate=self.short_rate)
        return framed_pairs("SentenceOrder", documents.ids, pairs.sentence_order(seed), tokenizer)


class SentencePairs:
    """Draws pairs of segments: in half of the rows the second follows the first, else it is from another document.

    Each document is split into chunks of sentences that just fill a row, and each chunk is split at a random sentence.
    The two parts make a pair, or the first part makes a pair with sentences from a random position in a random other
    document. In the second case the unused second part becomes the start of the next chunk. A chunk of one sentence
    always gets a random second segment. In one document of ten the rows are shorter, with a random length. A pair that
    is too long loses tokens of its longer segment one by one, at random from the front or the back.

    The documents are tokenized once, and kept with 4 bytes a token. A pair is five integers, so that a whole epoch can
    be shuffled.

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
        tokenizer: BertTokenizer,
        *,
        max_length: int = 128,
        random_next_rate: float = 0.5,
        short_rate: float = 0.1,
    ):
        owner = "SentencePairs"
        cure = "Pairs of sentences are for BERT's pretraining; XLM-RoBERTa's is `BertMaskedLM` alone."
        checks.instance(owner, "tokenizer", tokenizer, BertTokenizer, cure)
        max_length = checks.integer(owner, "max_length", max_length, smallest=SMALLEST, reason=SMALLEST_REASON)
        self.budget = max_length - NUM_SPECIAL_TOKENS
        self.random_next_rate = checks.share(owner, "random_next_rate", random_next_rate)
        self.short_rate = checks.share(owner, "short_rate", short_rate)
        tokens = TokenDocuments.from_text(documents, tokenizer, owner=owner)
        self._ids = tokens.ids
        if not len(self._ids):
            raise ValueError(checks.message(owner, "documents", "hold at least one token", len(documents)))
        self._pairs = SegmentPairs(tokens, max_length=max_length, short_rate=self.short_rate)

    def draw(self, seed: int) -> np.ndarray:
        """Draws one epoch of pairs, document by document.

        Args:
            seed: the same seed gives the same pairs.

        Returns:
            int64 `(pairs, 5)`: start and end of the first segment, as indices of the tokens of all documents; start and
            end of the second; and 0 if the second follows the first, 1 if it is random.
        """
        return self._pairs.next_sentence(seed, random_next_rate=self.random_next_rate)

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
