"""`TokenShards`: rows to pretrain on, from shards."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers import preprocessing
from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.data.pretraining._records import read_records
from keras_bert_layers.data.pretraining._shard_files import FORMAT, MANIFEST, settings_of_rule, settings_of_tokenizer
from keras_bert_layers.data.pretraining.document_files import BLOCK_BITS
from keras_bert_layers.data.pretraining.text_corpus import unit_order
from keras_bert_layers.preprocessing._text_layer import Tokenizer, check_is_tokenizer
from keras_bert_layers.preprocessing.row_rule import RowRule

OWNER = "TokenShards"


class TokenShards:
    """Reads rows to pretrain on from the shards that `write_shards` has written.

    Epoch e has the rows of duplicate e mod `num_duplicates`, in the order of the corpus in that epoch.

    Args:
        directory: the directory that `write_shards` has written.
        tokenizer: the tokenizer of the corpus; its hash is compared with the manifest's.
        rule: the rule of the corpus, for one that is not in `keras_bert_layers.preprocessing`; None to make it of the
            manifest.

    Attributes:
        rule: what made the rows.
        max_length: the largest number of tokens in a row.
        seed: what the rows follow from.
        num_duplicates: the number of epochs with other rows.
        num_rows: the number of rows of each of them; a tuple.
        manifest: the content of `manifest.json`; a dictionary.

    Raises:
        FileNotFoundError: the manifest or a shard is not there.
        ValueError: a manifest of another format; another tokenizer or rule; a shard of another size.
    """

    def __init__(self, directory: str | os.PathLike[str], tokenizer: Tokenizer, *, rule: RowRule | None = None):
        self.directory = Path(directory)
        check_is_tokenizer(OWNER, tokenizer)
        self.tokenizer = tokenizer
        self.manifest = _checked_manifest(self.directory)
        _check_tokenizer(tokenizer, self.manifest["tokenizer"])
        self.rule = _rule(rule, self.manifest["rule"])
        self.max_length: int = self.manifest["max_length"]
        self.seed: int = self.manifest["seed"]
        self.num_duplicates: int = self.manifest["num_duplicates"]
        self._shards: list[list[dict[str, Any]]] = [[] for _ in range(self.num_duplicates)]
        for shard in self.manifest["shards"]:
            self._shards[shard["duplicate"]].append(shard)
        self.num_rows = tuple(sum(shard["rows"] for shard in shards) for shards in self._shards)

    def dataset(self, epoch: Any) -> tf.data.Dataset:
        """The rows of an epoch.

        Args:
            epoch: an integer of at least 0, or an int64 scalar tensor.

        Returns:
            A `tf.data.Dataset` of single rows, as of `TextCorpus.dataset`.
        """
        paths = tf.constant([self._paths(duplicate) for duplicate in range(self.num_duplicates)])
        return read_records(
            paths[tf.cast(epoch, tf.int64) % self.num_duplicates],
            compression=self.manifest["compression"],
            has_labels=self.rule.has_labels,
        )

    def _paths(self, duplicate: int) -> list[str]:
        """The shards of a duplicate, in the order of its rows."""
        shards = self._shards[duplicate]
        units = np.array([shard["block"] >> BLOCK_BITS for shard in shards])
        places = np.argsort(unit_order(self.seed, duplicate, units[-1] + 1))
        return [str(self.directory / shards[index]["file"]) for index in np.argsort(places[units], kind="stable")]


def _checked_manifest(directory: Path) -> dict[str, Any]:
    path = directory / MANIFEST
    if not path.is_file():
        cure = "Call `write_shards` again: it goes on where it was interrupted."
        raise FileNotFoundError(f"`{OWNER}`: there is no {path}, so the shards are not complete. {cure}")
    manifest: dict[str, Any] = json.loads(path.read_bytes())
    if manifest.get("format") != FORMAT:
        raise ValueError(f"`{OWNER}`: {path} has format {manifest.get('format')}; this version reads {FORMAT}.")
    for shard in manifest["shards"]:
        file = directory / shard["file"]
        if file.stat().st_size != shard["bytes"]:
            cure = "Remove it, and call `write_shards` again."
            raise ValueError(f"`{OWNER}`: {file} has {file.stat().st_size} bytes, not {shard['bytes']}. {cure}")
    return manifest


def _check_tokenizer(tokenizer: Tokenizer, expected: dict[str, Any]) -> None:
    found = settings_of_tokenizer(tokenizer)
    if found["sha256"] != expected["sha256"]:
        names = [name for name, value in found["settings"].items() if value != expected["settings"].get(name)]
        rule = f"be the one that made the shards: they differ in {', '.join(names) or 'class or vocabulary'}"
        raise ValueError(checks.message(OWNER, "tokenizer", rule, checks.Shown(found["class"])))


def _rule(rule: RowRule | None, expected: dict[str, Any]) -> RowRule:
    if rule is None:
        kind = getattr(preprocessing, expected["class"], None)
        if not dataclasses.is_dataclass(kind):
            cure = "Pass the rule that the shards were written with."
            raise ValueError(checks.message(OWNER, "rule", f"be a {expected['class']}", None, cure))
        return kind(**expected["settings"])  # type: ignore[operator,return-value,no-any-return]
    found = json.loads(json.dumps(settings_of_rule(rule)))
    if found != expected:
        raise ValueError(checks.message(OWNER, "rule", f"be as in the manifest: {expected}", rule))
    return rule
