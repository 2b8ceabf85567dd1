"""The page on which `demo` shows a search: a query, and the passages that it finds."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert_layers.cli.rest_model import RestModel
from keras_bert_layers.export.json_request import DEFAULT_SIGNATURE

_QUERY, _DOCUMENT = "query", "document"
# Parts of a passage are so many words, of which half are of the next part too; more words are not looked at.
_PART, _MOST_WORDS = 6, 300
# A part is marked if it is so similar to the query, as a share of the most similar part of the passage.
_MARKED = 0.9


class SearchPage:
    """Shows what an exported search finds, as HTML.

    A file that can encode texts alone, as a SavedModel, also shows which words of a passage are most similar to the
    query: those of its most similar parts, or the word that the answer itself names by its bytes.

    Args:
        model: the exported search.
    """

    def __init__(self, model: RestModel):
        self._model = model

    def warm_up(self) -> None:
        """Answers once, as the first answer may take longer than a request may."""
        self.result("query")

    def result(self, query: str) -> str:
        """The passages for a query, as a list."""
        answer = self._model.step(DEFAULT_SIGNATURE, {"query": _column([query])})
        texts = [text.decode(errors="replace") for text in answer["text"][0]]
        marks = _words_at(texts, answer) if "start" in answer else self._marks(query, texts)
        rows = zip(answer["id"][0], answer["score"][0], texts, strict=True)
        items = [
            f"<li><b>{html.escape(_shown(name))}</b> {score:.3f}<p>{_marked(text, marks.get(row, set()))}</p></li>"
            for row, (name, score, text) in enumerate(rows)
        ]
        return f"<ol>{''.join(items)}</ol>" if items else "<p>The corpus is empty.</p>"

    def _marks(self, query: str, texts: list[str]) -> dict[int, set[int]]:
        """The numbers of the words to mark in each text."""
        parts = [(row, start, " ".join(part)) for row, text in enumerate(texts) for start, part in _parts(text)]
        if not parts or _DOCUMENT not in self._model.inputs:
            return {}
        scores = self._vectors(_DOCUMENT, [text for *_, text in parts]) @ self._vectors(_QUERY, [query])[0]
        found: dict[int, set[int]] = {}
        rows = np.array([row for row, *_ in parts])
        for (row, start, text), score in zip(parts, scores, strict=True):
            if score >= _MARKED * scores[rows == row].max():
                found.setdefault(row, set()).update(range(start, start + len(text.split())))
        return found

    def _vectors(self, side: str, texts: list[str]) -> np.ndarray:
        """The vectors of texts, dense ones or weights of the vocabulary."""
        found = self._model.step(side, {"text": _column(texts)})
        return found["weights" if "weights" in found else "embedding"]


def _words_at(texts: Sequence[str], answer: Mapping[str, Any]) -> dict[int, set[int]]:
    """The number of the word in each text at the bytes of an answer."""
    found: dict[int, set[int]] = {}
    for row, (text, start, end) in enumerate(zip(texts, answer["start"][0], answer["end"][0], strict=True)):
        if start < end:
            before = text.encode()[:start].decode(errors="replace")
            found[row] = {len(before.split()) - (before != "" and not before[-1].isspace())}
    return found


def _parts(text: str) -> Iterator[tuple[int, list[str]]]:
    """Parts of a text: the number of the first word, and the words."""
    words = text.split()[:_MOST_WORDS]
    for start in range(0, max(1, len(words) - _PART // 2), _PART // 2) if words else ():
        yield start, words[start : start + _PART]


def _marked(text: str, words: set[int]) -> str:
    """A text as HTML, with some of its words marked."""
    number, shown, is_marked = -1, [], False
    for piece in re.split(r"(\s+)", text):
        is_word = bool(piece.strip())
        number += is_word
        is_next = number in words if is_word else is_marked and number + 1 in words
        shown.append(("</mark>" if is_marked else "<mark>") * (is_next != is_marked) + html.escape(piece))
        is_marked = is_next
    return "".join(shown) + "</mark>" * is_marked


def _column(texts: list[str]) -> np.ndarray:
    return np.array([text.encode() for text in texts], object)


def _shown(name: Any) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)
