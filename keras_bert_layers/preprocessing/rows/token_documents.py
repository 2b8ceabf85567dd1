"""`TokenDocuments`: documents as token ids, from which rows for pretraining are made."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.preprocessing.tokenizer import Tokenizer

SENTENCES_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class TokenDocuments:
    """Documents of sentences, as token ids without special tokens; 4 bytes per token.

    Sentences without tokens, and documents without sentences, are left out.

    Args:
        ids: int32 `(tokens,)`, the tokens of all sentences, one after the other.
        sentence_bounds: int64 `(sentences + 1,)`: sentence s is `ids[sentence_bounds[s] : sentence_bounds[s + 1]]`.
        document_bounds: int64 `(documents + 1,)`: document d holds the sentences from `document_bounds[d]` to
            `document_bounds[d + 1] - 1`.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "it", "rains", "we", "stay"])
        >>> documents = TokenDocuments.from_text([["It rains", "We stay"], [""], ["We"]], tokenizer)
        >>> documents.ids.tolist(), documents.sentence_bounds.tolist(), documents.document_bounds.tolist()
        ([4, 5, 6, 7, 6], [0, 2, 4, 5], [0, 2, 3])
    """

    ids: np.ndarray
    sentence_bounds: np.ndarray
    document_bounds: np.ndarray

    @classmethod
    def from_text(
        cls, documents: Sequence[Sequence[str]], tokenizer: Tokenizer, *, owner: str = "TokenDocuments"
    ) -> TokenDocuments:
        """Tokenizes documents.

        Args:
            documents: sequences of sentences, which are strings.
            tokenizer: what makes ids of the sentences.
            owner: the class to name in errors.

        Raises:
            TypeError: a document that is not a list, or a sentence that is not a string; the message shows it.
        """
        check_documents(owner, documents)
        ids, lengths = _tokenized(documents, tokenizer)
        is_kept = lengths > 0
        document_of = np.repeat(np.arange(len(documents)), [len(document) for document in documents])[is_kept]
        first_sentences = np.flatnonzero(np.diff(document_of, prepend=-1))
        return cls(
            ids, np.concatenate([[0], np.cumsum(lengths[is_kept])]), np.append(first_sentences, len(document_of))
        )

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.document_bounds) - 1

    @property
    def token_bounds(self) -> np.ndarray:
        """int64 `(documents + 1,)`: document d is `ids[token_bounds[d] : token_bounds[d + 1]]`."""
        return self.sentence_bounds[self.document_bounds]


def check_documents(owner: str, documents: Any) -> None:
    """Raises TypeError, with the document and the sentence, unless `documents` is a list of lists of strings."""
    cure = "`data.read_documents` reads a file with one sentence per line and an empty line between documents."
    if isinstance(documents, str | bytes) or not isinstance(documents, Sequence):
        raise TypeError(checks.message(owner, "documents", "be a list of lists of sentences", type(documents), cure))
    for number, document in enumerate(documents):
        if isinstance(document, str | bytes) or not isinstance(document, Sequence):
            raise TypeError(
                f"`{owner}`: a document must be a list of sentences. Received: {document!r:.80} as document {number}. "
                + cure
            )
        for index, sentence in enumerate(document):
            if not isinstance(sentence, str | bytes):
                raise TypeError(
                    f"`{owner}`: sentences must be strings. Received: {sentence!r} as sentence {index} of document "
                    f"{number}."
                )


def _tokenized(documents: Sequence[Sequence[str]], tokenizer: Tokenizer) -> tuple[np.ndarray, np.ndarray]:
    """The ids of all sentences, concatenated, and the number of ids of each sentence."""
    sentences = itertools.chain.from_iterable(documents)
    ids, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
    while batch := list(itertools.islice(sentences, SENTENCES_AT_ONCE)):
        tokens = tokenizer.tokenize(batch)
        ids.append(tokens.flat_values.numpy())
        lengths.append(tokens.row_lengths().numpy())
    return np.concatenate(ids), np.concatenate(lengths)
