"""`ClassificationError`: a text in a wrong class."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClassificationError:
    """A text that a classifier assigned to a wrong class.

    Args:
        row: the index of the text.
        text: the text, or a tuple of two.
        label: the name of its class.
        predicted: the name of the predicted class.
        probability: of the predicted class.
        label_probability: of the text's own class.
        tokens: the tokens that the model read, special tokens included.
        weights: for each token, how much the probability of the predicted class falls if the token is replaced by the
            unknown token; 0 for special tokens.
    """

    row: int
    text: str | tuple[str, ...]
    label: str
    predicted: str
    probability: float
    label_probability: float
    tokens: list[str]
    weights: list[float]
