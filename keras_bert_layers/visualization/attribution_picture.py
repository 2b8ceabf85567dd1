"""`AttributionPicture`: the words of texts, marked by how much each raised or lowered a logit."""

from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.tasks import Attribution
from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization.picture import Picture

# Of the largest score of a text; a word below it is not marked.
_LEAST = 0.1
_NOTE = (
    "A word with a score above 0 spoke for the answer that is named above the text, one below 0 against it. The scores "
    "add up to the difference of its logit."
)


class AttributionPicture(Picture):
    """The words of texts with their scores, marked by sign and strength, and a table of all scores.

    Args:
        attributions: what `attribute` of a task returned: an `Attribution`, or a list of them.
        title: heading.
        note: what the picture shows.

    Raises:
        TypeError: `attributions` are something else.

    Examples:
        >>> import numpy as np
        >>> scores, none = np.array([0.0, 1.5, -0.5, 0.0]), np.full(4, -1)
        >>> tokens, words = ["[CLS]", "good", "film", "[SEP]"], ["good", "film"]
        >>> found = Attribution("positive", tokens, scores, words, scores[1:3], none, none, 1.0, 0.0, 32)
        >>> AttributionPicture(found).html().count("<mark")
        2
    """

    def __init__(self, attributions: Any, *, title: str = "Which words decided", note: str = _NOTE):
        super().__init__(title=title, note=note)
        self.attributions = [attributions] if isinstance(attributions, Attribution) else list(attributions)
        for found in self.attributions:
            checks.instance(type(self).__name__, "attributions", found, Attribution)

    def _body(self) -> list[html.Element]:
        return [part for found in self.attributions for part in _described(found)]


def _described(found: Attribution) -> list[html.Element]:
    """A line of facts, the text with marked words, the columns beside it, and the scores."""
    scores = [*found.word_scores.tolist(), *found.column_scores.tolist()]
    sums = f"scores add up to {sum(scores):+.3f}, difference {found.difference:+.3f}"
    facts = html.element("p", html.isolated(found.target), f": {sums}, error {found.error:.1e}, {found.steps} points")
    largest = max(map(abs, scores), default=0.0) or 1.0
    pieces, rows = [], []
    for name, score in zip([*found.words, *found.columns], scores, strict=True):
        share, index = abs(score) / largest, 0 if score > 0 else 1
        shade = f"background: color-mix(in srgb, {colors.tint(index).css()} {share:.0%}, var(--surface))"
        label = [html.isolated(name), "\u00a0", html.element("small", f"{score:+.2f}")]
        is_marked = share >= _LEAST
        pieces += [html.element("mark", *label, class_=f"c{index}", style=shade) if is_marked else label[0], " "]
        rows.append([html.isolated(name), html.number(f"{score:+.3f}")])
    cut, kind = 2 * len(found.words), "word or column" if found.columns else "word"
    parts = [part for part in (pieces[:cut], pieces[cut:]) if part]
    return [
        facts,
        *(html.element("p", *part, class_="text", dir="auto", translate="no") for part in parts),
        html.table(f"The score of each {kind}, in the order of the text.", [kind, "for (+) or against (-)"], rows),
    ]
