"""`ShardWork`: what must be done for a directory of shards, unit by unit, on one machine or on many."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_bert_layers.data.pretraining._bad_lines import BadLine, messages
from keras_bert_layers.data.pretraining._shard_files import (
    FORMAT,
    facts_of,
    package_version,
    settings_of_tokenizer,
    shard_path,
    write_shard,
)
from keras_bert_layers.data.pretraining.document_files import BLOCK_BITS, Block
from keras_bert_layers.data.pretraining.text_corpus import TextCorpus
from keras_bert_layers.preprocessing.row_rules import rule_to_dict

# Bad lines that the manifest names; it counts all.
NUM_NAMED = 100
_COUNTS = ("documents", "sentences", "tokens", "rows", "row_tokens", "num_bad_lines")


@dataclass(frozen=True)
class ShardWork:
    """Writes the shards of a corpus that are not there yet. It is pickled, for the workers of a pipeline.

    Args:
        corpus: the rows.
        directory: where the shards are.
        num_duplicates: the number of epochs.
        compression: as for `tf.io.TFRecordWriter`.
    """

    corpus: TextCorpus
    directory: Path
    num_duplicates: int
    compression: str

    def settings(self) -> dict[str, Any]:
        """What decides on every byte of the shards, besides the content of the files."""
        return {
            "format": FORMAT,
            "package": package_version(),
            "documents": self.corpus.documents.settings(),
            "tokenizer": settings_of_tokenizer(self.corpus.tokenizer),
            "rule": rule_to_dict(self.corpus.rule),
            "max_length": self.corpus.max_length,
            "seed": self.corpus.seed,
            "num_duplicates": self.num_duplicates,
            "compression": self.compression,
        }

    def blocks(self, unit: int) -> Iterator[Block]:
        """The blocks of a unit of which a shard is not there; a unit that is complete is not read."""
        if self._facts(unit) is None:
            for block in self.corpus.documents.blocks(unit):
                if any(self._facts_of(block.number, duplicate) is None for duplicate in range(self.num_duplicates)):
                    yield block

    def write(self, block: Block) -> None:
        """Writes the shards of a block that are not there."""
        tokens = self.corpus.tokens(block)
        facts = {
            "block": block.number,
            "is_last": block.is_last,
            "documents": len(tokens.documents),
            "sentences": len(tokens.documents.sentence_bounds) - 1,
            "tokens": len(tokens.documents.ids),
            "num_bad_lines": len(block.bad_lines),
            "bad_lines": block.bad_lines[:NUM_NAMED],
        }
        for duplicate in range(self.num_duplicates):
            if self._facts_of(block.number, duplicate) is None:
                rows, numbers = self.corpus.rows(tokens, duplicate)
                path = self._path(block.number, duplicate)
                write_shard(path, rows, numbers, {"duplicate": duplicate, **facts}, compression=self.compression)

    def write_unit(self, unit: int) -> int:
        """Writes the shards of a unit that are not there, and returns its number."""
        for block in self.blocks(unit):
            self.write(block)
        return unit

    def manifest(self) -> dict[str, Any]:
        """All facts, when every shard is there."""
        shards = [facts for unit in range(self.corpus.documents.num_units) for facts in self._facts(unit) or []]
        once = [facts for facts in shards if facts["duplicate"] == 0]
        lines = [BadLine(*line) for facts in once for line in facts["bad_lines"]]
        counts = {name: sum(facts[name] for facts in once) for name in _COUNTS if not name.startswith("row")}
        rows, row_tokens = (sum(facts[name] for facts in shards) for name in ("rows", "row_tokens"))
        width = rows * self.corpus.max_length
        return {
            **self.settings(),
            **counts,
            "rows": rows,
            "row_tokens": row_tokens,
            "padding_share": round(1 - row_tokens / width, 6) if width else 0.0,
            "bad_lines": messages(lines[:NUM_NAMED]),
            "shards": [{name: facts[name] for name in facts if "bad_lines" not in name} for facts in shards],
        }

    def _facts(self, unit: int) -> list[dict[str, Any]] | None:
        """The facts of all shards of a unit; None if one is not there."""
        found = []
        for index in itertools.count():
            facts = [self._facts_of((unit << BLOCK_BITS) + index, number) for number in range(self.num_duplicates)]
            kept = [fact for fact in facts if fact is not None]
            if len(kept) < self.num_duplicates:
                return None
            found += kept
            if kept[0]["is_last"]:
                break
        return found

    def _facts_of(self, block: int, duplicate: int) -> dict[str, Any] | None:
        return facts_of(self._path(block, duplicate))

    def _path(self, block: int, duplicate: int) -> Path:
        return shard_path(self.directory, block, duplicate, compression=self.compression)
