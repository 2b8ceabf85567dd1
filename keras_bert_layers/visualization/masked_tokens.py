"""What a model would write in place of each mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.preprocessing.vocabulary import MASK
from keras_bert_layers.tasks import BertMaskedLM
from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization._figures import label_ticks, write
from keras_bert_layers.visualization.picture import Picture

_BAR_WIDTH = 8  # em, of a probability of 1


class MaskedTokens(Picture):
    """The most probable tokens for each `[MASK]` of a text, as bars.

    Args:
        text: the text, with `[MASK]` in it.
        tokens: for each mask a list of tokens, the most probable first.
        probabilities: for each of them its probability.
        title: heading.
        note: what there is to see.

    Raises:
        ValueError: there is no mask in the text, or not one list of tokens and of probabilities for each.

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
        """What a masked language model answers for a text; as many tokens a mask as its `top_k`.

        Args:
            model: a `BertMaskedLM` with a preprocessor.
            text: a text with `[MASK]` in it. Of a mask beyond the preprocessor's `max_length` nothing is shown.

        Raises:
            TypeError: `model` is none.
            ValueError: there is no mask in the text.
        """
        if not isinstance(model, BertMaskedLM):
            raise TypeError(checks.message(cls.__name__, "model", "be a BertMaskedLM", model))
        if not isinstance(text, str) or MASK not in text:
            raise ValueError(checks.message(cls.__name__, "text", f"hold {MASK}", text))
        answer = model.answer([text])
        tokens, probabilities = [], []
        for names, shares in zip(answer["token"][0], answer["probability"][0].tolist(), strict=True):
            is_read = [share >= 0 for share in shares]
            tokens.append([name.decode() for name, read in zip(names, is_read, strict=True) if read])
            probabilities.append([share for share in shares if share >= 0])
        return cls(text, tokens, probabilities)

    def _body(self) -> str:
        pieces = [html.escape(piece) for piece in self.text.split(MASK)]
        numbers = [self._number(place, " <small>{}</small>") for place in range(len(self.tokens))]
        marks = [f'<mark class="c0">{MASK}{number}</mark>' for number in numbers]
        text = "".join(piece + mark for piece, mark in zip(pieces, [*marks, ""], strict=True))
        tables = "\n".join(self._table(place) for place in range(len(self.tokens)))
        return f'<p class="text" dir="auto" translate="no">{text}</p>\n{tables}'

    def _number(self, place: int, form: str = " {}") -> str:
        """What follows the word "mask"; a single one needs no number."""
        return "" if len(self.tokens) == 1 else form.format(place + 1)

    def _table(self, place: int) -> str:
        rows = [
            [html.token(token), html.number(html.percent(share)), f"<td>{_bar(share)}</td>"]
            for token, share in zip(self.tokens[place], self.probabilities[place], strict=True)
        ]
        caption = f"Mask{self._number(place)}" + ("" if rows else " lies beyond what the model reads.")
        return html.scroll(caption, html.table(caption, ["token", "probability", "as a bar"], rows))

    def _size(self) -> tuple[float, float]:
        return 6.0, 1.0 + sum(0.6 + 0.3 * len(row) for row in self.tokens)

    def _draw(self, figure: Any) -> None:
        all_axes = figure.subplots(len(self.tokens), squeeze=False)[:, 0]
        for place, axes in enumerate(all_axes):
            shares = self.probabilities[place]
            axes.barh(range(len(shares)), shares, color=colors.ACCENT.light)
            label_ticks(axes.yaxis, self.tokens[place])
            axes.set(xlim=(0, 1.12), title=f"mask{self._number(place)}")
            axes.invert_yaxis()
            for row, share in enumerate(shares):
                write(axes, share, row, f" {html.percent(share)}", va="center", fontsize=8)
        all_axes[-1].set_xlabel("probability")


_NOTE = "The model's most probable tokens for each mask. A token that starts with ## goes on with the word before it."


def _bar(share: float) -> str:
    return f'<span class="bar" aria-hidden="true" style="width: {_BAR_WIDTH * share:.2f}em"></span>'
