"""`NextSentence`: rows for next-sentence prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from keras_bert_layers._internal import checks
from keras_bert_layers.preprocessing._framed_rows import framed_pairs
from keras_bert_layers.preprocessing._segment_pairs import SMALLEST, SMALLEST_REASON, SegmentPairs
from keras_bert_layers.preprocessing._text_layer import Tokenizer
from keras_bert_layers.preprocessing.token_documents import TokenDocuments
from keras_bert_layers.preprocessing.token_rows import TokenRows


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
