"""Documents of numbered tokens, and rows of them as lists of texts, for the tests of rows."""

import itertools

import numpy as np

from keras_bert_layers.preprocessing import TokenDocuments

PAD, UNK, CLS, SEP, FIRST = range(5)
NUM_WORDS = 5003
WIDTHS = (11, 37, 128)


def make_documents(sizes):
    """Documents of sentences with given numbers of tokens; no two tokens are equal, so each shows its place."""
    lengths = np.array(list(itertools.chain.from_iterable(sizes)), np.int64)
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    starts = np.concatenate([[0], np.cumsum([len(document) for document in sizes])])
    return TokenDocuments(np.arange(FIRST, FIRST + bounds[-1], dtype=np.int32), bounds, starts)


def document_of(documents, token):
    return np.searchsorted(documents.token_bounds, token - FIRST, side="right") - 1


def sentence_of(documents, token):
    return np.searchsorted(documents.sentence_bounds, token - FIRST, side="right") - 1


def texts_of(rows):
    """The rows as lists of texts, which are lists of tokens without [CLS] and [SEP]; checks their form."""
    found = []
    for start, stop in itertools.pairwise(rows.bounds):
        ids, numbers = rows.token_ids[start:stop], rows.text_numbers[start:stop]
        assert ids[0] == CLS
        assert ids[-1] == SEP
        assert numbers[0] == 1
        assert np.isin(np.diff(numbers), (0, 1)).all()
        found.append([list(ids[numbers == number]) for number in range(1, numbers[-1] + 1)])
    return found


def pairs_of(rows):
    for (text,) in texts_of(rows):
        border = text.index(SEP)
        yield text[1:border], text[border + 1 : -1]
