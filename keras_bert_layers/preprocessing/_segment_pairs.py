"""Pairs of segments of documents, as indices of tokens."""

from __future__ import annotations

import itertools
import random
from bisect import bisect_left
from collections.abc import Callable, Iterator

import numpy as np

from keras_bert_layers.preprocessing.token_documents import TokenDocuments

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
