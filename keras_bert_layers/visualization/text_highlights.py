"""`TextHighlights`: a text with marked entities, or a marked answer."""

from __future__ import annotations

from collections.abc import Sequence

from keras_bert_layers._internal import checks
from keras_bert_layers.tasks import BertQuestionAnswerer, BertTokenClassifier
from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization.picture import Picture

Span = tuple[int, int, str, float | None]


class TextHighlights(Picture):
    """A text with marked and labelled parts, and a table of them.

    Args:
        text: the text.
        spans: `(start, end, label, score)` each, in characters of the text; a score of None is not shown.
        title: heading.
        note: what the picture shows.

    Raises:
        ValueError: a span is empty, is not in the text, or overlaps another.

    Examples:
        >>> picture = TextHighlights("Ann saw Rome.", [(0, 3, "person", 0.9), (8, 12, "place", None)])
        >>> picture.html().count("<mark")
        2
    """

    def __init__(self, text: str, spans: Sequence[Span], *, title: str = "Found in the text", note: str = ""):
        super().__init__(title=title, note=note)
        self.text = text
        self.spans: list[Span] = sorted(((*span,) for span in spans), key=lambda span: span[:2])
        end_before = 0
        for span in self.spans:
            start, end = span[:2]
            if not end_before <= start < end <= len(text):
                rule = f"be in the {len(text)} characters of the text and not overlap"
                raise ValueError(checks.message(type(self).__name__, "spans", rule, span))
            end_before = end
        self.labels = list(dict.fromkeys(span[2] for span in self.spans))

    @classmethod
    def from_entities(cls, model: BertTokenClassifier, text: str) -> TextHighlights:
        """Marks the entities that a token classifier finds in a text.

        Args:
            model: a `BertTokenClassifier` with a preprocessor.
            text: the text.

        Raises:
            TypeError: `model` is not a BertTokenClassifier; `text` is not a string.
        """
        checks.instance(cls.__name__, "model", model, BertTokenClassifier)
        checks.instance(cls.__name__, "text", text, str)
        found = model.answer([text])
        columns = (found[f"entity_{name}"][0].tolist() for name in ("start", "end", "label", "score"))
        spans = [
            (_characters(text, start), _characters(text, end), label, score)
            for start, end, label, score in zip(*columns, strict=True)
            if start >= 0
        ]
        return cls(text, spans, title="Entities", note="" if spans else "The model found no entities.")

    @classmethod
    def from_answer(cls, model: BertQuestionAnswerer, question: str, context: str) -> TextHighlights:
        """Marks the answer that a question answerer finds in a text.

        Args:
            model: a `BertQuestionAnswerer` with a preprocessor.
            question: the question.
            context: the text to find the answer in.

        Raises:
            TypeError: `model` is not a BertQuestionAnswerer; a text is not a string.
        """
        checks.instance(cls.__name__, "model", model, BertQuestionAnswerer)
        checks.instance(cls.__name__, "question", question, str)
        checks.instance(cls.__name__, "context", context, str)
        found = {name: values[0] for name, values in model.answer(([question], [context])).items()}
        start, end = (_characters(context, int(found[side])) for side in ("start", "end"))
        spans = [(start, end, "answer", float(found["score"]))] if found["answer"] else []
        nothing = html.percent(float(found["no_answer_probability"]))
        return cls(context, spans, title=question, note=f"Probability that the text holds no answer: {nothing}.")

    def _body(self) -> list[html.Element]:
        pieces: list[html.Element | str] = []
        end_before = 0
        for start, end, label, _ in self.spans:
            category = self.labels.index(label) % len(colors.CATEGORIES)
            part, small = html.isolated(self.text[start:end]), html.element("small", label)
            pieces += [self.text[end_before:start], html.element("mark", part, " ", small, class_=f"c{category}")]
            end_before = end
        text = html.element("p", *pieces, self.text[end_before:], class_="text", dir="auto", translate="no")
        return [text, self._table()] if self.spans else [text]

    def _table(self) -> html.Element:
        rows = [
            [
                html.isolated(self.text[start:end]),
                label,
                html.number("" if score is None else html.percent(score)),
                html.number(f"{start} to {end}"),
            ]
            for start, end, label, score in self.spans
        ]
        return html.table("What was found, in the order of the text.", ["part", "label", "score", "characters"], rows)


def _characters(text: str, num_bytes: int) -> int:
    """The number of characters in the first bytes of a text; a character that is cut counts."""
    return len(text.encode()[:num_bytes].decode(errors="replace"))
