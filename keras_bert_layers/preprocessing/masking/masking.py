"""`Masking`: the settings of masked language modelling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, asdict, dataclass, fields
from typing import Any

from keras_bert_layers._internal import checks


@dataclass(frozen=True, kw_only=True)
class Masking:
    """Which tokens masked language modelling selects, and what replaces them.

    `MaskedLMGenerator`, `BertMaskedLM` and `BertPretrainer` take one as `masking=`, or its fields as keyword arguments.

    Args:
        mask_selection_rate: the share of the tokens to select, in [0, 1).
        mask_selection_length: the largest number of tokens to select in a row; None for no limit.
        mask_token_rate: the share of the selected tokens that become `[MASK]`, in [0, 1].
        random_token_rate: the share of them that become a random token; both shares add up to at most 1. The rest
            stays as it is.
        whole_words: whether all pieces of a word are selected together. A word with more pieces than may still be
            selected is skipped, so that a row may end with fewer. What replaces a piece is drawn for each piece.
        longest_span: the largest number of words in a span; 10 with `whole_words=True` is SpanBERT's rule. Spans begin
            at random words, and their length is drawn; a span ends at a special token, or before a word with more
            pieces than may still be selected. What becomes of tokens (`[MASK]`, random, the same) is drawn once for all
            selected tokens that stand together. Without `whole_words`, spans are of tokens. None for single words, or
            tokens.
        span_stop_rate: the probability that a span ends after a word, in [0, 1); lengths above `longest_span` are drawn
            again, so that 0 makes all lengths equally likely. Without `longest_span`, it changes nothing.
        seed: makes the masks repeatable, call by call; None draws a seed, which `keras.utils.set_random_seed` makes
            repeatable.
        owner: the class to name in errors.

    Raises:
        TypeError: an argument of the wrong type.
        ValueError: an argument out of range.

    Examples:
        >>> Masking(whole_words=True).to_dict()["mask_selection_rate"]
        0.15
        >>> Masking(whole_words=True, longest_span=10).span_stop_rate
        0.2
        >>> Masking.from_arguments("BertMaskedLM", None, {"seed": 3}) == Masking(seed=3)
        True

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 3.1; Joshi et al. 2019,
        https://arxiv.org/abs/1907.10529, section 3.1, and `PairWithSpanMaskingScheme` in facebookresearch/SpanBERT,
        masking.py, for spans.
    """

    mask_selection_rate: float = 0.15
    mask_selection_length: int | None = None
    mask_token_rate: float = 0.8
    random_token_rate: float = 0.1
    whole_words: bool = False
    longest_span: int | None = None
    span_stop_rate: float = 0.2
    seed: int | None = None
    owner: InitVar[str] = "Masking"

    def __post_init__(self, owner: str) -> None:
        for argument, check in (
            ("mask_selection_rate", checks.fraction),
            ("mask_token_rate", checks.share),
            ("random_token_rate", checks.share),
            ("span_stop_rate", checks.fraction),
        ):
            object.__setattr__(self, argument, check(owner, argument, getattr(self, argument)))
        checks.optional(checks.positive_integer, owner, "mask_selection_length", self.mask_selection_length)
        checks.optional(checks.positive_integer, owner, "longest_span", self.longest_span)
        if self.mask_token_rate + self.random_token_rate > 1:
            rule = f"be at most 1 together with `mask_token_rate` ({self.mask_token_rate})"
            raise ValueError(checks.message(owner, "random_token_rate", rule, self.random_token_rate))
        checks.boolean(owner, "whole_words", self.whole_words)
        checks.optional(checks.whole_number, owner, "seed", self.seed)

    @classmethod
    def from_arguments(cls, owner: str, masking: Masking | None, keywords: Mapping[str, Any]) -> Masking:
        """The masking that a class received: as one object, or as keyword arguments.

        Args:
            owner: the class that the user called, for errors.
            masking: its argument `masking`.
            keywords: its other keyword arguments; each must be a field of this class.

        Returns:
            `masking`, or a new object with the keywords as its fields.

        Raises:
            TypeError: a keyword that is not a field; keywords beside `masking`; a `masking` of another type; a field of
                the wrong type.
            ValueError: a field out of range.
        """
        unknown = sorted(set(keywords) - {field.name for field in fields(cls)})
        if unknown:
            raise TypeError(f"`{owner}`: unexpected keyword argument `{unknown[0]}`.")
        if masking is None:
            return cls(**keywords, owner=owner)
        cure = "Make one with `keras_bert_layers.preprocessing.Masking(...)`."
        checks.instance(owner, "masking", masking, Masking, cure)
        if keywords:
            rule = f"be given without {', '.join(f'`{keyword}`' for keyword in keywords)}"
            raise TypeError(checks.message(owner, "masking", rule, masking, "Set the fields of the `Masking`."))
        return masking

    def to_dict(self) -> dict[str, Any]:
        """The fields, as `get_config` of the classes that take them as keyword arguments stores them."""
        return asdict(self)
