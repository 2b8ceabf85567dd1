"""Find near duplicates and the most similar pairs of texts in a file.

Prints CSV: the two rows, their cosine, and their texts, the most similar pair first. Rows are compared in blocks, so
memory does not grow with the square of their number. If there are more than a million pairs, the most similar are kept.

FILE is a table (.csv, .tsv, .jsonl) with a column of texts, or has one text per line. A row is its number in the table
without the header, or its line, from 1; blank rows are left out. MODEL is a checkpoint that embeds sentences, any BERT
checkpoint, or a .keras file of a sentence encoder.

Examples:
  keras-bert-layers similar reviews.csv --text review --model all-MiniLM-L6-v2 --threshold 0.95
  keras-bert-layers similar sentences.txt --model all-MiniLM-L6-v2 --to pairs.csv
"""

import argparse
import sys

from keras_bert_layers._internal import checks
from keras_bert_layers.cli import encoded_rows
from keras_bert_layers.cli.terminal import counted, progress, report

OWNER = "similar"
MOST_PAIRS = 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    encoded_rows.add_arguments(parser)
    shown = "the least cosine of a pair (default: 0.9)"
    parser.add_argument("--threshold", type=float, default=0.9, metavar="X", help=shown)


def run(arguments: argparse.Namespace) -> int:
    """Writes the pairs, and returns 0."""
    if not -1 <= arguments.threshold <= 1:
        raise ValueError(checks.message(OWNER, "--threshold", "be in [-1, 1]", arguments.threshold))
    numbers, texts, vectors = encoded_rows.encode(arguments, owner=OWNER)
    from keras_bert_layers.tasks import similar_pairs

    with progress("Comparing", len(vectors), unit="rows") as advance:
        pairs = similar_pairs(vectors, arguments.threshold, max_pairs=MOST_PAIRS + 1, progress=advance)
    if len(pairs) > MOST_PAIRS:
        report("warning", f"more than {MOST_PAIRS:,} pairs; the most similar are kept. Raise --threshold for fewer.")
        del pairs[MOST_PAIRS:]
    found = [[numbers[one], numbers[other], f"{cosine:.4f}", texts[one], texts[other]] for one, other, cosine in pairs]
    header = ["row", "other_row", "cosine", "text", "other_text"]
    encoded_rows.write_csv(arguments.to, [header, *found], owner=OWNER)
    if arguments.to is not None:
        sys.stdout.write(f"{arguments.to}: {counted(len(pairs), 'pair')} of {counted(len(texts), 'row')}\n")
    return 0
