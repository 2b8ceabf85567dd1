"""Reads words and their entity tags from CoNLL files, which have one word per line."""

import re
from os import PathLike
from pathlib import Path

from keras_bert_layers._internal import checks
from keras_bert_layers.data.columns import Columns
from keras_bert_layers.data.text_file import RowCollector, RowError, check_utf8, line_groups
from keras_bert_layers.tag_scheme import PREFIXES, as_bio

TAG = re.compile(rf"O|[{''.join(PREFIXES)}]-\S.*")


def read_conll(
    path: str | PathLike[str],
    *,
    delimiter: str | None = None,
    word_column: int = 0,
    tag_column: int = -1,
    on_error: str = "raise",
) -> Columns:
    r"""Reads sentences with one word per line, and converts their tags to BIO.

    An empty line, or one that starts with `-DOCSTART-`, ends a sentence. A line that starts with `#` and has another
    number of columns than the words is a comment.

    In the result every entity starts with `B-` and continues with `I-`. BIO tags stay as they are. In BIOES and BILOU,
    `S-` and `U-` become `B-`, and `E-` and `L-` become `I-`. An `I-` that does not continue an entity of its type
    becomes `B-`; most entities of IOB1 start this way. No entity changes its type or its words.

    Args:
        path: a UTF-8 file, plain or gzip, with or without a byte order mark.
        delimiter: the string between two columns. None means a tab if the first word's line holds one, so that words
            may contain spaces, and otherwise any number of spaces and tabs.
        word_column: the index of the column of words; negative indices count from the end.
        tag_column: the index of the column of tags, by default the last.
        on_error: what to do with a sentence in which a line has another number of columns than the first one, no word,
            a tag other than `O` or one of `B I E S L U` with a type as in `B-person`, or bytes that are not UTF-8.
            `"raise"` an error, or `"skip"`: leave the sentence out, count it, and warn once.

    Returns:
        One row per sentence, in the columns `words` and `tags`: two lists of strings of the same length.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a sentence cannot be used (with `"raise"`), the file has no sentence, or a column does not exist.

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
    sentences = list(line_groups(path, lambda text: not text.strip() or text.startswith("-DOCSTART-")))
    delimiter, num_columns = _layout([text for sentence in sentences for _, text in sentence], delimiter)
    for name, column in (("word_column", word_column), ("tag_column", tag_column)):
        if num_columns and not -num_columns <= column < num_columns:
            rule = f"be one of the {num_columns} columns of {path}"
            raise ValueError(checks.message("read_conll", name, rule, column))
    for sentence in sentences:
        words, tags, position = [], [], ""
        try:
            for line, text in sentence:
                position = f"line {line}"
                cells = _cells(text, delimiter)
                if len(cells) != num_columns and text.startswith("#"):
                    continue
                check_utf8(text)
                _check(cells, num_columns, word_column, tag_column)
                words.append(cells[word_column])
                tags.append(cells[tag_column].strip())
        except RowError as error:
            collector.leave_out(position, error)
        else:
            if words:
                collector.keep(words, as_bio(tags))
    return collector.columns("no sentence to read.")


def _layout(lines: list[str], delimiter: str | None) -> tuple[str | None, int]:
    """The delimiter and the number of columns, from the first line that is certainly not a comment.

    A word may itself start with `#`. If all lines do, as in a file of hashtags, the first line decides.
    """
    first = next((text for text in lines if not text.startswith("#")), lines[0] if lines else "")
    if delimiter is None and "\t" in first:
        delimiter = "\t"
    return delimiter, len(_cells(first, delimiter)) if first else 0


def _cells(text: str, delimiter: str | None) -> list[str]:
    """The columns of a line; a no-break space is part of a word."""
    return text.split(delimiter) if delimiter else re.split("[ \t]+", text.strip(" \t"))


def _check(cells: list[str], num_columns: int, word_column: int, tag_column: int) -> None:
    """Raises a RowError for a line that is not a word with its tag."""
    if len(cells) != num_columns:
        raise RowError(f"{len(cells)} columns where the first word has {num_columns}: {cells}. Every word needs a tag.")
    if num_columns < 2:
        raise RowError(f"one column, {cells[0]!r}, where a word and its tag are needed. Is `delimiter` right?")
    if not cells[word_column].strip():
        raise RowError("the word is empty. Fill or remove the line.")
    if not TAG.fullmatch(cells[tag_column].strip()):
        raise RowError(
            f"the tag {cells[tag_column]!r} must be O, or B- or I- with a type as in 'B-person' "
            "(E-, S-, L- and U- are accepted too)."
        )
