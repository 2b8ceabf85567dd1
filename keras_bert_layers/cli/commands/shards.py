"""Make rows to pretrain on of files of text, and write them to shards.

Writes TFRecord files and manifest.json to DIR. An interrupted command resumes where it ended when it is run
again. Lines that cannot be used are counted and named in the manifest with --skip-bad-lines, and an error without.

FILES end in .txt, .jsonl or .ndjson, plain or with .gz, or in .parquet. A pattern in quotes, such as "corpus/**/*.txt",
may stand for many. --separated-by states where a document in a .txt file ends: at its line, or at a blank line.

Examples:
  keras-bert-layers shards corpus.txt --separated-by blank-lines --tokenizer bert-base --rule next-sentence --to shards
  keras-bert-layers shards "crawl/*.jsonl.gz" --tokenizer my-tokenizer --rule packed-texts --max-length 512 --to shards
  keras-bert-layers shards news.parquet --tokenizer bert-base --rule sentence-order --split-sentences en --to shards
  keras-bert-layers shards "crawl/*.txt" ... --to /nfs/shards --beam "--runner=FlinkRunner --flink_master=host:8081"
"""

import argparse
import shlex
import sys
from pathlib import Path

from keras_bert_layers.cli.models import source_of
from keras_bert_layers.cli.terminal import counted, quiet_start

# The name of a rule -> its class in `preprocessing`.
RULES = {
    "next-sentence": "NextSentence",
    "sentence-order": "SentenceOrder",
    "full-sentences": "FullSentences",
    "document-sentences": "DocumentSentences",
    "packed-texts": "PackedTexts",
}
WORDS = "files"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    add = parser.add_argument
    add("files", nargs="+", metavar="FILES", help="files of text, or patterns")
    add("--tokenizer", required=True, metavar="MODEL", help="a model or a directory with a tokenizer")
    add("--rule", required=True, choices=RULES, help="how rows are made of documents")
    add("--to", required=True, type=Path, metavar="DIR", help="where to write")
    add("--max-length", type=int, default=128, metavar="N", help="tokens per row (default: 128)")
    add("--seed", type=int, default=0, metavar="N", help="the same seed gives the same bytes (default: 0)")
    add("--duplicates", type=int, default=1, metavar="N", help="epochs with rows of their own (default: 1)")
    add("--separated-by", choices=("lines", "blank-lines"), help="what separates documents in .txt files")
    add("--text-field", default="text", metavar="NAME", help="the field or column of the text (default: text)")
    add("--split-sentences", metavar="LANGUAGE", help="split lines into sentences of this language, such as en")
    add("--skip-bad-lines", action="store_true", help="leave out documents that cannot be used")
    add("--gzip", action="store_true", help="compress the shards")
    add("--beam", metavar="OPTIONS", help='run Apache Beam with these options; "" is its own runner')


def run(arguments: argparse.Namespace) -> int:
    """Writes the shards, prints the counts, and returns 0."""
    with quiet_start():
        from keras_bert_layers import load_tokenizer, preprocessing
        from keras_bert_layers.data import DocumentFiles, TextCorpus, write_shards
    files = DocumentFiles(
        arguments.files,
        separated_by=arguments.separated_by and arguments.separated_by.replace("-", "_"),
        text_field=arguments.text_field,
        split_sentences=arguments.split_sentences,
        on_error="skip" if arguments.skip_bad_lines else "raise",
    )
    corpus = TextCorpus(
        files,
        load_tokenizer(source_of(arguments.tokenizer)),
        rule=getattr(preprocessing, RULES[arguments.rule])(),
        max_length=arguments.max_length,
        seed=arguments.seed,
    )
    shards = write_shards(
        corpus,
        arguments.to,
        num_duplicates=arguments.duplicates,
        compression="gzip" if arguments.gzip else None,
        beam_options=None if arguments.beam is None else shlex.split(arguments.beam),
    )
    found = shards.manifest
    made = f"{counted(found['rows'], 'row')} in {counted(len(found['shards']), 'shard')}"
    sys.stdout.write(
        f"{arguments.to}: {made}, of {found['documents']:,} "
        f"documents with {found['tokens']:,} tokens; padding at {corpus.max_length}: {found['padding_share']:.1%}\n"
    )
    if found["num_bad_lines"]:
        sys.stdout.write(f"left out {found['num_bad_lines']:,} documents; the first: {found['bad_lines'][0]}\n")
    return 0
