"""`MaskedTokens`: the predictions of a masked language model."""

from __future__ import annotations

from collections.abc import Sequence

from keras_bert_layers._internal import checks
from keras_bert_layers.preprocessing.tokens.markers import MASK
from keras_bert_layers.tasks import BertMaskedLM
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization.picture import Picture

_BAR_WIDTH = 128  # pixels, of a probability of 1


class MaskedTokens(Picture):
    """The most probable tokens for each `[MASK]` of a text, as bars.

    Args:
        text: the text, with `[MASK]` in it.
        tokens: a list of tokens for each mask, the most probable first.
        probabilities: the probability of each token.
        title: heading.
        note: what the picture shows.

    Raises:
        ValueError: there is no mask in the text, or the lists do not match the masks.

    Examples:
        >>> picture = MaskedTokens("It [MASK].", [["rains", "snows"]], [[0.7, 0.2]])
        >>> "rains" in picture.html()
        True

    References:
        Devlin et al. 2018, arXiv:1810.04805, section 3.1 (the masked language model).
    """

    def __init__(
        self,
        text: str,
        tokens: Sequence[Sequence[str]],
        probabilities: Sequence[Sequence[float]],
        *,
        title: str = "Words for each mask",
        note: str = "",
    ):
        super().__init__(title=title, note=note or _NOTE)
        count = text.count(MASK)
        if not count:
            raise ValueError(checks.message(type(self).__name__, "text", f"hold {MASK}", text))
        sizes = [len(row) for row in tokens]
        if len(sizes) != count or sizes != [len(row) for row in probabilities]:
            rule = f"be one list for each of the {count} masks, with a probability for each token"
            raise ValueError(checks.message(type(self).__name__, "tokens", rule, tokens))
        self.text = text
        self.tokens = [list(row) for row in tokens]
        self.probabilities = [[float(share) for share in row] for row in probabilities]

    @classmethod
    def from_model(cls, model: BertMaskedLM, text: str) -> MaskedTokens:
        """Predicts the masks of a text; `top_k` of the model is how many tokens each mask gets.

        Args:
            model: a `BertMaskedLM` with a preprocessor.
            text: a text with `[MASK]` in it. A mask beyond the preprocessor's `max_length` gets no tokens.

        Raises:
            TypeError: `model` is not a BertMaskedLM.
            ValueError: there is no mask in the text.
        """
        checks.instance(cls.__name__, "model", model, BertMaskedLM)
        if not isinstance(text, str) or MASK not in text:
            raise ValueError(checks.message(cls.__name__, "text", f"hold {MASK}", text))
        answer = model.answer([text])
        tokens, probabilities = [], []
        for names, shares in zip(answer["token"][0], answer["probability"][0].tolist(), strict=True):
            count = sum(share >= 0 for share in shares)  # padding is -1
            tokens.append(names[:count].tolist())
            probabilities.append(shares[:count])
        return cls(text, tokens, probabilities)

    def _body(self) -> list[html.Element]:
        count = len(self.tokens)
        numbers = [f"{index + 1}" for index in range(count)] if count > 1 else [""]
        first, *others = self.text.split(MASK)
        pieces = [part for pair in zip(map(_mark, numbers), others, strict=True) for part in pair]
        text = html.element("p", first, *pieces, class_="text", dir="auto", translate="no")
        return [text, *map(_table, numbers, self.tokens, self.probabilities)]


_NOTE = "The model's most probable tokens for each mask. A token that starts with ## continues the word before it."


def _mark(number: str) -> html.Element:
    return html.element("mark", MASK, *([" ", html.element("small", number)] if number else []), class_="c0")


def _table(number: str, tokens: Sequence[str], probabilities: Sequence[float]) -> html.Element:
    """The tokens for one mask."""
    rows = [
        [html.token(name), html.number(html.percent(share)), html.drawing(_BAR_WIDTH, 12, [bar])]
        for name, share in zip(tokens, probabilities, strict=True)
        for bar in [html.bar(0, 0, max(1, _BAR_WIDTH * share), 12)]
    ]
    caption = f"Mask {number}".strip() + ("" if rows else " is beyond what the model reads.")
    return html.table(caption, ["token", "probability", "as a bar"], rows)
