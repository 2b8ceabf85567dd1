"""`MatchPicture`: which tokens of a document the tokens of a query match."""

from __future__ import annotations

from collections.abc import Sequence

from keras_bert_layers._internal import checks
from keras_bert_layers.tasks import BertMultiVectorEncoder, TokenMatch
from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization.picture import Picture

_NOTE = (
    "Marked parts of the document are the best match of a token of the query, which is beside them. The darker, the "
    "more they add to the score. Special tokens match too, and are in the table alone."
)


class MatchPicture(Picture):
    """A document with the parts that the tokens of a query match, and a table of all matches.

    Args:
        matches: what `BertMultiVectorEncoder.explain` returned.
        document: the document that it was given.
        title: heading.
        note: what the picture shows.

    Raises:
        TypeError: `matches` are something else.
        ValueError: a match is not in the document.

    Examples:
        >>> from keras_bert_layers.tasks import TokenMatch
        >>> found = [TokenMatch("[CLS]", "[CLS]", 0.9, -1, -1), TokenMatch("rain", "rain", 0.8, 6, 10)]
        >>> MatchPicture(found, "Heavy rain.").html().count("<mark")
        1
    """

    def __init__(self, matches: Sequence[TokenMatch], document: str, *, title: str = "What matched", note: str = _NOTE):
        super().__init__(title=title, note=note)
        owner = type(self).__name__
        self.matches = [checks.instance(owner, "matches", match, TokenMatch) for match in matches]
        self.document = checks.instance(owner, "document", document, str)
        for match in self.matches:
            if match.end > len(document.encode()):
                raise ValueError(checks.message(owner, "matches", "be in the document", match))

    @classmethod
    def from_model(cls, model: BertMultiVectorEncoder, query: str, document: str) -> MatchPicture:
        """What `model.explain` says of a query and a document."""
        checks.instance(cls.__name__, "model", model, BertMultiVectorEncoder)
        return cls(model.explain(query, document), document, title=f"What matched “{query}”")

    def _body(self) -> list[html.Element]:
        by_place: dict[tuple[int, int], list[TokenMatch]] = {}
        for match in sorted(self.matches, key=lambda match: match.start):
            by_place.setdefault((match.start, match.end), []).append(match)
        by_place.pop((-1, -1), None)
        sums = {place: max(0.0, sum(match.score for match in found)) for place, found in by_place.items()}
        largest, read = max(sums.values(), default=0.0) or 1.0, self.document.encode()
        pieces, before = [], 0
        for (start, end), found in by_place.items():
            shade = f"{colors.tint(0).css()} {sums[start, end] / largest:.0%}"
            names = ", ".join(dict.fromkeys(match.token for match in found))
            label = [html.isolated(_text(read, start, end)), "\u00a0", html.element("small", html.token(names))]
            style = f"background: color-mix(in srgb, {shade}, var(--surface))"
            pieces += [_text(read, before, start), html.element("mark", *label, class_="c0", style=style)]
            before = end
        text = html.element("p", *pieces, _text(read, before, len(read)), class_="text", dir="auto", translate="no")
        rows = [
            [html.token(match.token), html.token(match.document_token), html.number(f"{match.score:.3f}")]
            for match in self.matches
        ]
        total = html.element("p", f"The score is {sum(match.score for match in self.matches):.3f}.")
        return [total, text, html.table(_CAPTION, ["query", "document", "cosine"], rows)]


_CAPTION = "The token of the document that each token of the query matches best; the cosines add up to the score."


def _text(read: bytes, start: int, end: int) -> str:
    """The text of some bytes."""
    return read[start:end].decode(errors="replace")
