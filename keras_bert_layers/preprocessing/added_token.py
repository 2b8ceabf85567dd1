"""A token that is found in raw text before the text is split into words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from keras_bert_layers._internal import checks

OWNER = "AddedToken"


@dataclass(frozen=True)
class AddedToken:
    """A token that `BertTokenizer` finds in the text as it is written, also inside a word.

    transformers has them as `add_tokens`, `additional_special_tokens` and `tokenizers.AddedToken`. At each place the
    longest token is taken, from left to right. Tokens that are not `normalized` go first; the others are looked for
    in what is left of the text.

    Args:
        content: the text.
        single_word: whether letters, digits or underscores on either side keep it from being found.
        lstrip: whether whitespace before it belongs to it.
        rstrip: whether whitespace after it belongs to it.
        normalized: whether it is lower-cased and stripped of accents, as the text is, before it is looked for; None for
            the opposite of `special`.
        special: whether it is a marker and no word. It decides the default of `normalized`, and is written to files.

    Raises:
        TypeError: an argument of the wrong type.
        ValueError: `content` is empty, or holds NUL, U+0001 or a lone surrogate.

    Examples:
        >>> AddedToken("[E1]", special=True).normalized
        False
    """

    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool | None = None
    special: bool = False

    def __post_init__(self) -> None:
        checks.instance(OWNER, "content", self.content, str)
        if not self.content or any(c in "\x00\x01" or "\ud800" <= c <= "\udfff" for c in self.content):
            rule = "hold text, without NUL, U+0001 and lone surrogates"
            raise ValueError(checks.message(OWNER, "content", rule, self.content))
        for name in ("single_word", "lstrip", "rstrip", "special"):
            checks.boolean(OWNER, name, getattr(self, name))
        normalized = checks.optional(checks.boolean, OWNER, "normalized", self.normalized)
        object.__setattr__(self, "normalized", not self.special if normalized is None else normalized)

    @classmethod
    def of(cls, value: AddedToken | Mapping[str, Any] | str) -> AddedToken:
        """The token itself, or from its arguments, or a word with the default settings."""
        if isinstance(value, AddedToken):
            return value
        return cls(**value) if isinstance(value, Mapping) else cls(value)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return asdict(self)
