"""The files of a directory of shards: TFRecords with the rows of a block, facts beside them, settings, a manifest."""

from __future__ import annotations

import hashlib
import importlib.metadata
import itertools
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.files.atomic_write import atomic_write, hidden_directory, leftovers, synchronise
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.data.pretraining.document_files import BLOCK_BITS
from keras_bert_layers.data.pretraining.row_source import SEQUENCES
from keras_bert_layers.preprocessing.rows.token_rows import TokenRows
from keras_bert_layers.preprocessing.tokenizer import LONG_OPTIONS, Tokenizer

# Readers refuse another number.
FORMAT = 1
SETTINGS, MANIFEST = "settings.json", "manifest.json"
# The hidden directories of all shards have this in their names, so that every process finds those of all.
UNFINISHED = "shard"


def shard_path(directory: Path, block: int, duplicate: int, *, compression: str) -> Path:
    """The file that holds the rows of a block in one of the duplicates."""
    unit, index = block >> BLOCK_BITS, block & ((1 << BLOCK_BITS) - 1)
    return directory / f"{duplicate:03}-{unit:06}-{index:06}.tfrecord{'.gz' if compression else ''}"


def write_shard(path: Path, rows: TokenRows, numbers: Any, facts: dict[str, Any], *, compression: str) -> None:
    """Writes rows and, after them, facts with the number of rows and the hash; each file is complete or missing."""
    facts_path = _facts_path(path)
    with hidden_directory(path.with_name(UNFINISHED), owner="write_shards", argument="directory") as folder:
        new = folder / path.name
        write_records(new, rows, numbers, compression=compression)
        with new.open("rb") as file:
            found = {"file": path.name, "bytes": new.stat().st_size}
            found["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
        found |= {"rows": len(rows), "row_tokens": len(rows.token_ids), **facts}
        (folder / facts_path.name).write_text(json.dumps(found), encoding="utf-8")
        synchronise(new, folder / facts_path.name)
        os.replace(new, path)
        os.replace(folder / facts_path.name, facts_path)
        synchronise(path.parent)


def write_records(path: Path, rows: TokenRows, numbers: np.ndarray, *, compression: str) -> None:
    """Writes rows to a TFRecord file, one `tf.train.Example` of lists of integers per row.

    Args:
        path: a new file.
        rows: the rows; their mask is `text_numbers`.
        numbers: int64 `(rows,)`, what is read as `"row"`.
        compression: `""` or `"GZIP"`.
    """
    arrays = rows.token_ids, rows.segment_ids, rows.text_numbers
    sequences = {name: array.tolist() for name, array in zip(SEQUENCES, arrays, strict=True)}
    scalars = {"row": numbers.tolist()} | ({} if rows.labels is None else {"label": rows.labels.tolist()})
    with tf.io.TFRecordWriter(str(path), compression) as file:
        for index, (start, stop) in enumerate(itertools.pairwise(rows.bounds.tolist())):
            example = tf.train.Example()
            feature = example.features.feature
            for name, tokens in sequences.items():
                feature[name].int64_list.value.extend(tokens[start:stop])
            for name, values in scalars.items():
                feature[name].int64_list.value.append(values[index])
            # Otherwise the order of the features differs between processes.
            file.write(example.SerializeToString(deterministic=True))


def rows_of_records(records: tf.Tensor, *, has_labels: bool) -> dict[str, Any]:
    """What `write_records` wrote: a row of a scalar string; of strings `(batch,)` rows, with ragged sequences."""
    features: dict[str, Any] = {name: tf.io.RaggedFeature(tf.int64) for name in SEQUENCES}
    features |= {name: tf.io.FixedLenFeature([], tf.int64) for name in (("label", "row") if has_labels else ("row",))}
    rows = (tf.io.parse_example if records.shape.rank else tf.io.parse_single_example)(records, features)
    return {name: value if name == "row" else tf.cast(value, tf.int32) for name, value in rows.items()}


def facts_of(path: Path) -> dict[str, Any] | None:
    """The facts of a shard; None if it is missing or incomplete."""
    try:
        facts = json.loads(_facts_path(path).read_bytes())
        return dict(facts) if path.stat().st_size == facts["bytes"] else None
    except (FileNotFoundError, ValueError, LookupError, TypeError):
        return None


def _facts_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def remove_leftovers(directory: Path) -> None:
    """Removes the unfinished files of killed processes of this machine."""
    for leftover in leftovers(directory / UNFINISHED):
        shutil.rmtree(leftover, ignore_errors=True)


def check_settings(directory: Path, settings: dict[str, Any]) -> None:
    """Writes the settings of a new directory, or compares them with those of a directory that has some.

    Raises:
        ValueError: the directory has shards of other settings.
    """
    path = directory / SETTINGS
    if not path.exists():
        write_json(path, settings)
        return
    old, new = json.loads(path.read_bytes()), json.loads(json.dumps(settings))
    changed = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    if changed:
        rule = f"be new, or hold shards of the same settings. {path} has other values of {', '.join(changed)}"
        cure = "Write to another directory, or remove this one."
        raise ValueError(checks.message("write_shards", "directory", rule, str(directory), cure))


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Writes a file of JSON, completely or not at all."""
    with atomic_write(path, owner="write_shards", argument="directory") as unfinished:
        unfinished.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def settings_of_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """Class, settings and a hash of everything; equal for tokenizers that give equal ids."""
    config = tokenizer.get_config()
    content = json.dumps([type(tokenizer).__name__, config], sort_keys=True).encode("utf-8", "surrogatepass")
    settings = {name: value for name, value in config.items() if name not in LONG_OPTIONS}
    return {"class": type(tokenizer).__name__, "sha256": hashlib.sha256(content).hexdigest(), "settings": settings}


def package_version() -> str:
    """The version of this package; rows of another version may differ."""
    try:
        return importlib.metadata.version("keras-bert-layers")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
