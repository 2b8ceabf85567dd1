"""Words and their tags from files with one word a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from keras_bert_layers._internal import checks
from keras_bert_layers.data._row_collector import RowCollector
from keras_bert_layers.data._text_file import not_utf8, numbered_lines
from keras_bert_layers.data.columns import Columns

# What a tag says of its word: BIO, BIOES and BILOU.
BEGINS, CONTINUES, ENDS = "BSU", "IEL", "ESLU"
TAG = re.compile(rf"O|[{BEGINS}{CONTINUES}]-\S.*")


def read_conll(
    path: str | PathLike[str],
    *,
    delimiter: str | None = None,
    word_column: int = 0,
    tag_column: int = -1,
    on_error: str = "raise",
) -> Columns:
    r"""Reads sentences with one word a line, their tags as BIO.

    A blank line, or one that starts with `-DOCSTART-`, ends a sentence. A line that starts with `#` and has another
    number of columns than the words is a comment.

    Every entity of the result starts with `B-` and goes on with `I-`. Tags in BIO come back as they are. Of BIOES and
    BILOU, S-, U- become B-, and E-, L- become I-. An I- that goes on with no entity of its type, as IOB1 starts most
    entities, becomes B-. No entity changes its type or its words by that.

    Args:
        path: a UTF-8 file, plain or gzip, a byte order mark allowed.
        delimiter: what stands between two columns. None is a tab where the first word's line holds one, so that words
            may hold blanks, and any number of blanks otherwise.
        word_column: where the word stands, 0 is the first column; as an index of a list, so -2 is the last but one.
        tag_column: where the tag stands, the last column unless said otherwise.
        on_error: what to do with a sentence in which a line has another number of columns than the first one, no word,
            a tag other than `O` or one of `B I E S L U` with a type as in `B-person`, or bytes that are not UTF-8.
            `"raise"`, or `"skip"`: leave the sentence out, count it, and warn once.

    Returns:
        One row a sentence, in the columns `words` and `tags`: lists of strings, both of the same length.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a sentence that cannot be used, under `"raise"`; no sentence at all; a column that is not there.

    Examples:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "names.conll"
        >>> _ = path.write_text("Marie B-person\nCurie I-person\nlived O\n\nKraków B-place\n")
        >>> words, tags = read_conll(path)
        >>> words, tags
        ([['Marie', 'Curie', 'lived'], ['Kraków']], [['B-person', 'I-person', 'O'], ['B-place']])

    References:
        Tjong Kim Sang and De Meulder 2003, arXiv:cs/0306050; Ratinov and Roth 2009 (BILOU), aclanthology.org/W09-1119.
    """
    path = Path(path)
    if delimiter is not None and (not isinstance(delimiter, str) or not delimiter):
        raise ValueError(checks.message("read_conll", "delimiter", "be a string that is not empty, or None", delimiter))
    collector = RowCollector("read_conll", path, ("words", "tags"), on_error=on_error)
    delimiter, num_columns = _layout(path, delimiter)
    for name, column in (("word_column", word_column), ("tag_column", tag_column)):
        if num_columns and not -num_columns <= column < num_columns:
            rule = f"be one of the {num_columns} columns of {path}"
            raise ValueError(checks.message("read_conll", name, rule, column))
    for sentence in _sentences(path):
        words, tags, problem = [], [], ""
        for line, text in sentence:
            cells = _cells(text, delimiter)
            if len(cells) != num_columns and text.startswith("#"):
                continue
            problem = not_utf8(text) or _problem(cells, num_columns, word_column, tag_column)
            if problem:
                collector.leave_out(f"line {line}", problem)
                break
            words.append(cells[word_column])
            tags.append(cells[tag_column].strip())
        if words and not problem:
            collector.keep(words, _as_bio(tags))
    return collector.columns("no sentence to read.")


def _sentences(path: Path) -> Iterator[list[tuple[int, str]]]:
    """Yields the numbered lines of each sentence, comments among them."""
    sentence: list[tuple[int, str]] = []
    for line, text in numbered_lines(path):
        if text.strip() and not text.startswith("-DOCSTART-"):
            sentence.append((line, text))
        elif sentence:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def _layout(path: Path, delimiter: str | None) -> tuple[str | None, int]:
    """What stands between two columns, and how many columns there are; from the first line that is surely a word's.

    A word may itself start with `#`; where all do, as in a file of hashtags, the first line decides.
    """
    lines = [text for sentence in _sentences(path) for _, text in sentence]
    first = next((text for text in lines if not text.startswith("#")), lines[0] if lines else "")
    if delimiter is None and "\t" in first:
        delimiter = "\t"
    return delimiter, len(_cells(first, delimiter)) if first else 0


def _cells(text: str, delimiter: str | None) -> list[str]:
    """The columns of a line; a no-break space is part of a word."""
    return text.split(delimiter) if delimiter else re.split("[ \t]+", text.strip(" \t"))


def _problem(cells: list[str], num_columns: int, word_column: int, tag_column: int) -> str:
    """Why a line cannot be used, or `""`."""
    if len(cells) != num_columns:
        return f"{len(cells)} columns where the first word has {num_columns}: {cells}. Every word needs its tag."
    if num_columns < 2:
        return f"one column, {cells[0]!r}, where a word and its tag must stand. Is `delimiter` right?"
    if not cells[word_column].strip():
        return "the word is empty. Fill or remove the line."
    if not TAG.fullmatch(cells[tag_column].strip()):
        return (
            f"the tag {cells[tag_column]!r} must be O, or B- or I- with a type as in 'B-person' "
            "(E-, S-, L- and U- are understood too)."
        )
    return ""


def _as_bio(tags: list[str]) -> list[str]:
    """The same entities, each starting with `B-` and going on with `I-`."""
    result = []
    open_type = None
    for tag in tags:
        position, _, entity_type = tag.partition("-")
        if position == "O":
            result.append(tag)
            open_type = None
            continue
        begins = position in BEGINS or entity_type != open_type
        result.append(f"{'B' if begins else 'I'}-{entity_type}")
        open_type = None if position in ENDS else entity_type
    return result
