"""Reads queries, documents and judgements from a folder in the format of BEIR."""

from __future__ import annotations

import json
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from keras_bert_layers.data.text_file import RowError, check_utf8, numbered_lines

#: Query id -> text, document id -> text, and query id -> document id -> grade.
Retrieval: TypeAlias = tuple[dict[str, str], dict[str, str], dict[str, dict[str, int]]]
HEADER = ["query-id", "corpus-id", "score"]


def read_beir(folder: str | PathLike[str], *, split: str = "test") -> Retrieval:
    r"""Reads queries, documents and judgements from a folder of BEIR, or from one of NanoBEIR.

    A folder of BEIR holds `corpus.jsonl`, `queries.jsonl` and `qrels/test.tsv`. One of NanoBEIR holds the folders
    `corpus`, `queries` and `qrels` with Parquet files instead; all its judgements have the grade 1.

    Args:
        folder: the folder of one data set.
        split: the name of the file of judgements in `qrels`, without its ending.

    Returns:
        The arguments of a `tasks.RetrievalEvaluator`: query id -> text of the judged queries, document id -> text, and
        query id -> document id -> grade. The text of a document is its title, a space and its text.

    Raises:
        FileNotFoundError: a file is missing.
        ModuleNotFoundError: there are Parquet files, and pyarrow is not installed.
        ValueError: a row without strings as `_id` and `text`, or with the id of an earlier one; a judgement that is not
            two ids and a whole number, or whose query has no text; no judgement. The message names file and line.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "Cats", "text": "They sleep."}\n')
        >>> _ = (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "Who sleeps?"}\n')
        >>> (folder / "qrels").mkdir()
        >>> _ = (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
        >>> read_beir(folder)
        ({'q1': 'Who sleeps?'}, {'d1': 'Cats They sleep.'}, {'q1': {'d1': 1}})

    References:
        Thakur et al. 2021, BEIR, arXiv:2104.08663.
    """
    folder = Path(folder)
    documents: dict[str, str] = {}
    queries: dict[str, str] = {}
    judgements: dict[str, dict[str, int]] = {}

    def judge(row: Any) -> None:
        cells: Any = row.split("\t") if isinstance(row, str) else [{"score": 1, **row}.get(key) for key in HEADER]
        if cells == HEADER:
            return
        try:
            query, document, grade = cells
            judgement = {str(document): int(grade)}
        except (TypeError, ValueError) as error:
            rule = "a row must be a query id, a document id and a whole number, separated by tabs"
            raise RowError(f"{rule}. Received: {row!r}.") from error
        if query not in queries:
            raise RowError(f"there is no query {query!r} among the queries. Take the files of one data set.")
        judgements.setdefault(query, {}).update(judgement)

    _read(folder, "corpus", "corpus.jsonl", lambda row: _add_text(documents, row))
    _read(folder, "queries", "queries.jsonl", lambda row: _add_text(queries, row))
    _read(folder, "qrels", f"qrels/{split}.tsv", judge)
    if not judgements:
        raise ValueError(f"{folder}: no judgement to read.")
    return {query: queries[query] for query in judgements}, documents, judgements


def _read(folder: Path, part: str, name: str, add: Callable[[Any], None]) -> None:
    """Passes each row of a part on; an error names its file and row."""
    tables = sorted((folder / part).glob("*.parquet"))
    lines = ((f"{folder / name}, line {line}", text) for line, text in numbered_lines(folder / name) if text.strip())
    rows = ((f"{path}, row {number}", row) for path in tables for number, row in enumerate(_table(path), start=1))
    for position, row in rows if tables else lines:
        try:
            add(row)
        except RowError as error:
            raise ValueError(f"{position}: {error}") from error


def _table(path: Path) -> list[dict[str, Any]]:
    """The rows of a Parquet file."""
    from pyarrow import parquet

    return parquet.read_table(path).to_pylist()


def _add_text(texts: dict[str, str], row: Any) -> None:
    """Adds the text of a line of JSON, or of a row of a table, under its id."""
    try:
        row = json.loads(row) if isinstance(row, str) else row
    except (ValueError, RecursionError) as error:
        raise RowError(f"not JSON: {error}.") from error
    if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in ("_id", "text")):
        raise RowError('a row must be an object with strings under "_id" and "text".')
    text = f"{row.get('title') or ''} {row['text']}".strip()
    check_utf8(row["_id"] + text)
    if row["_id"] in texts:
        raise RowError(f"an earlier row has the same id, {row['_id']!r}. Give it another.")
    texts[row["_id"]] = text
