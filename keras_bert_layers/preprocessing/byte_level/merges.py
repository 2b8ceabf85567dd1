"""Byte pair encoding of words in graph: merges the pair of the lowest rank, in all words at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.tokens.tokens import Tokens, repaired, rows_of_lengths

_NONE = np.iinfo(np.int32).max
NUM_BUCKETS = 2**62
# A matrix of so many words of fewer bytes takes fewer operations than a vector. Of more words, most end long before the
# longest; and a long one would take a turn for each of its bytes.
_FEW_WORDS, _FEW_BYTES = 64, 64


class ByteMerges:
    """Byte pair encoding: the bytes of a word, of which neighbors are merged in the order of the ranks.

    Each round finds the lowest rank of a pair in each word, and merges all its pairs from left to right. Equal words
    are encoded once. A long word is divided into blocks of as many tokens as the longest token has bytes, and each has
    a lowest rank of its own, among its pairs and those of the blocks beside it: a merge outside these could reach the
    block only by a token longer than all. So the number of rounds does not grow with the length of a word.

    Args:
        byte_ids: the id of each byte, int64 `[256]`.
        merges: the pairs of ids that are merged, in the order of their ranks, int64 `[M, 2]`.
        merged_ids: the ids that they give, int64 `[M]`.
        tokens: the bytes of tokens -> their ids. A word that is one of them is looked up if its bytes are merged to it.

    References:
        Sennrich et al. 2016, https://arxiv.org/abs/1508.07909; `models/bpe/word.rs` in huggingface/tokenizers.
    """

    def __init__(
        self,
        byte_ids: np.ndarray,
        merges: np.ndarray,
        merged_ids: np.ndarray,
        tokens: Mapping[bytes, int],
    ):
        # The last id is of no token.
        self._num_ids = int(max(byte_ids.max(), merged_ids.max(initial=0), merges.max(initial=0))) + 2
        keys = merges[:, 0] * self._num_ids + merges[:, 1]
        order = np.argsort(keys)
        # The last key is of no pair.
        self._keys = tf.constant(np.append(keys[order], np.iinfo(np.int64).max))
        self._ranks = tf.constant(np.append(order, _NONE).astype(np.int32))
        self._merged_ids = tf.constant(np.append(merged_ids[order], 0).astype(np.int32))
        self._byte_ids = tf.constant(byte_ids.astype(np.int32))
        self._is_in_order = _is_in_order(merges, merged_ids)
        words, ids = tf.constant(list(tokens)), np.array(list(tokens.values()), np.int32)
        sizes = tf.strings.length(words).numpy()
        self._block = int(sizes.max())
        lengths = np.zeros(max(self._num_ids, ids.max() + 1), np.int64)
        lengths[ids] = sizes
        self._lengths = tf.constant(lengths[: self._num_ids])  # in bytes
        is_known, is_whole = self._merged_whole(merges, merged_ids, ids)
        unknown = np.flatnonzero(~is_known)
        if unknown.size:
            found = self._encode(tf.gather(words, unknown))
            counts = np.diff(found.row_splits)
            is_whole[unknown] = (counts == 1) & (found.ids.numpy()[found.row_splits[:-1]] == ids[unknown])
        hashes = tf.strings.to_hash_bucket_fast(words, NUM_BUCKETS).numpy()
        order = np.argsort(hashes)
        order = order[is_whole[order]]
        self._hashes, self._whole_ids = tf.constant(hashes[order]), tf.constant(ids[order])
        self._whole = tf.gather(words, order)

    def _merged_whole(
        self, pairs: np.ndarray, merged_ids: np.ndarray, ids: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Whether the merges alone tell if the bytes of tokens are merged to them, and whether they are, bool `[V]`.

        They tell it if they are in order and one merge at most gives each part of the token. Then its bytes are merged
        to it if those of its two parts are, and no earlier merge joins the end of one and the beginning of the other.
        """
        num_ids = int(max(self._num_ids, ids.max() + 1))
        is_known = np.bincount(merged_ids, minlength=num_ids) <= 1
        is_whole = np.zeros(num_ids, bool)
        is_whole[self._byte_ids.numpy()] = True
        if not self._is_in_order or is_whole[merged_ids].any():
            return np.zeros(len(ids), bool), np.zeros(len(ids), bool)
        known, whole = is_known.tolist(), is_whole.tolist()
        stays_apart = self._stays_apart(pairs, merged_ids, num_ids).tolist()
        firsts, seconds = pairs.T.tolist()
        for first, second, merged, is_apart in zip(firsts, seconds, merged_ids.tolist(), stays_apart, strict=True):
            known[merged] = known[merged] and known[first] and known[second]
            whole[merged] = is_apart and whole[first] and whole[second]
        return np.array(known)[ids], np.array(whole)[ids]

    def _stays_apart(self, pairs: np.ndarray, merged_ids: np.ndarray, num_ids: int) -> np.ndarray:
        """For each merge, whether no earlier one joins the end of its first part and the beginning of its second.

        From the merge back in time, the younger of the two tokens that meet is divided, until both are bytes.
        """
        born = np.full(num_ids, -1)
        born[merged_ids] = np.arange(len(pairs))
        keys, ranks = self._keys.numpy(), self._ranks.numpy()
        is_apart = np.ones(len(pairs), bool)
        merge = np.arange(len(pairs))
        left, right = pairs[:, 0], pairs[:, 1]
        left_end = right_end = merge  # the ranks at which the two are merged with others
        while merge.size:
            key = left * self._num_ids + right
            place = np.searchsorted(keys, key)
            # Of equal pairs that overlap, as in "aaa", the first is merged.
            joins = (keys[place] == key) & (ranks[place] < left_end) & (ranks[place] <= right_end)
            is_apart[merge[joins]] = False
            left_born, right_born = born[left], born[right]
            goes_on = ~joins & (np.maximum(left_born, right_born) >= 0)
            merge, left, right, left_end, right_end, left_born, right_born = (
                part[goes_on] for part in (merge, left, right, left_end, right_end, left_born, right_born)
            )
            divides_left = left_born > right_born
            left_end = np.where(divides_left, left_born, left_end)
            right_end = np.where(divides_left, right_end, right_born)
            left = np.where(divides_left, pairs[left_born, 1], left)
            right = np.where(divides_left, right, pairs[right_born, 0])
        return is_apart

    def encode_words(self, words: tf.Tensor) -> Tokens:
        """The tokens of words `[W]`, none of them empty, with offsets in bytes of the word."""
        unique, index = tf.unique(words)
        hashes = tf.strings.to_hash_bucket_fast(unique, NUM_BUCKETS)
        place = tf.minimum(tf.searchsorted(self._hashes, hashes), tf.size(self._hashes) - 1)
        is_whole = tf.gather(self._whole, place) == unique
        sizes = tf.strings.length(unique)
        splits = tf.range(tf.size(unique, tf.int64) + 1)
        whole = Tokens(tf.gather(self._whole_ids, place), splits, tf.zeros_like(splits[1:]), tf.cast(sizes, tf.int64))
        return repaired(whole, unique, ~is_whole, self._encode, index)

    def _encode(self, words: tf.Tensor) -> Tokens:
        sizes = tf.strings.length(words)
        longest = tf.reduce_max(sizes)
        return tf.cond(
            (tf.size(words) <= _FEW_WORDS) & (longest < _FEW_BYTES),
            lambda: self._encode_few(words, sizes, longest),
            lambda: self._encode_many(words, sizes),
        )

    def _encode_few(self, words: tf.Tensor, sizes: tf.Tensor, longest: tf.Tensor) -> Tokens:
        """The tokens of words `[W]`, as rows of a matrix that end with no token."""
        width = longest + 1
        column = tf.range(width)[None]
        no_token = self._num_ids - 1
        ids = tf.gather(self._byte_ids, tf.cast(tf.io.decode_raw(words, tf.uint8, fixed_length=width), tf.int32))
        ids = tf.cast(tf.where(column < sizes[:, None], ids, no_token), tf.int64)
        last = ids[:, -1:]

        def merged(_: tf.Tensor, ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            after = tf.concat([ids[:, 1:], last], 1)
            key = ids * self._num_ids + after
            place = tf.reshape(tf.searchsorted(self._keys, tf.reshape(key, [-1])), tf.shape(key))
            ranks = tf.where(tf.gather(self._keys, place) == key, tf.gather(self._ranks, place), _NONE)
            lowest = tf.reduce_min(ranks, 1, keepdims=True)
            has_pair = lowest != _NONE
            at = tf.where(has_pair, tf.argmin(ranks, 1, tf.int32)[:, None], width)
            found = tf.cast(tf.gather(self._merged_ids, place), tf.int64)
            ids = tf.where(column < at, ids, tf.where(column == at, found, after))
            return tf.reduce_any(has_pair), ids

        _, ids = tf.while_loop(lambda goes_on, _: goes_on, merged, (tf.constant(True), ids))
        is_token = ids != no_token
        lengths = tf.gather(self._lengths, ids)
        ends = tf.cumsum(lengths, 1)
        places = tf.where(is_token)
        splits = tf.concat([[0], tf.cumsum(tf.math.count_nonzero(is_token, 1))], 0)
        ids, starts, ends = (tf.gather_nd(part, places) for part in (ids, ends - lengths, ends))
        return Tokens(tf.cast(ids, tf.int32), splits, starts, ends)

    def _encode_many(self, words: tf.Tensor, sizes: tf.Tensor) -> Tokens:
        """The tokens of words `[W]`, one after the other."""
        splits = tf.concat([[0], tf.cumsum(sizes)], 0)
        ids = tf.gather(self._byte_ids, tf.cast(tf.io.decode_raw(tf.strings.reduce_join(words), tf.uint8), tf.int32))
        word, starts = tf.cast(rows_of_lengths(sizes), tf.int32), tf.range(tf.size(ids))
        vector = tf.TensorShape([None])
        *_, ids, word, starts = tf.while_loop(
            lambda goes_on, *_: goes_on,
            self._round,
            (tf.constant(True), ids, word, starts),
            shape_invariants=(tf.TensorShape([]), vector, vector, vector),
        )
        counts = tf.math.bincount(word, minlength=tf.size(words), dtype=tf.int64)
        ends = tf.concat([starts[1:], splits[-1:]], 0)
        first = tf.gather(splits, word)
        starts, ends = (tf.cast(part - first, tf.int64) for part in (starts, ends))
        return Tokens(ids, tf.concat([[0], tf.cumsum(counts)], 0), starts, ends)

    def _round(self, _: tf.Tensor, ids: tf.Tensor, word: tf.Tensor, starts: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Merges the pairs of the lowest rank of each block.

        Args:
            ids: int32 `[T]`, the tokens of all words.
            word: int32 `[T]`, the word of each.
            starts: int32 `[T]`, the byte of all words at which each begins.
        """
        index = tf.range(tf.size(ids))
        begins_word = tf.concat([[True], word[1:] != word[:-1]], 0)[: tf.size(ids)]
        wide = tf.cast(ids, tf.int64)
        key = wide * self._num_ids + tf.concat([wide[1:], [0]], 0)[: tf.size(ids)]
        place = tf.searchsorted(self._keys, key)
        is_pair = (tf.gather(self._keys, place) == key) & ~_next(begins_word, True)
        ranks = tf.where(is_pair, tf.gather(self._ranks, place), _NONE)  # of each token with the one after it

        begins_block = begins_word | (index % self._block == 0)
        block = tf.cumsum(tf.cast(begins_block, tf.int32)) - 1
        own = tf.math.segment_min(ranks, block)  # [K], K blocks
        begins_word_of_block = tf.boolean_mask(begins_word, begins_block)
        before = tf.where(begins_word_of_block, _NONE, tf.concat([[_NONE], own], 0)[: tf.size(own)])
        after = tf.where(_next(begins_word_of_block, True), _NONE, _next(own, _NONE))
        lowest = tf.gather(tf.minimum(own, tf.minimum(before, after)), block)

        is_lowest = is_pair & (ranks == lowest)
        if self._is_in_order:
            # Of neighboring pairs of one rank, in "aaa", every second is merged, if their first is.
            is_first = tf.concat([[True], ranks[1:] != ranks[:-1]], 0)[: tf.size(ids)]
            first = tf.gather(tf.boolean_mask(index, is_first), tf.cumsum(tf.cast(is_first, tf.int32)) - 1)
            is_merged = is_lowest & tf.gather(is_lowest, first) & ((index - first) % 2 == 0)
        else:
            # What one merge gives may have a lower rank with its neighbor, and must be merged before the next.
            leftmost = tf.math.segment_min(tf.where(is_lowest, index, _NONE), block)
            is_merged = index == tf.gather(tf.where(before == own, _NONE, leftmost), block)
        ids = tf.where(is_merged, tf.gather(self._merged_ids, place), ids)
        stays = ~tf.concat([[False], is_merged], 0)[: tf.size(ids)]
        return tf.reduce_any(is_merged), *(tf.boolean_mask(part, stays) for part in (ids, word, starts))


def _next(values: tf.Tensor, last: bool | int) -> tf.Tensor:
    """For each value the one after it, and `last` for the last."""
    return tf.concat([values, [last]], 0)[1:]


def _is_in_order(pairs: np.ndarray, merged_ids: np.ndarray) -> bool:
    """Whether every merge takes tokens that earlier merges alone give, as all trained lists do but some."""
    last = np.full(int(max(pairs.max(initial=0), merged_ids.max(initial=0))) + 1, -1)
    last[merged_ids] = np.arange(len(pairs))  # of equal indices, the last value stays
    return bool((last[pairs].max(axis=1, initial=-1) < np.arange(len(pairs))).all())


def byte_characters() -> Mapping[int, str]:
    """The character that vocabularies have for each byte: itself if it is printable, or one from U+0100 on.

    References:
        `bytes_to_unicode` in openai/gpt-2, encoder.py.
    """
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{byte: chr(byte) for byte in printable}, **{byte: chr(256 + i) for i, byte in enumerate(others)}}
