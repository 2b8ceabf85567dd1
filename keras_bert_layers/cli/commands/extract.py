"""Write the features of texts, the hidden states of a frozen BERT, to a Parquet file.

A row of the file holds the text and its "features": one vector per text, or, with --per token or word, one vector per
token or word, beside the "tokens" or "words" and the bytes at which they "start" and "end". Any number of texts can be
read. An interrupted command resumes where it ended when it is run again; the file is the same then, byte by byte. Until
it is complete, its parts are in the folder OUT.parts.

MODEL is a checkpoint, a directory or hf://owner/name, a .keras file, or what train wrote. FILE has one text per line,
or is a table: .csv, .tsv or .jsonl, with a column of texts. Both are UTF-8, plain or gzip.

Examples:
  keras-bert-layers extract hf://owner/name lines.txt --to last.parquet
  keras-bert-layers extract my-bert reviews.csv --text review --to four.parquet --layers -1 -2 -3 -4
  keras-bert-layers extract my-bert lines.txt --to words.parquet --layers -1 -2 --combine mean --per word
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.files.atomic_write import atomic_write
from keras_bert_layers._internal.files.disk_space import check_writable
from keras_bert_layers.cli.models import load_model
from keras_bert_layers.cli.terminal import counted, progress
from keras_bert_layers.cli.text_rows import check_file, rows_of_file, suffix_of
from keras_bert_layers.cli.training_rows import TABLES, table_cells

if TYPE_CHECKING:
    from keras_bert_layers.tasks import Features

OWNER = "extract"
#: Rows per part of the file; each is computed on its own, so that an interruption changes no batch.
CONTENTS = "contents.json"
ROWS = {"text": 4096, "word": 256, "token": 256}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="the model to run")
    add("file", metavar="FILE", type=Path, help="the texts")
    add("--to", required=True, type=Path, metavar="OUT", help="the Parquet file to write")
    add("--text", default="text", metavar="COLUMN", help="the column of texts in a table (default: text)")
    add("--layers", type=int, nargs="+", default=[-1], metavar="N", help="hidden states, -1 the last (default: -1)")
    add("--combine", default="concat", choices=("concat", "sum", "mean"), help="what several layers become")
    add("--per", default="text", choices=ROWS, help="what gets a vector (default: text)")


def run(arguments: argparse.Namespace) -> int:
    """Writes the file, prints the number of rows, and returns 0."""
    check_file(arguments.file, owner=OWNER)
    check_writable(arguments.to, owner=OWNER, argument="--to")
    try:
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        cure = "Install it with `pip install keras-bert-layers[parquet]`."
        raise ModuleNotFoundError(f"`{OWNER}`: Parquet files need pyarrow. {cure}", name="pyarrow") from error
    loaded = load_model(arguments.model, None, owner=OWNER)
    from keras_bert_layers.tasks import Features

    options = {"layers": arguments.layers, "combine": arguments.combine, "per": arguments.per}
    features = Features(loaded.model, loaded.preprocessor, **options)
    folder = arguments.to.with_name(f"{arguments.to.name}.parts")
    _claim(folder, _contents(features, arguments))
    parts: list[Path] = []
    texts, num_rows = _texts(arguments.file, arguments.text), 0
    with progress("Extracting", None, unit="rows") as advance:
        while rows := list(itertools.islice(texts, ROWS[features.per])):
            parts.append(folder / f"{len(parts):08}.parquet")
            if not parts[-1].is_file():
                with atomic_write(parts[-1], owner=OWNER, argument="--to") as unfinished:
                    parquet.write_table(_table(features, rows), unfinished)
            num_rows += len(rows)
            advance(len(rows))
    if not parts:
        raise ValueError(f"`{OWNER}`: {arguments.file} must hold at least one text.")
    with (
        atomic_write(arguments.to, owner=OWNER, argument="--to") as unfinished,
        parquet.ParquetWriter(unfinished, parquet.read_schema(parts[0])) as writer,
    ):
        for part in parts:
            writer.write_table(parquet.read_table(part))
    for path in (*parts, folder / CONTENTS):
        path.unlink()
    with contextlib.suppress(OSError):  # what is not ours stays
        folder.rmdir()
    sys.stdout.write(f"{arguments.to}: {counted(num_rows, 'row')} of features with {features.dim} numbers\n")
    return 0


def _contents(features: Features, arguments: argparse.Namespace) -> str:
    """A line of JSON that differs for other weights, tokenizers, texts and options."""
    from keras_bert_layers import __version__

    with arguments.file.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    preprocessing = {**features.preprocessor.get_config(), "name": None}  # Keras numbers names
    digest.update(json.dumps(preprocessing, default=str).encode())
    for weight in features.network.weights:
        digest.update(weight.numpy().tobytes())
    options = {**features.get_config(), "column": arguments.text, "version": __version__}
    return json.dumps({**options, "sha256": digest.hexdigest()})


def _claim(folder: Path, contents: str) -> None:
    """Makes the folder of parts; ValueError if it has parts with other contents."""
    path = folder / CONTENTS
    if path.is_file() and (found := path.read_text()) != contents:
        cure = "Repeat that command, remove the folder, or give another --to."
        raise ValueError(checks.message(OWNER, str(folder), "hold parts of this model, file and options", found, cure))
    with atomic_write(path, owner=OWNER, argument="--to") as unfinished:
        unfinished.write_text(contents)


def _texts(path: Path, column: str) -> Iterator[str]:
    """The texts of a file, one by one."""
    if suffix_of(path.name) in TABLES:
        return (str(cell) for (cell,) in table_cells(path, [column], owner=OWNER))
    return (row.texts[0] for row in rows_of_file(path, {"text": 1}, form="lines", owner=OWNER))


def _table(features: Features, texts: list[str]) -> Any:
    """A table of texts and their features."""
    import pyarrow

    vectors, columns = features.predict(texts, verbose=0), {"text": pyarrow.array(texts)}
    matrix = vectors if features.per == "text" else np.concatenate(vectors)
    found = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(matrix.ravel()), features.dim)
    if features.per != "text":
        units = getattr(features, f"{features.per}s")(texts)
        for index, name in enumerate((f"{features.per}s", "start", "end")):
            kind = pyarrow.list_(pyarrow.int32() if index else pyarrow.string())
            columns[name] = pyarrow.array([[unit[index] for unit in row] for row in units], kind)
        ends = np.cumsum([0, *map(len, vectors)], dtype=np.int32)
        found = pyarrow.ListArray.from_arrays(ends, found)
    return pyarrow.table({**columns, "features": found})
