"""Reads and checks WordPiece vocabularies."""

import os
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.preprocessing.tokens.markers import PAD, SEPARATOR, START, UNKNOWN, WHITESPACE

REQUIRED_TOKENS = (PAD, UNKNOWN, START, SEPARATOR)

OWNER = "BertTokenizer"


def load_vocabulary(
    source: str | os.PathLike[str] | Sequence[str], *, required: Collection[str] = REQUIRED_TOKENS, warn: bool = True
) -> list[str]:
    """Reads and checks the tokens of a vocabulary; a token's index in the list is its id.

    Of equal tokens the last one counts, as in both references, and an empty token matches nothing.

    Args:
        source: a list of tokens, or the path of a `vocab.txt`: UTF-8, one token per line, ended by LF or CR LF. A file
            may begin with a byte order mark. Whitespace after a token does not belong to it.
        required: the tokens that it must contain.
        warn: whether to warn of repeated tokens and of empty ones.

    Returns:
        The tokens.

    Raises:
        TypeError: `source` is neither, or an entry is not a string.
        ValueError: no tokens; a line that is not UTF-8; a missing token. The message names the lines (counted from 1)
            or the entries (from 0).
        FileNotFoundError: no such file.
        IsADirectoryError: `source` is a directory.

    Examples:
        >>> load_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"])
        ['[PAD]', '[UNK]', '[CLS]', '[SEP]', 'a']
    """
    if isinstance(source, (str, os.PathLike)):
        tokens = _read(Path(source))
        unit, first, shown = "line", 1, checks.Shown(f"{str(source)!r}")
    elif isinstance(source, Sequence) and not isinstance(source, bytes):
        tokens = list(source)
        unit, first, shown = "entry", 0, checks.Shown(f"<{len(tokens)} tokens>")
    else:
        raise TypeError(checks.message(OWNER, "vocabulary", "be a list of tokens or the path of a vocab.txt", source))
    _check_entries(tokens, shown, unit, first)
    missing = set(required).difference(tokens)
    if missing:
        cure = f"Add {' and '.join(token for token in required if token in missing)}: the inputs of BERT need all four."
        raise ValueError(checks.message(OWNER, "vocabulary", f"hold {', '.join(required)}", shown, cure))
    if warn:
        _warn_of_shadowed(tokens, shown, unit, first)
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
    return [line.rstrip(WHITESPACE) or line.removesuffix("\r") for line in lines]


def _check_entries(tokens: list[Any], shown: checks.Shown, unit: str, first: int) -> None:
    """Raises TypeError or ValueError unless there are tokens, and all are strings."""
    if not tokens:
        raise ValueError(checks.message(OWNER, "vocabulary", "hold at least one token", shown))
    for number, token in enumerate(tokens, start=first):
        here = f"{unit.capitalize()} {number} is"
        if not isinstance(token, str):
            raise TypeError(checks.message(OWNER, "vocabulary", "hold strings only", shown, f"{here} {token!r}."))
        if not token.isascii() and any("\ud800" <= character <= "\udfff" for character in token):
            rule = "be Unicode text, without lone surrogates"
            raise ValueError(checks.message(OWNER, "vocabulary", rule, shown, f"{here} {token!r}."))


def _warn_of_shadowed(tokens: list[str], shown: checks.Shown, unit: str, first: int) -> None:
    """Warns of entries that no text can match: empty ones, and tokens that come again later."""
    last = {token: number for number, token in enumerate(tokens, start=first)}
    shadowed = [
        f"{token!r} is on {unit} {number} and on {unit} {last[token]}" if token else f"{unit} {number} is empty"
        for number, token in enumerate(tokens, start=first)
        if not token or last[token] != number
    ]
    if shadowed:
        more = f" and {len(shadowed) - 3} more" if len(shadowed) > 3 else ""
        warnings.warn(
            f"`{OWNER}`: `vocabulary` should hold each token once, and no empty one. Received: vocabulary={shown}. "
            f"{', '.join(shadowed[:3])}{more}. Of equal tokens the last one counts, as in the references; no text "
            "gives the ids of the others.",
            stacklevel=4,
        )
