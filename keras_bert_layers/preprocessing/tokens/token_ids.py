"""The ids of all tokens of a tokenizer: its vocabulary, the added tokens and the special ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.preprocessing.tokens.markers import MAX_PIECES

OWNER = "AddedToken"
# SentencePiece trains pieces of up to 512 characters; tensorflow-text ends the process on one of 300,000.
MAX_PIECE_CHARACTERS = 10_000
_SURROGATE = re.compile("[\ud800-\udfff]")


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
        special: whether it is a marker rather than a word. It decides the default of `normalized`, and is written to
            files.

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


class TokenIds:
    """Ids by token and tokens by id, as the library `tokenizers` numbers them.

    An added token that the vocabulary has keeps its id. The others get the ids after the vocabulary, one by one.

    Args:
        vocabulary: the tokens in order of their ids. Of equal tokens the last counts.
        added: the added tokens, in order. Of tokens with equal content the last counts.
        owner: the tokenizer's class, for errors.

    Attributes:
        tokens: every token, in order of the ids.
    """

    def __init__(self, vocabulary: Sequence[str], added: Sequence[AddedToken] = (), *, owner: str = "BertTokenizer"):
        self._owner = owner
        self._ids = {token: token_id for token_id, token in enumerate(vocabulary)}
        self.tokens = list(vocabulary)
        # If the vocabulary has a token twice, the library's first new id can be one of the vocabulary's.
        new_id = len(self._ids)
        for token in added:
            if token.content not in self._ids:
                self._ids[token.content] = new_id
                self.tokens[new_id : new_id + 1] = [token.content]
            new_id = max(new_id, self._ids[token.content] + 1)

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def id_of(self, token: str, cure: str = "") -> int:
        """The id of a token; ValueError if there is none."""
        if token not in self._ids:
            raise ValueError(checks.message(self._owner, "token", "be a token of the vocabulary", token, cure))
        return self._ids[token]

    def token_of(self, token_id: int) -> str:
        """The token with an id; ValueError if there is none."""
        if not 0 <= token_id < len(self.tokens):
            rule = f"be at least 0 and less than {len(self.tokens)}, the size of the vocabulary"
            raise ValueError(checks.message(self._owner, "token_id", rule, token_id))
        return self.tokens[token_id]


def checked_vocabulary(owner: str, vocabulary: Any, *, kind: str) -> list[str]:
    """The tokens of a list.

    Args:
        owner: the tokenizer's class, for errors.
        vocabulary: the argument of that name.
        kind: what its members are called, such as `"piece"`.

    Raises:
        TypeError: it is not a list of strings.
        ValueError: there are too many, one is too long, or one is there twice.
    """
    if isinstance(vocabulary, str) or not isinstance(vocabulary, Sequence):
        cure = "`load_tokenizer(directory)` reads the files of a checkpoint."
        raise TypeError(checks.message(owner, "vocabulary", f"be a list of {kind}s", vocabulary, cure))
    tokens = list(vocabulary)
    wrong = next((token for token in tokens if not isinstance(token, str)), None)
    if wrong is not None:
        raise TypeError(checks.message(owner, "vocabulary", "hold strings only", wrong))
    if len(tokens) > MAX_PIECES:
        rule = f"hold at most {MAX_PIECES:,} {kind}s"
        raise ValueError(checks.message(owner, "vocabulary", rule, checks.Shown(f"{len(tokens):,} {kind}s")))
    longest = max(map(len, tokens), default=0)
    if longest > MAX_PIECE_CHARACTERS:
        rule = f"hold {kind}s of at most {MAX_PIECE_CHARACTERS:,} characters"
        raise ValueError(checks.message(owner, "vocabulary", rule, checks.Shown(f"one of {longest:,} characters")))
    broken = next(filter(_SURROGATE.search, tokens), None)
    if broken is not None:
        raise ValueError(checks.message(owner, "vocabulary", "be Unicode text, without lone surrogates", broken))
    if len(set(tokens)) < len(tokens):
        twice = Counter(tokens).most_common(1)[0][0]
        raise ValueError(checks.message(owner, "vocabulary", f"hold each {kind} once", twice))
    return tokens


def checked_special_tokens(
    owner: str, ids: TokenIds, roles: Mapping[str, str], special: Sequence[str] | None, stripping: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The special tokens that are found in raw text, those of the roles if `special` is None, and the stripping ones.

    Raises:
        ValueError: one of them is not in the vocabulary.
    """
    found = list(dict.fromkeys(roles.values())) if special is None else list(special)
    given = {f"{role}_token": [token] for role, token in roles.items()}
    given |= {"special_tokens": found, "stripping_tokens": list(stripping)}
    for argument, token in ((argument, token) for argument, tokens in given.items() for token in tokens):
        if token not in ids:
            cure = "Special tokens are part of the vocabulary; a score of None keeps a token out of the model."
            raise ValueError(checks.message(owner, argument, "be in the vocabulary", token, cure))
    return found, list(stripping)
