"""Reads and checks WordPiece vocabularies."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks

PAD = "[PAD]"
UNKNOWN = "[UNK]"
START = "[CLS]"
SEPARATOR = "[SEP]"
MASK = "[MASK]"
REQUIRED_TOKENS = (PAD, UNKNOWN, START, SEPARATOR)
SPECIAL_TOKENS = (*REQUIRED_TOKENS, MASK)

OWNER = "BertTokenizer"


class _Shown(str):
    """A summary of a vocabulary for errors, shown without the quotes of a string."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def load_vocabulary(source: str | os.PathLike[str] | Sequence[str]) -> list[str]:
    """Reads and checks the tokens of a vocabulary; a token's index in the list is its id.

    Args:
        source: a list of tokens, or the path of a `vocab.txt`: UTF-8, one token a line, ended by LF or CR LF. A file
            may begin with a byte order mark.

    Returns:
        The tokens.

    Raises:
        TypeError: `source` is neither, or an entry is not a string.
        ValueError: no tokens; an empty token; a token twice; a line that is not UTF-8; a missing `[PAD]`, `[UNK]`,
            `[CLS]` or `[SEP]`. The message names the lines (counted from 1) or the entries (from 0).
        FileNotFoundError: no such file.
        IsADirectoryError: `source` is a directory.

    Examples:
        >>> load_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"])
        ['[PAD]', '[UNK]', '[CLS]', '[SEP]', 'a']
    """
    if isinstance(source, (str, os.PathLike)):
        tokens = _read(Path(source))
        unit, first = "line", 1
        shown = _Shown(f"{str(source)!r}")
    elif isinstance(source, Sequence) and not isinstance(source, bytes):
        tokens = list(source)
        unit, first = "entry", 0
        shown = _Shown(f"<{len(tokens)} tokens>")
    else:
        raise TypeError(checks.message(OWNER, "vocabulary", "be a list of tokens or the path of a vocab.txt", source))
    _check_entries(tokens, shown, unit, first)
    _check_required(tokens, shown)
    return tokens


def _read(path: Path) -> list[str]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start)
        line = error.object.split(b"\n")[number]
        cure = f"Line {number + 1} holds {line!r}; save the file as UTF-8."
        raise ValueError(checks.message(OWNER, "vocabulary", "be UTF-8", str(path), cure)) from error
    except (FileNotFoundError, IsADirectoryError) as error:
        rule = "be a list of tokens or the path of a vocab.txt"
        cure = "That is a directory. Name the file in it." if path.is_dir() else "There is no such file."
        raise type(error)(checks.message(OWNER, "vocabulary", rule, str(path), cure)) from error
    # Only LF ends a line: a token may contain U+2028 or U+0085, at which `str.splitlines` would split.
    lines = text.removesuffix("\n").split("\n") if text else []
    return [line.removesuffix("\r") for line in lines]


def _check_entries(tokens: list[Any], shown: _Shown, unit: str, first: int) -> None:
    """Raises TypeError or ValueError unless every token is a non-empty string and occurs once."""
    if not tokens:
        raise ValueError(checks.message(OWNER, "vocabulary", "hold at least one token", shown))
    seen: dict[str, int] = {}
    for number, token in enumerate(tokens, start=first):
        here = f"{unit.capitalize()} {number} is"
        if not isinstance(token, str):
            raise TypeError(checks.message(OWNER, "vocabulary", "hold strings only", shown, f"{here} {token!r}."))
        rule = cure = ""
        if not token.isascii() and any("\ud800" <= character <= "\udfff" for character in token):
            rule, cure = "be Unicode text, without lone surrogates", f"{here} {token!r}."
        elif not token:
            rule, cure = "hold no empty token", f"{here} empty; remove it, or write an unused token, such as [unused0]."
        elif seen.setdefault(token, number) != number:
            rule = "hold each token once"
            cure = f"{token!r} is on {unit} {seen[token]} and on {unit} {number}; keep one of them."
        if rule:
            raise ValueError(checks.message(OWNER, "vocabulary", rule, shown, cure))


def _check_required(tokens: list[str], shown: _Shown) -> None:
    missing = [token for token in REQUIRED_TOKENS if token not in set(tokens)]
    if missing:
        cure = f"Add {' and '.join(missing)}: the inputs of BERT need all four."
        raise ValueError(checks.message(OWNER, "vocabulary", f"hold {', '.join(REQUIRED_TOKENS)}", shown, cure))
