"""The files of a directory of shards: a file of rows for each block, facts beside it, the settings and the manifest."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.files.atomic_write import atomic_write, hidden_directory, leftovers, synchronise
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.data.pretraining.document_files import BLOCK_BITS
from keras_bert_layers.preprocessing.rows.token_rows import TokenRows
from keras_bert_layers.preprocessing.tokenizer import Tokenizer

SEQUENCES = ("token_ids", "segment_ids", "padding_mask")


def write_records(path: Path, rows: TokenRows, numbers: np.ndarray, *, compression: str) -> None:
    """Writes rows to a TFRecord file, one `tf.train.Example` of lists of integers a row.

    Args:
        path: a new file.
        rows: the rows; their mask is `text_numbers`.
        numbers: int64 `(rows,)`, what is read as `"row"`.
        compression: `""` or `"GZIP"`.
    """
    with tf.io.TFRecordWriter(str(path), compression) as file:
        for example in _examples(rows, numbers):
            # Without it, the order of the features is not the same in every process.
            file.write(example.SerializeToString(deterministic=True))


def read_records(paths: tf.Tensor, *, compression: str, has_labels: bool) -> tf.data.Dataset:
    """The rows of files in their order, as `RowSource.dataset` has them."""
    features = {name: tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True) for name in SEQUENCES}
    features |= {name: tf.io.FixedLenFeature([], tf.int64) for name in (("label", "row") if has_labels else ("row",))}

    def parsed(example: tf.Tensor) -> dict[str, tf.Tensor]:
        row = tf.io.parse_single_example(example, features)
        return {name: value if name == "row" else tf.cast(value, tf.int32) for name, value in row.items()}

    # Not in parallel: that takes more time than to parse a row.
    return tf.data.TFRecordDataset(paths, compression).map(parsed)


def _examples(rows: TokenRows, numbers: np.ndarray) -> Iterator[tf.train.Example]:
    values = rows.token_ids.tolist(), rows.segment_ids.tolist(), rows.text_numbers.tolist()
    bounds = rows.bounds.tolist()
    for index, number in enumerate(numbers.tolist()):
        example = tf.train.Example()
        feature = example.features.feature
        for name, tokens in zip(SEQUENCES, values, strict=True):
            feature[name].int64_list.value.extend(tokens[bounds[index] : bounds[index + 1]])
        if rows.labels is not None:
            feature["label"].int64_list.value.append(int(rows.labels[index]))
        feature["row"].int64_list.value.append(number)
        yield example


# Readers refuse another number.
FORMAT = 1
SETTINGS, MANIFEST = "settings.json", "manifest.json"
# The hidden directories of all shards have this in their names, so that every process finds those of all.
UNFINISHED = "shard"
# What a tokenizer's config holds besides its settings: too long to read.
_LONG = ("vocabulary", "scores", "character_map")


def shard_path(directory: Path, block: int, duplicate: int, *, compression: str) -> Path:
    """Where the rows of a block are in one of the duplicates."""
    unit, index = block >> BLOCK_BITS, block & ((1 << BLOCK_BITS) - 1)
    return directory / f"{duplicate:03}-{unit:06}-{index:06}.tfrecord{'.gz' if compression else ''}"


def write_shard(path: Path, rows: TokenRows, numbers: Any, facts: dict[str, Any], *, compression: str) -> None:
    """Writes rows and, after them, facts with the number of rows and the hash; each file is whole or not there."""
    facts_path = _facts_path(path)
    with hidden_directory(path.with_name(UNFINISHED), owner="write_shards", argument="directory") as folder:
        new = folder / path.name
        write_records(new, rows, numbers, compression=compression)
        found = {"file": path.name, "bytes": new.stat().st_size, "sha256": _sha256(new)}
        found |= {"rows": len(rows), "row_tokens": len(rows.token_ids), **facts}
        (folder / facts_path.name).write_text(json.dumps(found), encoding="utf-8")
        synchronise(new, folder / facts_path.name)
        os.replace(new, path)
        os.replace(folder / facts_path.name, facts_path)
        synchronise(path.parent)


def remove_leftovers(directory: Path) -> None:
    """Removes what killed processes of this machine have left unfinished."""
    for leftover in leftovers(directory / UNFINISHED):
        shutil.rmtree(leftover, ignore_errors=True)


def facts_of(path: Path) -> dict[str, Any] | None:
    """The facts of a shard; None if it is not there, or not whole."""
    try:
        facts = json.loads(_facts_path(path).read_bytes())
        return dict(facts) if path.stat().st_size == facts["bytes"] else None
    except (FileNotFoundError, ValueError, LookupError, TypeError):
        return None


def check_settings(directory: Path, settings: dict[str, Any]) -> None:
    """Writes the settings to a new directory.

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
    """Writes a file of JSON, whole or not at all."""
    with atomic_write(path, owner="write_shards", argument="directory") as unfinished:
        unfinished.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def settings_of_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """Class, settings and a hash of everything; equal for tokenizers that give equal ids."""
    config = tokenizer.get_config()
    content = json.dumps([type(tokenizer).__name__, config], sort_keys=True).encode("utf-8", "surrogatepass")
    settings = {name: value for name, value in config.items() if name not in _LONG}
    return {"class": type(tokenizer).__name__, "sha256": hashlib.sha256(content).hexdigest(), "settings": settings}


def package_version() -> str:
    """The version of this package; rows of another one may differ."""
    try:
        return importlib.metadata.version("keras-bert-layers")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _facts_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
