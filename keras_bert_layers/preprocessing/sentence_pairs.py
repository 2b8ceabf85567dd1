"""Pairs of segments for next-sentence prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing._segment_pairs import (
    NUM_SPECIAL_TOKENS,
    SMALLEST,
    SMALLEST_REASON,
    SegmentPairs,
)
from keras_bert_layers.preprocessing.bert_tokenizer import BertTokenizer
from keras_bert_layers.preprocessing.token_documents import TokenDocuments


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
