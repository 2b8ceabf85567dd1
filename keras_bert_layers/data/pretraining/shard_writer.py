"""`write_shards`: writes the rows of a corpus to TFRecord files, in this process or with Apache Beam."""

import itertools
import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import needs_tensorflow
from keras_bert_layers.data.pretraining._shard_files import (
    FORMAT,
    MANIFEST,
    check_settings,
    facts_of,
    package_version,
    remove_leftovers,
    settings_of_tokenizer,
    shard_path,
    write_json,
    write_shard,
)
from keras_bert_layers.data.pretraining.document_files import BLOCK_BITS, BadLine, Block, messages
from keras_bert_layers.data.pretraining.text_corpus import TextCorpus, in_order, num_threads
from keras_bert_layers.data.pretraining.token_shards import TokenShards
from keras_bert_layers.preprocessing.rows.row_rules import rule_to_dict

OWNER = "write_shards"
# Bad lines that the manifest names; it counts all.
NUM_NAMED = 100
# Beam's default runner downloads a program first, and falls back to this one without a network.
IN_PROCESS = "--runner=FnApiRunner"
_COUNTS = ("documents", "sentences", "tokens", "rows", "row_tokens", "num_bad_lines")


@dataclass(frozen=True)
class ShardWork:
    """Writes the missing shards of a corpus; pickled for the workers of a pipeline.

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
        """What determines every byte of the shards, besides the content of the files."""
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
        """The blocks of a unit with a missing shard; a unit that is complete is not read."""
        if self._facts(unit) is None:
            for block in self.corpus.documents.blocks(unit):
                if any(self._facts_of(block.number, duplicate) is None for duplicate in range(self.num_duplicates)):
                    yield block

    def write(self, block: Block) -> None:
        """Writes the missing shards of a block."""
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
        """Writes the missing shards of a unit, and returns its number."""
        for block in self.blocks(unit):
            self.write(block)
        return unit

    def manifest(self) -> dict[str, Any]:
        """All facts, once every shard exists."""
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
        """The facts of all shards of a unit; None if one is missing."""
        found: list[dict[str, Any]] = []
        for block in itertools.count(unit << BLOCK_BITS):
            for duplicate in range(self.num_duplicates):
                if (facts := self._facts_of(block, duplicate)) is None:
                    return None
                found.append(facts)
            if found[-1]["is_last"]:
                break
        return found

    def _facts_of(self, block: int, duplicate: int) -> dict[str, Any] | None:
        return facts_of(self._path(block, duplicate))

    def _path(self, block: int, duplicate: int) -> Path:
        return shard_path(self.directory, block, duplicate, compression=self.compression)


def write_shards(
    corpus: TextCorpus,
    directory: str | os.PathLike[str],
    *,
    num_duplicates: int = 1,
    compression: str | None = None,
    beam_options: Sequence[str] | None = None,
) -> TokenShards:
    """Writes the rows of a corpus to shards: one TFRecord file for each block of text and each duplicate.

    Duplicate d holds the rows of epoch d of the corpus. A row is a `tf.train.Example` of lists of integers, with the
    names of `RowSource.dataset`. `manifest.json` is written last. It has the settings, the numbers of documents,
    sentences, tokens and rows, the share of padding at `max_length`, the documents that were left out, by file and
    line, and the rows and the SHA-256 of every shard.

    After an interruption, repeat the call: complete shards are kept, and the bytes are the same as without the
    interruption.

    Args:
        corpus: the rows.
        directory: where the shards are written, on a disk that all workers see under this path.
        num_duplicates: the number of epochs to write; training repeats them.
        compression: None or `"gzip"`, for a fourth of the size and more time.
        beam_options: None to write with the threads of this process. Or the options of an Apache Beam pipeline (extra
            `beam`), such as `["--runner=FlinkRunner", "--flink_master=localhost:8081"]`; `[]` runs the pipeline
            in this process. The files of the corpus must be under the same paths for all workers.

    Returns:
        The shards, as `TokenShards(directory, corpus.tokenizer)` reads them.

    Raises:
        ValueError: an argument that is not valid; a directory with shards of other settings; a document that cannot be
            used.
        OSError: a shard could not be written; the disk is full, for example.
        ModuleNotFoundError: Apache Beam is not installed.

    References:
        `duplicate_factor` is `dupe_factor` of google-research/bert, create_pretraining_data.py.
    """
    checks.instance(OWNER, "corpus", corpus, TextCorpus)
    checks.positive_integer(OWNER, "num_duplicates", num_duplicates)
    checks.one_of(OWNER, "compression", compression, [None, "gzip"])
    needs_tensorflow(f"`{OWNER}`")
    path = Path(directory).absolute()
    work = ShardWork(corpus, path, num_duplicates, "GZIP" if compression else "")
    check_settings(path, work.settings())
    if beam_options is None:
        missing = (block for unit in range(corpus.documents.num_units) for block in work.blocks(unit))
        deque(in_order(work.write, missing, num_threads=num_threads()), maxlen=0)
    else:
        _run_pipeline(work, beam_options)
    remove_leftovers(path)
    write_json(path / MANIFEST, work.manifest())
    return TokenShards(path, corpus.tokenizer, rule=corpus.rule)


def _run_pipeline(work: ShardWork, options: Sequence[str]) -> None:
    try:
        import apache_beam as beam
        from apache_beam.options.pipeline_options import PipelineOptions
    except ModuleNotFoundError as error:
        cure = "Install it with `pip install keras-bert-layers[beam]`, or pass None."
        raise ModuleNotFoundError(f"`{OWNER}`: `beam_options` needs Apache Beam. {cure}", name="apache_beam") from error
    if not any(option.startswith("--runner") for option in options):
        options = [IN_PROCESS, *options]
    with beam.Pipeline(options=PipelineOptions(list(options))) as pipeline:
        units = pipeline | "Units" >> beam.Create(range(work.corpus.documents.num_units))
        # Without `Reshuffle`, a runner may give all units to one worker.
        _ = units | "ToWorkers" >> beam.Reshuffle() | "WriteShards" >> beam.Map(work.write_unit)
