"""`TokenShards`: rows to pretrain on, read from the shards of `write_shards`."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.data.pretraining._shard_files import (
    FORMAT,
    MANIFEST,
    rows_of_records,
    settings_of_tokenizer,
    shard_path,
)
from keras_bert_layers.data.pretraining.document_files import BLOCK_BITS
from keras_bert_layers.data.pretraining.text_corpus import LARGEST_SEED, unit_order
from keras_bert_layers.preprocessing.rows.row_rules import RULES, rule_from_dict, rule_to_dict
from keras_bert_layers.preprocessing.rows.token_rows import RowRule
from keras_bert_layers.preprocessing.tokenizer import Tokenizer, check_is_tokenizer

OWNER = "TokenShards"
# A million shards.
MAX_MANIFEST_BYTES = 256 * 1024 * 1024
_REMAKE = "Write the shards again, to a new directory."
_REMOVE = "Remove it, and call `write_shards` again."


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _has_settings(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("settings"), dict)


# What a manifest must have, for this class to read it.
_VALUES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "tokenizer": ("an object with sha256 and settings", lambda value: _has_settings(value) and "sha256" in value),
    "rule": (
        "an object with class and settings",
        lambda value: _has_settings(value) and isinstance(value.get("class"), str),
    ),
    "max_length": ("a positive integer", lambda value: _is_count(value) and value > 0),
    "seed": ("an integer from 0 to 2**63 - 1", lambda value: _is_count(value) and value <= LARGEST_SEED),
    "num_duplicates": ("a positive integer", lambda value: _is_count(value) and value > 0),
    "compression": ('"" or "GZIP"', lambda value: value in ("", "GZIP")),
    "shards": ("a list that is not empty", lambda value: isinstance(value, list) and bool(value)),
}


class TokenShards:
    r"""Reads rows to pretrain on from the shards that `write_shards` wrote.

    Epoch e has the rows of duplicate e mod `num_duplicates`, in the order of the corpus in that epoch.

    Args:
        directory: the directory that `write_shards` has written.
        tokenizer: the tokenizer of the corpus; its hash is compared with the manifest's.
        rule: the rule of the corpus, if it is not in `keras_bert_layers.preprocessing`; None takes the manifest's.
        static_masks: whether rows that repeat have the same masks again, as in the files of google-research/bert;
            otherwise every epoch masks other tokens of them (RoBERTa's dynamic masks).

    Attributes:
        rule: what made the rows.
        max_length: the largest number of tokens in a row.
        seed: determines the rows.
        num_duplicates: the number of epochs whose rows differ.
        num_rows: the number of rows of each of them; a tuple.
        manifest: the content of `manifest.json`; a dictionary.

    Raises:
        FileNotFoundError: the manifest or a shard is not there.
        ValueError: a manifest of another format; another tokenizer or rule; a shard of another size.

    Examples:
        >>> import keras_bert_layers as kbl, pathlib, tempfile
        >>> from keras_bert_layers.preprocessing import FullSentences
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "corpus.txt").write_text("It rains\nWe stay\n\nIt rains\n")
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "it", "rains", "we", "stay"])
        >>> files = kbl.data.DocumentFiles(folder / "corpus.txt", separated_by="blank_lines")
        >>> corpus = kbl.data.TextCorpus(files, tokenizer, rule=FullSentences(), max_length=12)
        >>> _ = kbl.data.write_shards(corpus, folder / "shards")
        >>> shards = TokenShards(folder / "shards", tokenizer)
        >>> shards.rule, shards.num_rows, len(list(shards.dataset(0)))
        (FullSentences(), (1,), 1)

    References:
        Static and dynamic masks: Liu et al. 2019, https://arxiv.org/abs/1907.11692, section 4.1.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        tokenizer: Tokenizer,
        *,
        rule: RowRule | None = None,
        static_masks: bool = False,
    ):
        self.directory = Path(directory)
        check_is_tokenizer(OWNER, tokenizer)
        self.tokenizer = tokenizer
        self.static_masks = checks.boolean(OWNER, "static_masks", static_masks)
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
        self._hashes = {
            _path(self.directory, self.manifest, shard).name: shard["sha256"] for shard in self.manifest["shards"]
        }

    def dataset(self, epoch: int) -> tf.data.Dataset:
        """The rows of an epoch.

        Args:
            epoch: an integer of at least 0, or an int64 scalar tensor.

        Returns:
            A `tf.data.Dataset` of single rows, as of `TextCorpus.dataset`.

        Raises:
            ValueError: when the rows are taken, a shard whose SHA-256 is not that of the manifest; TensorFlow shows it
                as its own error. A shard is hashed when it is first read.
        """
        # Not in parallel: that takes more time than parsing a row.
        return self.records(epoch).map(self.rows_of_records)

    def records(self, epoch: int) -> tf.data.Dataset:
        """The rows of `dataset` as they are in the files, strings; `rows_of_records` takes one or a batch of them."""
        paths = tf.constant([self._paths(duplicate) for duplicate in range(self.num_duplicates)])
        paths = paths[tf.cast(epoch, tf.int64) % self.num_duplicates]

        def checked(path: tf.Tensor) -> tf.Tensor:
            return tf.ensure_shape(tf.numpy_function(self._checked_once, [path], tf.string), [])

        files = tf.data.Dataset.from_tensor_slices(paths).map(checked)
        return tf.data.TFRecordDataset(files, self.manifest["compression"])

    def rows_of_records(self, records: tf.Tensor) -> dict[str, Any]:
        """The row of a record; of a batch of them the rows, with ragged sequences."""
        return rows_of_records(records, has_labels=self.rule.has_labels)

    def _checked_once(self, path: bytes) -> bytes:
        """The path of a shard, unless its content is damaged."""
        file = Path(os.fsdecode(path))
        if (expected := self._hashes.get(file.name)) is not None:
            with file.open("rb") as content:
                if hashlib.file_digest(content, "sha256").hexdigest() != expected:
                    raise ValueError(f"`{OWNER}`: {file} is damaged{_here()}: its SHA-256 is not {expected}. {_REMOVE}")
            del self._hashes[file.name]
        return path

    def _paths(self, duplicate: int) -> list[str]:
        """The shards of a duplicate, in the order of its rows."""
        shards = self._shards[duplicate]
        units = np.array([shard["block"] >> BLOCK_BITS for shard in shards])
        places = np.argsort(unit_order(self.seed, duplicate, units.max() + 1))
        order = np.argsort(places[units], kind="stable")
        return [str(_path(self.directory, self.manifest, shards[index])) for index in order]


def _checked_manifest(directory: Path) -> dict[str, Any]:
    path = directory / MANIFEST
    if not path.is_file():
        cure = "Call `write_shards` again: it continues where it was interrupted."
        raise FileNotFoundError(f"`{OWNER}`: there is no {path}, so the shards are not complete. {cure}")
    if path.stat().st_size > MAX_MANIFEST_BYTES:
        raise ValueError(f"`{OWNER}`: {path} must take at most {MAX_MANIFEST_BYTES:,} bytes.")
    try:
        manifest = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"`{OWNER}`: {path} must be valid JSON. Received: {error}.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        found = manifest.get("format") if isinstance(manifest, dict) else "none"
        raise ValueError(f"`{OWNER}`: {path} has format {found}; this version reads {FORMAT}.")
    for name, (rule, is_right) in _VALUES.items():
        if not is_right(manifest.get(name)):
            raise ValueError(f"`{OWNER}`: {path}: `{name}` must be {rule}. {_REMAKE}")
    _check_shards(path, manifest)
    return manifest


def _check_shards(path: Path, manifest: dict[str, Any]) -> None:
    """Every file is there, every number is one that so many shards can have, and every duplicate has rows."""
    shards, num_duplicates = manifest["shards"], manifest["num_duplicates"]
    num_rows = dict.fromkeys(range(min(num_duplicates, len(shards) + 1)), 0)
    for shard in shards:
        values: dict[str, Any] = shard if isinstance(shard, dict) else {}
        is_right = all(_is_count(values.get(name)) for name in ("block", "duplicate", "rows"))
        is_right = is_right and values["duplicate"] in num_rows and values["block"] >> BLOCK_BITS < len(shards)
        if not is_right or not isinstance(values.get("sha256"), str):
            raise ValueError(f"`{OWNER}`: {path}: a shard must have block, duplicate, rows and sha256. {_REMAKE}")
        num_rows[shard["duplicate"]] += shard["rows"]
        file = _path(path.parent, manifest, shard)
        if file.stat().st_size != shard.get("bytes"):
            found = f"{file.stat().st_size} bytes{_here()}, not {shard.get('bytes')}"
            raise ValueError(f"`{OWNER}`: {file} has {found}. {_REMOVE}")
    if not all(num_rows.values()):
        raise ValueError(f"`{OWNER}`: {path}: each of {num_duplicates:,} duplicates must have at least one row.")


def _here() -> str:
    """Which of several processes on JAX this is, for errors: each machine may have files of its own."""
    if keras.backend.backend() != "jax":
        return ""
    import jax

    count = jax.process_count()
    return "" if count == 1 else f" in process {jax.process_index()} of {count}, on {socket.gethostname()}"


def _path(directory: Path, manifest: dict[str, Any], shard: dict[str, Any]) -> Path:
    """A file in the directory itself, whatever name the manifest gives it."""
    return shard_path(directory, shard["block"], shard["duplicate"], compression=manifest["compression"])


def _check_tokenizer(tokenizer: Tokenizer, expected: dict[str, Any]) -> None:
    found = settings_of_tokenizer(tokenizer)
    if found["sha256"] != expected["sha256"]:
        names = [name for name, value in found["settings"].items() if value != expected["settings"].get(name)]
        rule = f"be the one that made the shards: they differ in {', '.join(names) or 'class or vocabulary'}"
        raise ValueError(checks.message(OWNER, "tokenizer", rule, checks.Shown(found["class"])))


def _rule(rule: RowRule | None, expected: dict[str, Any]) -> RowRule:
    if rule is None:
        if expected["class"] not in RULES:
            cure = "Pass the rule that the shards were written with."
            raise ValueError(checks.message(OWNER, "rule", f"be a {expected['class']}", None, cure))
        return rule_from_dict(expected)
    found = json.loads(json.dumps(rule_to_dict(rule)))
    if found != expected:
        raise ValueError(checks.message(OWNER, "rule", f"be as in the manifest: {expected}", rule))
    return rule
