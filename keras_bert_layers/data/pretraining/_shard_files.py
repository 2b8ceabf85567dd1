"""The files of a directory of shards: a file of rows for each block, facts beside it, the settings and the manifest."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.written_whole import hidden_directory, leftovers, synchronise, written_whole
from keras_bert_layers.data.pretraining._records import write_records
from keras_bert_layers.data.pretraining.document_files import BLOCK_BITS
from keras_bert_layers.preprocessing._text_layer import Tokenizer
from keras_bert_layers.preprocessing.token_rows import TokenRows

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
    with written_whole(path, owner="write_shards", argument="directory") as unfinished:
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
