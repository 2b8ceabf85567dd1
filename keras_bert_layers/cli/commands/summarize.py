"""Print the sentences of a text that say most of it.

Chooses the sentences whose vectors are nearest to the mean of all, without those that repeat another, and prints them
in the order of the text, one on each line. No new words are written.

FILE is a text, UTF-8, plain or gzip; blank lines end paragraphs, whose lines are joined and split into sentences by the
rules of --language (sentencex). With --lines, each line is a sentence. MODEL is a checkpoint that embeds sentences, any
BERT checkpoint, or a .keras file of a sentence encoder.

Examples:
  keras-bert-layers summarize report.txt --model all-MiniLM-L6-v2 --sentences 5
  keras-bert-layers summarize rapport.txt --language fr --model paraphrase-multilingual-MiniLM-L12-v2
"""

import argparse
import itertools
import sys
from pathlib import Path

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.hints import import_sentencex
from keras_bert_layers.cli import encoded_rows
from keras_bert_layers.cli.text_rows import check_file

OWNER = "summarize"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    add = parser.add_argument
    add("file", metavar="FILE", type=Path, help="the text, UTF-8, plain or gzip")
    add("--model", required=True, metavar="MODEL", help="a sentence encoder")
    add("--sentences", type=int, default=3, metavar="N", help="how many sentences to print (default: 3)")
    add("--language", default="en", metavar="CODE", help="the language, for the ends of sentences (default: en)")
    add("--lines", action="store_true", help="each line is a sentence")
    add("--diversity", type=float, default=0.3, metavar="X", help="how much repetition counts (default: 0.3)")
    add("--batch-size", type=int, default=32, metavar="N", help="sentences per step (default: 32)")


def run(arguments: argparse.Namespace) -> int:
    """Prints the sentences, and returns 0."""
    checks.positive_integer(OWNER, "--sentences", arguments.sentences)
    if not 0 <= arguments.diversity <= 1:
        raise ValueError(checks.message(OWNER, "--diversity", "be in [0, 1]", arguments.diversity))
    sentences = _sentences(arguments)
    vectors = encoded_rows.encode_texts(arguments, sentences, owner=OWNER)
    from keras_bert_layers.tasks import summarize

    chosen = summarize(vectors, arguments.sentences, diversity=arguments.diversity)
    sys.stdout.writelines(f"{sentences[row]}\n" for row in chosen)
    return 0


def _sentences(arguments: argparse.Namespace) -> list[str]:
    """The sentences of the file, each without the space around it."""
    from keras_bert_layers.data.text_file import numbered_lines

    check_file(arguments.file, owner=OWNER)
    segment = None if arguments.lines else import_sentencex(OWNER, "a text that is not one sentence per line").segment
    lines = [line.strip() for _, line in numbered_lines(arguments.file)]
    if segment is not None:
        paragraphs = (" ".join(part) for is_text, part in itertools.groupby(lines, bool) if is_text)
        lines = [sentence.strip() for text in paragraphs for sentence in segment(arguments.language, text)]
    sentences = [line for line in lines if line]
    if not sentences:
        raise ValueError(f"`{OWNER}`: {arguments.file} must hold a text. It has no line that is not blank.")
    return sentences
