"""A search index in a folder: the passages of a user's file, a table of LanceDB, and a file that names the model."""

import contextlib
import datetime
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.files.atomic_write import atomic_write
from keras_bert_layers._internal.files.disk_space import disk_fault
from keras_bert_layers.cli.text_rows import check_file, rows_of_file, suffix_of
from keras_bert_layers.cli.training_rows import TABLES, table_rows

# The columns that an index has of its own.
_OWN = ("id", "text", "digest", "vector")
# From narrow to wide; the first is that of empty cells.
_KINDS = ("", "int64", "double", "string")
# As people write numbers: `007` and `1_000` are names of something.
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,17})(\.\d+)?([eE][+-]?\d{1,2})?")

_FACTS, _TABLE = "search_index.json", "passages"
_IDS_PER_DELETION = 1000
# So long, processes may go on to read an older version of the table.
_GRACE = datetime.timedelta(minutes=10)


class Passage(NamedTuple):
    """A row to find.

    Args:
        id: what it is known by; no other row has it.
        text: the text.
        others: the values of the other columns, by their names.
    """

    id: str
    text: str
    others: dict[str, Any]

    @property
    def digest(self) -> bytes:
        """32 bytes, of which the first 16 depend on the text, and the others on the other columns."""
        parts = (self.text, json.dumps(self.others, default=str, sort_keys=True))
        return b"".join(hashlib.sha256(part.encode()).digest()[:16] for part in parts)


class PassageRows:
    """The passages of a file or a folder, read again by each iteration; rows with a blank text are left out.

    Args:
        path: a table, `.csv`, `.tsv`, `.jsonl` or `.parquet`; a file with a text on each line; or a folder, whose
            files that end in `.txt` and `.md` are a text each. All but Parquet may be gzip.
        text: the column of texts of a table.
        id_column: the column of ids; None for `id`, or for the number of the row or line, from 1, if there is none. The
            id of a file in a folder is its path there.
        owner: the command, for errors.

    Raises:
        FileNotFoundError: there is no such file or folder.
        ValueError: while iterating: a row cannot be read, or has no id.
    """

    def __init__(self, path: Path, *, text: str, id_column: str | None, owner: str):
        if not path.is_dir():
            check_file(path, owner=owner)
        self._path, self._text, self._id, self._owner = path, text, id_column, owner

    def __iter__(self) -> Iterator[Passage]:
        from keras_bert_layers.data.text_file import check_utf8

        id_column = self._id
        for number, row in enumerate(self._rows(), start=1):
            id_column = id_column or ("id" if number == 1 and "id" in row else None)
            if missing := [name for name in (self._text, id_column) if name not in (None, *row)]:
                found = ", ".join(row)
                raise ValueError(f"`{self._owner}`: {self._path} must have a column {missing[0]!r}. Found: {found}.")
            own = number if id_column is None else row.pop(id_column)
            name, text = ("" if value is None else str(value) for value in (own, row.pop(self._text)))
            if text.strip():
                try:
                    check_utf8(name + text)
                except ValueError as error:
                    raise ValueError(f"`{self._owner}`: {self._path}, row {number}, {name!r}: {error}") from error
                yield Passage(name, text, row)

    def look(self) -> tuple[set[str], dict[str, str]]:
        """Reads all rows once: their ids, and the kind of each other column, as Arrow names it.

        A column is `int64` or `double` if all of its cells are, `""` if all are empty, and `string` if not.

        Raises:
            ValueError: several rows have the same id; a column's name cannot be one of an index; there is no text.
        """
        ids: set[str] = set()
        twice: list[str] = []
        kinds: dict[str, str] = {}
        all_are_texts = suffix_of(self._path.name) in (".csv", ".tsv")
        for passage in self:
            twice += [passage.id] if passage.id in ids else []
            ids.add(passage.id)
            for name, cell in passage.others.items():
                kinds[name] = wider(kinds.get(name, ""), _kind(cell, all_are_texts))
        if not ids or "" in ids:
            rule = "must have an id in every row" if ids else "must hold at least one text"
            raise ValueError(f"`{self._owner}`: {self._path} {rule}.")
        names = [name for name in kinds if name in _OWN or name.startswith("_") or "." in name]
        rule = f"have, beside those of texts and ids, no column named {', '.join(_OWN)}, _NAME or with a full stop"
        for broken, wrong in (("have no id twice; --id names a column of ids", twice), (rule, names)):
            if wrong:
                raise ValueError(checks.message(self._owner, "ROWS", broken, wrong))
        return ids, kinds

    def _rows(self) -> Iterator[dict[str, Any]]:
        """Each row of the file or folder, by columns."""
        from keras_bert_layers.data.text_file import open_text

        path, suffix = self._path, suffix_of(self._path.name)
        if path.is_dir():
            for file in sorted(path.rglob("*")):
                own = file.relative_to(path)
                is_hidden = any(part.startswith(".") for part in own.parts)
                if suffix_of(file.name) in (".txt", ".md") and file.is_file() and not is_hidden:
                    with open_text(file) as opened:
                        yield {"id": own.as_posix(), self._text: opened.read()}
        elif suffix in TABLES:
            yield from (row for _, row in table_rows(path, self._owner))
        elif suffix == ".parquet":
            from pyarrow import parquet

            with parquet.ParquetFile(path) as table:
                yield from (row for batch in table.iter_batches(1024) for row in batch.to_pylist())
        else:
            rows = rows_of_file(path, {"text": 1}, form="lines", owner=self._owner)
            yield from ({self._text: row.texts[0]} for row in rows)


class PassageTable:
    """The passages of an index, with their vectors.

    Args:
        folder: the folder.
        owner: the command, for errors.

    Attributes:
        facts: `model`, where the model came from; its `sha256`; and whether the index is `complete`. Empty for a folder
            without an index.

    Raises:
        ModuleNotFoundError: lancedb is not installed.
    """

    def __init__(self, folder: Path, *, owner: str):
        try:
            import lancedb
        except ModuleNotFoundError as error:
            cure = "Install it with `pip install keras-bert-layers[search]`."
            raise ModuleNotFoundError(f"`{owner}`: a search index needs lancedb. {cure}", name="lancedb") from error
        self._folder, self._owner, self._lancedb = folder, owner, lancedb
        self._table: Any = None
        path = folder / _FACTS
        self.facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        with contextlib.suppress(ValueError):  # there is no table
            self._table = lancedb.connect(folder).open_table(_TABLE) if self.facts else None

    @property
    def columns(self) -> dict[str, str]:
        """The columns that a result has, with their kinds; none where no passage was written yet."""
        fields = self._table.schema if self._table is not None else ()
        return {field.name: str(field.type) for field in fields if field.name not in ("digest", "vector")}

    def begin(self, model: str, sha256: str, vector_dim: int, kinds: Mapping[str, str], *, of_tokens: bool) -> None:
        """Makes the table, or checks that it may have these passages; from now on it is not complete.

        Args:
            model: where the model came from.
            sha256: the model's digest.
            vector_dim: the length of its vectors.
            kinds: column -> kind, as `PassageRows.look` returns them.
            of_tokens: whether a passage has a vector for each of its tokens.

        Raises:
            ValueError: the index is that of another model, or has other columns.
            OSError: the folder cannot be written to, or holds something else.
        """
        import pyarrow

        if not self.facts and self._folder.exists() and (not self._folder.is_dir() or any(self._folder.iterdir())):
            raise FileExistsError(f"`{self._owner}`: --to must be new, empty or an index. Received: {self._folder}.")
        self.check_model(sha256, model)
        columns = self.columns
        wrong = {name: kind for name, kind in kinds.items() if wider(columns.get(name, ""), kind) != columns.get(name)}
        if columns and wrong:
            rule = f"have columns that the index has: {columns}"
            raise ValueError(checks.message(self._owner, "ROWS", rule, wrong, "Make another index."))
        self._say({"format": 1, "model": model, "sha256": sha256, "complete": False})
        if not columns:
            vector = pyarrow.list_(pyarrow.float32(), vector_dim)
            vector = pyarrow.list_(vector) if of_tokens else vector
            own = (pyarrow.string(), pyarrow.string(), pyarrow.binary(32), vector)
            fields = [*zip(_OWN, own, strict=True), *((name, kind or "string") for name, kind in kinds.items())]
            create = self._lancedb.connect(self._folder).create_table
            self._table = self._write(create, _TABLE, schema=pyarrow.schema(fields))
        if not self._table.list_indices():
            # ICU splits Chinese and Thai into words too. By default, English words become their stems.
            words = self._lancedb.index.FTS(base_tokenizer="icu", stem=False, remove_stop_words=False)
            self._write(self._table.create_index, "text", config=words)

    def check_model(self, sha256: str, model: str) -> None:
        """ValueError for another model than that of the index."""
        if self.facts and self.facts["sha256"] != sha256:
            rule = f"be the model of the index {self._folder}, with the same weights and settings"
            cure = f"It came from {self.facts['model']}. For another model, make another index."
            raise ValueError(checks.message(self._owner, "--model", rule, model, cure))

    def known(self) -> dict[str, bytes]:
        """The digest of each passage, by its id."""
        batches = self._table.search().select(["id", "digest"]).to_batches()
        return {row["id"]: row["digest"] for batch in batches for row in batch.to_pylist()}

    def put(self, passages: Sequence[Passage], vectors: Iterable[np.ndarray] | None, *, replace: bool) -> None:
        """Adds passages, or replaces those with the same ids, in one step that is done or not.

        Args:
            passages: the passages.
            vectors: float32 `(passages, vector_dim)`, or one array `(tokens, vector_dim)` for each passage; None leaves
                the vectors of known passages as they are.
            replace: whether some are in the table.
        """
        import pyarrow

        columns: dict[str, Any] = {name: [getattr(row, name) for row in passages] for name in _OWN[:3]}
        for name, kind in self.columns.items():
            if name not in _OWN:
                columns[name] = [cell_of(row.others.get(name), kind) for row in passages]
        if vectors is not None:
            columns["vector"] = [list(each) if each.ndim > 1 else each for each in vectors]
        rows = pyarrow.table(columns, schema=pyarrow.schema([self._table.schema.field(name) for name in columns]))
        merge = self._table.merge_insert("id").when_matched_update_all()
        merge = merge if vectors is None else merge.when_not_matched_insert_all()
        self._write(merge.execute if replace else self._table.add, rows)

    def remove(self, ids: Sequence[str]) -> None:
        """Removes passages."""
        for start in range(0, len(ids), _IDS_PER_DELETION):
            quoted = ["'" + name.replace("'", "''") + "'" for name in ids[start : start + _IDS_PER_DELETION]]
            self._write(self._table.delete, f"id IN ({', '.join(quoted)})")

    def finish(self) -> None:
        """Joins the small files that were written, brings the index of words up to date, and says that all is done."""
        self._write(self._table.optimize, cleanup_older_than=_GRACE)
        self._say({**self.facts, "complete": True})

    def check_filter(self, where: str) -> str:
        """A condition in brackets, outside which LanceDB would ignore its end; ValueError if it is none."""
        try:
            self._table.count_rows(f"({where})")
        except (ValueError, RuntimeError) as error:
            rule, why = f"be a condition of SQL on {', '.join(self.columns)}", str(error).partition(", /")[0]
            raise ValueError(checks.message(self._owner, "--where", rule, where, why)) from error
        return f"({where})"

    def nearest(self, vector: np.ndarray, where: str | None, number: int) -> list[dict[str, Any]]:
        """The passages with the highest cosine, as rows with a `score`; all vectors are compared.

        Of vectors of tokens, `(tokens, vector_dim)`, it is MaxSim; LanceDB adds up one distance for each of them.
        """
        most = len(np.atleast_2d(vector))
        query = self._table.search(vector, vector_column_name="vector").distance_type("cosine")
        return [{**row, "score": most - row["score"]} for row in self._rows(query, where, number, "_distance")]

    def with_words(self, words: str, where: str | None, number: int) -> list[dict[str, Any]]:
        """The passages that share most words with a text, by BM25, as rows with a `score`."""
        match: Any = self._lancedb.query.MatchQuery  # a string in quotation marks would be a phrase
        return self._rows(self._table.search(match(words, "text"), query_type="fts"), where, number, "_score")

    def _rows(self, query: Any, where: str | None, number: int, score: str) -> list[dict[str, Any]]:
        query = query if where is None else query.where(where)
        found = query.select([*self.columns, score]).limit(number).to_list()
        return [{"score": row.pop(score), **row} for row in found]

    def _say(self, facts: dict[str, Any]) -> None:
        with atomic_write(self._folder / _FACTS, owner=self._owner, argument="--to") as unfinished:
            unfinished.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        self.facts = facts

    def _write(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Calls a function of LanceDB; an OSError for a full or a read-only disk."""
        try:
            return function(*arguments, **options)
        except (OSError, RuntimeError, ValueError) as error:
            fault = disk_fault(error, self._folder, owner=self._owner, argument="--to")
            if fault is None:
                raise
            raise fault from error


def wider(kind: str, other: str) -> str:
    """The kind of a column with cells of two kinds.

    Examples:
        >>> wider("int64", "double"), wider("", "int64"), wider("double", "string")
        ('double', 'int64', 'string')
    """
    return max(kind, other, key=_KINDS.index)


def cell_of(value: Any, kind: str) -> Any:
    """A value of a row as a cell of a column of this kind; an empty one is None."""
    if value in (None, ""):
        return None
    if kind != "string":
        return int(value) if kind == "int64" else float(value)
    as_json = isinstance(value, bool | list | dict)
    return json.dumps(value, ensure_ascii=False, default=str) if as_json else str(value)


def _kind(value: Any, may_be_written: bool) -> str:
    """The narrowest kind of column that holds a value; a number may be written as a text."""
    if value in (None, ""):
        return ""
    number = json.loads(value) if may_be_written and isinstance(value, str) and _NUMBER.fullmatch(value) else value
    if type(number) is int and abs(number) < 2**63:
        return "int64"
    return "double" if type(number) is float else "string"
