"""Parts of a text that a model found, marked in it."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Sequence
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.tasks import BertQuestionAnswerer, BertTokenClassifier
from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization._figures import plain, write
from keras_bert_layers.visualization.picture import Picture

_COLUMNS = 70  # letters in a line of the figure
Span = tuple[int, int, str, float | None]


class TextHighlights(Picture):
    """A text with parts of it marked, each with its label, and a table of them.

    Args:
        text: the text.
        spans: `(start, end, label, score)` each, counted in characters of the text; a score of None is not shown.
        title: heading.
        note: what there is to see.

    Raises:
        ValueError: a span that is empty, does not lie in the text, or overlaps another.

    Examples:
        >>> picture = TextHighlights("Ann saw Rome.", [(0, 3, "person", 0.9), (8, 12, "place", None)])
        >>> picture.html().count("<mark")
        2
    """

    def __init__(self, text: str, spans: Sequence[Span], *, title: str = "Found in the text", note: str = ""):
        super().__init__(title=title, note=note)
        self.text = text
        self.spans = sorted(
            ((start, end, label, score) for start, end, label, score in spans), key=lambda span: span[:2]
        )
        end_before = 0
        for span in self.spans:
            start, end = span[:2]
            if not end_before <= start < end <= len(text):
                rule = f"lie in the {len(text)} characters of the text, one behind the other"
                raise ValueError(checks.message(type(self).__name__, "spans", rule, span))
            end_before = end
        self.labels = list(dict.fromkeys(span[2] for span in self.spans))

    @classmethod
    def from_entities(cls, model: BertTokenClassifier, text: str) -> TextHighlights:
        """The entities that a token classifier finds in a text.

        Args:
            model: a `BertTokenClassifier` with a preprocessor.
            text: the text.

        Raises:
            TypeError: `model` is none; `text` is not a string.
        """
        if not isinstance(model, BertTokenClassifier):
            raise TypeError(checks.message(cls.__name__, "model", "be a BertTokenClassifier", model))
        _check_text(cls.__name__, "text", text)
        found = model.answer([text])
        columns = (found[f"entity_{name}"][0].tolist() for name in ("start", "end", "label", "score"))
        spans = [
            (_characters(text, start), _characters(text, end), label.decode(), score)
            for start, end, label, score in zip(*columns, strict=True)
            if start >= 0
        ]
        return cls(text, spans, title="Entities", note="" if spans else "The model found none.")

    @classmethod
    def from_answer(cls, model: BertQuestionAnswerer, question: str, context: str) -> TextHighlights:
        """The answer that a question answerer finds in a text.

        Args:
            model: a `BertQuestionAnswerer` with a preprocessor.
            question: the question.
            context: the text with the answer in it.

        Raises:
            TypeError: `model` is none; a text is not a string.
        """
        if not isinstance(model, BertQuestionAnswerer):
            raise TypeError(checks.message(cls.__name__, "model", "be a BertQuestionAnswerer", model))
        _check_text(cls.__name__, "question", question)
        _check_text(cls.__name__, "context", context)
        found = {name: values[0] for name, values in model.answer(([question], [context])).items()}
        start, end = (_characters(context, int(found[side])) for side in ("start", "end"))
        spans = [(start, end, "answer", float(found["score"]))] if found["answer"] else []
        nothing = html.percent(float(found["no_answer_probability"]))
        return cls(context, spans, title=question, note=f"That the text holds no answer: {nothing}.")

    def _body(self) -> str:
        parts, place = [], 0
        for start, end, label, _ in self.spans:
            parts.append(html.escape(self.text[place:start]))
            color = self.labels.index(label) % len(colors.CATEGORIES)
            marked = f"{html.isolated(self.text[start:end])} <small>{html.escape(label)}</small>"
            parts.append(f'<mark class="c{color}">{marked}</mark>')
            place = end
        parts.append(html.escape(self.text[place:]))
        text = f'<p class="text" dir="auto" translate="no">{"".join(parts)}</p>'
        return f"{text}\n{self._table()}" if self.spans else text

    def _table(self) -> str:
        rows = [
            [
                html.isolated(self.text[start:end]),
                f"<td>{html.escape(label)}</td>",
                html.number("" if score is None else html.percent(score)),
                html.number(f"{start} to {end}"),
            ]
            for start, end, label, score in self.spans
        ]
        header = ["part", "label", "score", "characters"]
        return html.scroll("What was found", html.table("What was found, in the order of the text.", header, rows))

    def _lines(self) -> list[tuple[int, str]]:
        """The text in lines for the figure, each with the place of its first character."""
        shown = "".join(" " if character.isspace() else character for character in self.text)
        lines = textwrap.wrap(shown, _COLUMNS, drop_whitespace=False, break_on_hyphens=False) or [""]
        starts = [sum(len(line) for line in lines[:count]) for count in range(len(lines))]
        return list(zip(starts, lines, strict=True))

    def _size(self) -> tuple[float, float]:
        return 0.5 + 0.09 * _COLUMNS, 0.8 + 0.5 * len(self._lines())

    def _draw(self, figure: Any) -> None:
        axes = figure.subplots()
        lines = self._lines()
        for row, (first, line) in enumerate(lines):
            for start, end, label, _ in self.spans:
                left, right = max(start, first) - first, min(end, first + len(line)) - first
                if left < right:
                    index = self.labels.index(label)
                    axes.barh(row, right - left, left=left, height=0.45, color=colors.tint(index).light)
                    if start >= first:
                        ink = colors.CATEGORIES[index % len(colors.CATEGORIES)].light
                        write(axes, left, row + 0.38, label, fontsize=7, color=ink, va="center")
            for left, piece in _pieces(line):
                middle = left + len(piece) / 2
                write(axes, middle, row, piece, ha="center", va="center", fontsize=10, family="DejaVu Sans Mono")
        plain(axes.title, self.title)
        axes.set(xlim=(-0.5, _COLUMNS + 0.5), ylim=(len(lines) - 0.3, -0.7))
        axes.set_axis_off()


def _check_text(owner: str, argument: str, text: Any) -> None:
    if not isinstance(text, str):
        raise TypeError(checks.message(owner, argument, "be a string", text))


def _pieces(line: str) -> list[tuple[int, str]]:
    """What is drawn at once, with its place: letters one by one, but whole words that run from right to left."""
    pieces: list[tuple[int, str]] = []
    for match in re.finditer(r"\S+", line):
        word = match.group()
        if any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in word):
            pieces.append((match.start(), word))
        else:
            pieces += enumerate(word, start=match.start())
    return pieces


def _characters(text: str, num_bytes: int) -> int:
    """How many characters of the text its first bytes are; one that is cut counts."""
    return len(text.encode()[:num_bytes].decode(errors="replace"))
