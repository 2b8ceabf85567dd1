"""Reads documents to pretrain on from a file with one sentence per line."""

from os import PathLike
from pathlib import Path

from keras_bert_layers.data.columns import Columns
from keras_bert_layers.data.text_file import RowCollector, RowError, check_utf8, line_groups


def read_documents(path: str | PathLike[str], *, on_error: str = "raise") -> Columns:
    r"""Reads documents from a file with one sentence per line and an empty line between two documents.

    Args:
        path: a UTF-8 file, plain or gzip, with or without a byte order mark.
        on_error: what to do with a document in which a line holds bytes that are not UTF-8. `"raise"` an error, or
            `"skip"`: leave the document out, count it, and warn once.

    Returns:
        One row per document, in the column `documents`: lists of sentences.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a document cannot be used (with `"raise"`), or the file has no document.

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
    for lines in line_groups(path):
        position = ""
        try:
            for line, text in lines:
                position = f"line {line}"
                check_utf8(text)
        except RowError as error:
            collector.leave_out(position, error)
        else:
            collector.keep([text.strip() for _, text in lines])
    return collector.columns("no document to read.")
