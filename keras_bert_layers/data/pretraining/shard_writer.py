"""`write_shards`: writes the rows of a corpus to TFRecord files, here or by Apache Beam."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.data.pretraining._shard_files import MANIFEST, check_settings, remove_leftovers, write_json
from keras_bert_layers.data.pretraining._shard_work import ShardWork
from keras_bert_layers.data.pretraining._threads import in_order
from keras_bert_layers.data.pretraining.text_corpus import TextCorpus, num_threads
from keras_bert_layers.data.pretraining.token_shards import TokenShards

OWNER = "write_shards"
# What Beam runs if no runner is named downloads a program first, and is this one where there is no network.
IN_PROCESS = "--runner=FnApiRunner"


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

    A call that was interrupted is repeated: shards that are complete are kept, and the bytes are the same as without
    the interruption.

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
    beam, pipeline_options = _beam()
    if not any(option.startswith("--runner") for option in options):
        options = [IN_PROCESS, *options]
    with beam.Pipeline(options=pipeline_options.PipelineOptions(list(options))) as pipeline:
        units = pipeline | "Units" >> beam.Create(range(work.corpus.documents.num_units))
        # Without it, a runner may give all units to one worker.
        _ = units | "ToWorkers" >> beam.Reshuffle() | "WriteShards" >> beam.Map(work.write_unit)


def _beam() -> tuple[Any, Any]:
    try:
        import apache_beam
        from apache_beam.options import pipeline_options
    except ModuleNotFoundError as error:
        cure = "Install it with `pip install keras-bert-layers[beam]`, or pass None."
        raise ModuleNotFoundError(f"`{OWNER}`: `beam_options` needs Apache Beam. {cure}", name="apache_beam") from error
    return apache_beam, pipeline_options
