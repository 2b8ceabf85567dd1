"""`DocumentFiles`: documents to pretrain on, from files of any size, read in blocks."""

import importlib.metadata
import itertools
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.hints import import_sentencex
from keras_bert_layers.data.pretraining._document_reader import (
    BLANK_LINES,
    LINES,
    PARQUET,
    TEXT,
    documents_of,
    form_of,
    paths_of,
    units_of,
)
from keras_bert_layers.data.text_file import open_bytes

OWNER = "DocumentFiles"
CHUNK_BYTES = 1 << 20
BLOCK_BYTES = 4 << 20
# Of the number of a block, the bits that count the blocks of one unit: 2**18 blocks of 4 MB are 1 TB.
BLOCK_BITS = 18


class BadLine(NamedTuple):
    """A line, or a row of a Parquet file, that cannot be used.

    Args:
        path: the file.
        place: the position of the line's first byte in the text; of a Parquet file, the number of the row.
        reason: what is wrong, and the cure.
    """

    path: str
    place: int
    reason: str


def messages(lines: Iterable[BadLine]) -> list[str]:
    """One message per bad line, with its file and number, in the order of the files' names and of the lines.

    The reader of a part of a file does not know the numbers of its lines, so they are counted here, once per file.
    """
    by_file = itertools.groupby(sorted(lines), key=lambda line: line.path)
    return [message for path, bad_lines in by_file for message in _messages_of_file(Path(path), bad_lines)]


def _messages_of_file(path: Path, lines: Iterable[BadLine]) -> Iterator[str]:
    if form_of(path) == PARQUET:
        yield from (f"{path}, row {line.place}: {line.reason}" for line in lines)
        return
    with open_bytes(path) as file:
        number, at = 1, 0
        for line in lines:
            number, at = number + _line_ends(file, line.place - at), line.place
            yield f"{path}, line {number}: {line.reason}"


def _line_ends(file: Any, num_bytes: int) -> int:
    """The number of line ends in the next bytes."""
    found = 0
    while num_bytes > 0 and (chunk := file.read(min(num_bytes, CHUNK_BYTES))):
        found += chunk.count(b"\n")
        num_bytes -= len(chunk)
    return found


class Block(NamedTuple):
    """Documents that become rows together.

    Args:
        number: the number of its unit, shifted by `BLOCK_BITS`, and its number in the unit.
        documents: lists of sentences.
        bad_lines: lines that were left out.
        is_last: whether it is the last one of its unit.
    """

    number: int
    documents: list[list[str]]
    bad_lines: list[BadLine]
    is_last: bool


class DocumentFiles:
    r"""Reads documents in blocks from files of text, JSON lines or Parquet, plain or gzip.

    Memory holds a few blocks, whatever the size of the files. The files' names, order and sizes and the arguments
    determine which documents a block has: small files are joined, and large plain files are split at documents. A gzip
    or a Parquet file is read from its start to its end.

    A line of a document is a sentence, unless `split_sentences` splits it. In JSON and Parquet, these are the lines of
    the text.

    Args:
        files: a path, a pattern such as `"corpus/**/*.jsonl.gz"`, or a list of them. Names end in `.txt`, `.jsonl` or
            `.ndjson`, also with `.gz`, or in `.parquet`.
        separated_by: what stands between documents in `.txt` files: `"lines"` (each line is a document), or
            `"blank_lines"` (the form of `read_documents`). Must be given if there is such a file.
        text_field: the field of JSON objects, or the column of Parquet files, that holds the text.
        split_sentences: the language of the texts, such as `"en"`, to split lines into sentences with the library
            sentencex (extra `sentences`); None for texts with one sentence per line, or where sentences do not matter.
        block_bytes: the size of a block in bytes of a file; a document is never split. A random next sentence is from
            the same block.
        on_error: what to do with a document that cannot be used, because it is not UTF-8, not JSON, or has no text.
            `"raise"` an error, or `"skip"`: leave it out; `write_shards` counts and names such documents.

    Raises:
        TypeError, ValueError: an argument that is not valid.
        FileNotFoundError: no such file.
        ModuleNotFoundError: sentencex or pyarrow is needed, and not installed.

    Examples:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "corpus.txt"
        >>> _ = path.write_text("It rains.\nIt snows.\n\nA cat sleeps.\n")
        >>> list(DocumentFiles(path, separated_by="blank_lines"))
        [['It rains.', 'It snows.'], ['A cat sleeps.']]

    References:
        The first form of text is the input of google-research/bert `create_pretraining_data.py`.
    """

    def __init__(
        self,
        files: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        separated_by: str | None = None,
        text_field: str = "text",
        split_sentences: str | None = None,
        block_bytes: int = BLOCK_BYTES,
        on_error: str = "raise",
    ):
        self.paths = paths_of(OWNER, files)
        self.separated_by = _checked_separator(separated_by, self.paths)
        self.text_field = checks.instance(OWNER, "text_field", text_field, str)
        self.split_sentences = split_sentences
        if split_sentences is not None:
            checks.instance(OWNER, "split_sentences", split_sentences, str)
            import_sentencex(OWNER, "`split_sentences`")
        self.block_bytes = checks.positive_integer(OWNER, "block_bytes", block_bytes)
        self.on_error = checks.one_of(OWNER, "on_error", on_error, ["raise", "skip"])
        self._units = units_of(self.paths, self.block_bytes)

    @property
    def num_units(self) -> int:
        """The number of parts that can be read without the others; each has one block or more."""
        return len(self._units)

    def __iter__(self) -> Iterator[list[str]]:
        """All documents, as lists of sentences, in the order of the files."""
        for unit in range(self.num_units):
            for block in self.blocks(unit):
                yield from block.documents

    def blocks(self, unit: int) -> Iterator[Block]:
        """The blocks of a unit; one of a unit without documents is empty.

        Raises:
            ValueError: a document that cannot be used, with `on_error="raise"`; a file that is damaged.
        """
        number = unit << BLOCK_BITS
        documents: list[list[str]] = []
        bad_lines: list[BadLine] = []
        num_bytes = 0
        for piece in self._units[unit]:
            for found in documents_of(piece, separated_by=self.separated_by, text_field=self.text_field):
                if num_bytes >= self.block_bytes:
                    yield Block(number, documents, bad_lines, is_last=False)
                    number, documents, bad_lines, num_bytes = number + 1, [], [], 0
                if found.problem is not None:
                    bad_lines.append(self._left_out(piece.path, found.place, found.problem))
                elif found.lines:
                    documents.append(self._sentences(found.lines))
                num_bytes += found.num_bytes
        yield Block(number, documents, bad_lines, is_last=True)

    def settings(self) -> dict[str, Any]:
        """What determines the documents of a block, for JSON; files by their names and sizes."""
        return {
            "files": [[path.name, path.stat().st_size] for path in self.paths],
            "separated_by": self.separated_by,
            "text_field": self.text_field,
            "split_sentences": self.split_sentences,
            "sentencex": self.split_sentences and importlib.metadata.version("sentencex"),
            "block_bytes": self.block_bytes,
            "on_error": self.on_error,
        }

    def _left_out(self, path: Path, place: int, problem: ValueError) -> BadLine:
        line = BadLine(str(path), place, str(problem))
        if self.on_error == "raise":
            cure = 'With on_error="skip" such documents are left out.'
            raise ValueError(f"{messages([line])[0]} {cure}") from problem
        return line

    def _sentences(self, lines: list[str]) -> list[str]:
        if self.split_sentences is None:
            return lines
        segment = import_sentencex(OWNER, "`split_sentences`").segment
        return [text for line in lines for part in segment(self.split_sentences, line) if (text := part.strip())]


def _checked_separator(separated_by: str | None, paths: list[Path]) -> str | None:
    if separated_by is not None:
        return str(checks.one_of(OWNER, "separated_by", separated_by, [LINES, BLANK_LINES]))
    if any(form_of(path) == TEXT for path in paths):
        rule = f"be {LINES!r} or {BLANK_LINES!r} for files of text"
        cure = "It decides where a document ends: at the end of its line, or at a blank line."
        raise ValueError(checks.message(OWNER, "separated_by", rule, None, cure))
    return None
