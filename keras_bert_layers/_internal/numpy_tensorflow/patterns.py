"""RE2's patterns by Python's `re`."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator

_HEXADECIMAL = re.compile(r"\\x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))")
# What `decode_bytes` makes of bytes that are not UTF-8; no class of RE2 has them.
_BROKEN = "\udc80-\udcff"
_ANY, _BYTE = f"[^\n{_BROKEN}]", r"[\s\S]"
# RE2's classes are of ASCII.
_CLASSES = {"s": "\\t\\n\\f\\r ", "d": "0-9", "w": "0-9A-Za-z_"}
# A run of characters of a class with which a pattern, or one of several, begins.
_RUN = re.compile(r"(?:^|(?<=\|))(\[[^\]\\]*\])[*+]")


def decode_bytes(text: bytes) -> str:
    """A text in which each byte that is not UTF-8 is a character of its own."""
    return text.decode("utf-8", "surrogateescape")


def encode_bytes(text: str) -> bytes:
    """The bytes of such a text."""
    return text.encode("utf-8", "surrogateescape")


@functools.lru_cache(512)
def compiled(pattern: str | bytes) -> re.Pattern[str]:
    """An RE2 pattern for texts of `decode_bytes`."""
    return re.compile(_translated(_text(pattern)), re.ASCII)


@functools.lru_cache(512)
def _searched(pattern: str | bytes) -> re.Pattern[str] | None:
    """The same for places after the first, if it begins with a run: each run is tried from its beginning alone."""
    text, count = _RUN.subn(r"(?<!\1)\g<0>", _text(pattern))
    return re.compile(_translated(text), re.ASCII) if count else None


def matches(pattern: str | bytes, text: str) -> Iterator[re.Match[str]]:
    """The matches of an RE2 pattern, of which none is empty, in a text of `decode_bytes`.

    Python would try each character of a run that the pattern may begin with, which is quadratic.
    """
    whole, searched, place = compiled(pattern), _searched(pattern), 0
    if searched is None:
        yield from whole.finditer(text)
        return
    while found := whole.match(text, place) or searched.search(text, place):
        yield found
        place = found.end() + (found.end() == found.start())


def parts(pattern: str, text: str) -> list[str]:
    """What is between the matches of an RE2 pattern without groups, and the matches, in turn."""
    if _searched(pattern) is None:
        return compiled(f"({pattern})").split(text)
    found, place = [], 0
    for match in matches(pattern, text):
        found += [text[place : match.start()], match[0]]
        place = match.end()
    return [*found, text[place:]]


def replaced(pattern: str | bytes, template: str, text: str, count: int = 0) -> str:
    """A text with a template of Python in place of each match of an RE2 pattern, or of the first `count`."""
    if _searched(pattern) is None:
        return compiled(pattern).sub(template, text, count)
    parts, place = [], 0
    for found in itertools.islice(matches(pattern, text), count or None):
        parts += [text[place : found.start()], found.expand(template)]
        place = found.end()
    return "".join([*parts, text[place:]])


@functools.lru_cache(512)
def matcher(pattern: str | bytes) -> Callable[[str], object]:
    r"""Whether an RE2 pattern matches a whole text.

    A pattern between two `\C*` is searched, which is faster.
    """
    text = _text(pattern)
    inner = text.removeprefix(r"\C*").removesuffix(r"\C*")
    if "|" in inner and not inner.startswith(("(?:", "[")):
        return compiled(text).fullmatch
    after = "" if text.endswith(r"\C*") else "$"
    found = compiled(f"(?:{inner}){after}" if after else inner)
    return found.search if text.startswith(r"\C*") else found.match


def template(rewrite: str | bytes) -> str:
    r"""A replacement with groups, `\0` for all that is found."""
    return re.sub(r"\\(\d)", r"\\g<\1>", _text(rewrite))


def _text(text: str | bytes) -> str:
    return text.decode() if isinstance(text, bytes) else text


def _translated(pattern: str) -> str:
    return "".join(_parts(pattern))


def _parts(pattern: str) -> Iterator[str]:
    place, in_class = 0, False
    while place < len(pattern):
        size, part = 1, pattern[place]
        if part == "\\":
            size, part = _escape(pattern, place, in_class)
        elif in_class:
            in_class = part != "]"
            part = "\\" + part if part in "[&~|" else part
        elif part == "[":
            in_class, negated = True, pattern.startswith("^", place + 1)
            size += negated
            part = f"[^{_BROKEN}" if negated else part
            if pattern.startswith("]", place + size):
                size, part = size + 1, part + "\\]"
        else:
            part = {".": _ANY, "$": r"\Z"}.get(part, part)
        yield part
        place += size


def _escape(pattern: str, place: int, in_class: bool) -> tuple[int, str]:
    """The length of what begins with a backslash, and what it is in Python."""
    number = _HEXADECIMAL.match(pattern, place)
    if number:
        return len(number[0]), re.escape(chr(int(number[1] or number[2], 16)))
    letter = pattern[place + 1]
    if letter in _CLASSES:
        return 2, _CLASSES[letter] if in_class else f"[{_CLASSES[letter]}]"
    if letter.isalnum() and letter not in ("AbBnrtfva" if in_class else "CAzbBnrtfvaSDW"):
        raise NotImplementedError(f"the RE2 pattern {pattern!r}")
    if letter in "SDW":
        return 2, f"[^{_CLASSES[letter.lower()]}{_BROKEN}]"
    return 2, {"C": _BYTE, "z": r"\Z"}.get(letter, "\\" + letter)
