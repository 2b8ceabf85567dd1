"""Documents to pretrain on, from a file with a sentence a line."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from keras_bert_layers.data._row_collector import RowCollector
from keras_bert_layers.data._text_file import not_utf8, numbered_lines
from keras_bert_layers.data.columns import Columns


def read_documents(path: str | PathLike[str], *, on_error: str = "raise") -> Columns:
    r"""Reads documents from a file with a sentence a line and a blank line between two documents.

    Args:
        path: a UTF-8 file, plain or gzip, a byte order mark allowed.
        on_error: what to do with a document in which a line holds bytes that are not UTF-8. `"raise"`, or `"skip"`:
            leave the document out, count it, and warn once.

    Returns:
        One row a document, in the one column `documents`: lists of sentences.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a document that cannot be used, under `"raise"`; no document at all.

    Examples:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "corpus.txt"
        >>> _ = path.write_text("It rains.\nIt snows.\n\nA cat sleeps.\n")
        >>> read_documents(path).documents
        [['It rains.', 'It snows.'], ['A cat sleeps.']]

    References:
        The input of google-research/bert `create_pretraining_data.py`.
    """
    path = Path(path)
    collector = RowCollector("read_documents", path, ("documents",), on_error=on_error)
    for document in _documents(path):
        problem = next(((line, problem) for line, text in document if (problem := not_utf8(text))), None)
        if problem:
            collector.leave_out(f"line {problem[0]}", problem[1])
        else:
            collector.keep([text.strip() for _, text in document])
    return collector.columns("no document to read.")


def _documents(path: Path) -> Iterator[list[tuple[int, str]]]:
    """Yields the numbered lines of each document."""
    document: list[tuple[int, str]] = []
    for line, text in numbered_lines(path):
        if text.strip():
            document.append((line, text))
        elif document:
            yield document
            document = []
    if document:
        yield document
