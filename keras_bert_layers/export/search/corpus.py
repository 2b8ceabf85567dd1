"""The corpus of an exported search: its texts, ids and vectors as the arrays that the graph reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from keras_bert_layers._internal import checks

#: How the vectors are stored and compared with a query first.
VECTORS = FLOAT32, INT8, BINARY = "float32", "int8", "binary"

#: How many texts get an exact score, as a multiple of `top_k`, by the kind of vectors. On 100,000 passages of Wikipedia
#: and all-MiniLM-L6-v2, these find 100 % and 99.2 % of what exact search finds; half as many 99.6 % and 98.3 %.
CANDIDATES = {FLOAT32: 1, INT8: 2, BINARY: 80}

#: The names of the arrays, in the order in which graphs make them. In a file each has `PREFIX` before its name.
TEXTS, IDS, DOCUMENTS, ROW_STARTS = "texts", "ids", "documents", "row_starts"
FLOATS, HIGH, LOW, SCALES, BITS = "floats", "high", "low", "scales", "bits"
#: The same of vectors of tokens: where those of each text begin, and the bytes of each token.
TOKEN_STARTS, SPANS = "token_starts", "spans"
#: The same of sparse vectors, as `Postings` has them.
POSTING_ROWS, POSTING_WEIGHTS, POSTING_STARTS = "posting_rows", "posting_weights", "posting_starts"
PREFIX = "search_"
#: The function of an ONNX file that encodes documents, which its graph does not call.
ENCODER = "encode_documents"

_WORD = 64
# The largest number of which both bytes, the higher one rounded to the nearest, are within -127 and 127.
_LARGEST = 127 * 256 + 127

Documents: TypeAlias = Sequence[str] | Mapping[Hashable, str]
Arrays: TypeAlias = dict[str, Any]


class Corpus(NamedTuple):
    """Documents, of which equal texts are stored once.

    Args:
        texts: the different texts, in the order of the documents.
        rows: int `(documents,)`, the text of each document.
        ids: int64 `(documents,)`, or an array of strings.
    """

    texts: list[str]
    rows: np.ndarray
    ids: np.ndarray

    @property
    def ids_are(self) -> str:
        """The dtype of the ids, `"int64"` or `"string"`."""
        return "string" if self.ids.dtype == object else "int64"

    def facts(self) -> dict[str, Any]:
        """What the model card states about the documents."""
        return {"ids": self.ids_are, "documents": len(self.rows), "texts": len(self.texts)}


class Tokens(NamedTuple):
    """The vectors of the tokens of texts.

    Args:
        vectors: float32 `(tokens, vector_dim)`.
        starts: int64 `(texts + 1,)`, where those of each text begin.
        spans: int32 `(tokens, 2)`, the first byte of each token in its text, and the one after the last; -1 for none.
    """

    vectors: np.ndarray
    starts: np.ndarray
    spans: np.ndarray

    def with_one_at_least(self) -> Tokens:
        """With a vector of zeros for each text without tokens."""
        counts = np.diff(self.starts)
        places = self.starts[:-1][counts == 0]
        vectors, spans = np.insert(self.vectors, places, 0, axis=0), np.insert(self.spans, places, -1, axis=0)
        return Tokens(vectors, np.append(0, np.cumsum(counts.clip(1))), spans)


class Postings(NamedTuple):
    """Sparse vectors of texts in the order of the tokens of the vocabulary: an inverted index.

    Args:
        rows: int `(values,)`, the text of each weight.
        weights: float32 `(values,)`.
        starts: int `(vocabulary_size + 1,)`, where those of each token begin.
    """

    rows: np.ndarray
    weights: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, token_ids: np.ndarray, weights: np.ndarray, row_starts: np.ndarray, vocabulary_size: int) -> Postings:
        """Those of the weights of texts, one text after the other; `row_starts` says where each begins."""
        order = np.argsort(token_ids, kind="stable")
        rows = np.repeat(np.arange(len(row_starts) - 1), np.diff(row_starts))
        starts = np.cumsum([0, *np.bincount(token_ids, minlength=vocabulary_size)])
        return cls(rows[order], weights[order], starts)


def read_corpus(owner: str, documents: Documents, ids: Any = None) -> Corpus:
    """The documents and ids that a user gives, checked.

    Args:
        owner: the function that was called, for errors.
        documents: texts, or a dictionary id -> text.
        ids: strings, or whole numbers, all different; None for the row numbers, or for the keys of a dictionary.

    Raises:
        TypeError: documents that are not strings; ids that are neither all strings nor all whole numbers.
        ValueError: another number of ids than of documents; equal ids; invalid Unicode.
    """
    if isinstance(documents, Mapping):
        if ids is not None:
            raise ValueError(checks.message(owner, "ids", "be None where documents are a dictionary", ids))
        ids, documents = list(documents), list(documents.values())
    if isinstance(documents, str | bytes):
        raise TypeError(checks.message(owner, "documents", "be a list of texts", documents))
    texts = [_text(owner, row, text) for row, text in enumerate(_values(documents))]
    rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    found = np.arange(len(texts)) if ids is None else _ids(owner, _values(ids), len(texts))
    return Corpus(list(rows), np.array([rows[text] for text in texts], np.int64), found)


def corpus_arrays(corpus: Corpus, found: np.ndarray | Tokens | Postings, kind: str) -> Arrays:
    """The arrays of a corpus by name.

    Args:
        corpus: the documents.
        found: finite float32 `(texts, vector_dim)`, whose inner products with those of queries are the scores; or the
            vectors of their tokens, or their sparse vectors.
        kind: one of `VECTORS`.

    Returns:
        The texts and ids; `"documents"`, the numbers of the documents in the order of their texts, with their count at
        the end, int32; `"row_starts"`, where those of each text begin there. Float32 vectors; or else the two bytes of
        their numbers as multiples of a scale for each vector, and for binary vectors the signs in words of 64 bits.
        There is one text at least: without documents an empty one, which no document has.
    """
    tokens = found.with_one_at_least() if isinstance(found, Tokens) else None
    postings = found if isinstance(found, Postings) else None
    vectors: Any = found if tokens is None else tokens.vectors
    vectors = vectors if postings is None else postings.weights[:, None]
    if not np.isfinite(vectors).all():
        row = int((~np.isfinite(vectors).all(axis=1)).argmax())
        raise ValueError(checks.row_message("export_search", "every vector must be finite", f"row {row}"))
    texts, counts = corpus.texts, np.bincount(corpus.rows, minlength=len(corpus.texts))
    if not texts:
        texts, counts, vectors = [""], np.zeros(1, np.int64), np.zeros((1, vectors.shape[1]), np.float32)
    order = np.argsort(corpus.rows, kind="stable")
    arrays: Arrays = {
        TEXTS: np.array([text.encode() for text in texts], object),
        IDS: np.array([str(name).encode() for name in corpus.ids], object)
        if corpus.ids_are == "string"
        else corpus.ids,
        DOCUMENTS: np.append(order, len(order)).astype(np.int32),
        ROW_STARTS: np.append(0, np.cumsum(counts)).astype(np.int32),
    }
    if postings is not None:
        arrays |= {POSTING_ROWS: postings.rows.astype(np.int32), POSTING_STARTS: postings.starts.astype(np.int32)}
        return {**arrays, POSTING_WEIGHTS: postings.weights}
    if tokens is not None:
        arrays[TOKEN_STARTS] = (tokens.starts if corpus.texts else np.array([0, 1])).astype(np.int32)
        arrays[SPANS] = (tokens.spans if corpus.texts else np.zeros((1, 2))).astype(np.int32)
    if kind == FLOAT32:
        return {**arrays, FLOATS: vectors}
    if kind == BINARY:
        arrays[BITS] = packed_signs(vectors)
    return arrays | _two_bytes(vectors)


def packed_signs(vectors: np.ndarray) -> np.ndarray:
    """Which numbers are positive, as int64 `(rows, words)`; the first number is the lowest bit of the first word."""
    width = -vectors.shape[1] % _WORD
    bits = np.packbits(np.pad(vectors > 0, [(0, 0), (0, width)]), axis=1, bitorder="little")
    return bits.view("<i8").astype(np.int64)


def _two_bytes(vectors: np.ndarray) -> Arrays:
    """Vectors as numbers of 16 bits, in two int8 arrays, with a float32 scale for each vector."""
    largest = np.abs(vectors).max(axis=1, initial=0)
    scales = np.where(largest > 0, largest / _LARGEST, 1).astype(np.float32)
    numbers = np.rint(vectors / scales[:, None]).astype(np.int32)
    high = (numbers + 128) >> 8
    return {HIGH: high.astype(np.int8), LOW: (numbers - high * 256).astype(np.int8), SCALES: scales}


def encoded_texts(encode: Callable[[list[str]], np.ndarray], texts: Sequence[str]) -> np.ndarray:
    """The vectors of texts, float32 `(texts, vector_dim)`: texts of similar length are encoded together.

    Args:
        encode: a function of a few texts.
        texts: at least one.
    """
    order, parts, start = np.argsort([-len(text) for text in texts], kind="stable"), [], 0
    while start < len(order):
        size = max(1, min(_BATCH_ROWS, _BATCH_CHARACTERS // max(1, len(texts[order[start]]))))
        parts.append(encode([texts[row] for row in order[start : start + size]]))
        start += size
    return np.concatenate(parts)[np.argsort(order)]


_BATCH_ROWS, _BATCH_CHARACTERS = 64, 2**14


def cut_text(text: str, max_bytes: int | None) -> str:
    """What an exported model reads of a text: its first bytes, without the rest of the last character."""
    return text if max_bytes is None else text.encode()[:max_bytes].decode(errors="ignore")


def _values(column: Any) -> list[Any]:
    """The values of a list, an array, a tensor or a pandas column."""
    column = column.numpy() if hasattr(column, "numpy") else column
    return column.tolist() if hasattr(column, "tolist") else list(column)


def _text(owner: str, row: int, text: Any) -> str:
    text = text.decode(errors="replace") if isinstance(text, bytes) else text
    if not isinstance(text, str):
        raise TypeError(checks.row_message(owner, "every document must be a string", f"{text!r} in row {row}"))
    checks.unicode_text(owner, text, row, "every document must be valid Unicode")
    return text


def _ids(owner: str, ids: list[Any], count: int) -> np.ndarray:
    """Ids as int64, or as an array of strings."""
    checks.length(owner, "ids", ids, count, rule="have an id for each document", unit="ids")
    ids = [name.decode(errors="replace") if isinstance(name, bytes) else name for name in ids]
    are_numbers = all(type(name) is int and -(2**63) <= name < 2**63 for name in ids)
    if not are_numbers and not all(isinstance(name, str) for name in ids):
        raise TypeError(checks.message(owner, "ids", "be strings, or whole numbers of 64 bits", ids[:5]))
    twice = [name for name, times in Counter(ids).items() if times > 1]
    if twice:
        raise ValueError(checks.message(owner, "ids", "be different for each document", twice[:5], "These are twice."))
    return np.array(ids, np.int64) if are_numbers else np.array(ids, object)
