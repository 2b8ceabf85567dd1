"""Train a vocabulary, or extend or prune that of a model.

train writes a directory with a tokenizer, for load_tokenizer and transformers. extend and prune write complete models
in MODEL's own layout. DIR is written completely or not at all.

MODEL is a directory in HuggingFace's, sentence-transformers', Google's or KerasHub's layout; a name,
hf://owner/name, or a preset; or the .keras file of a task. Files of texts and words are UTF-8, plain or gzip, with a
text or a word on each line.

Examples:
  keras-bert-layers vocabulary train corpus.txt --size 8000 --to my-tokenizer
  keras-bert-layers vocabulary extend all-MiniLM-L6-v2 words.txt --to minilm-medicine
  keras-bert-layers vocabulary prune all-MiniLM-L6-v2 corpus.txt --tokens 8000 --to minilm-small
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.files.atomic_write import atomic_write
from keras_bert_layers.cli.models import FLOAT_BYTES, LoadedModel, keras_file, load_model, source_of
from keras_bert_layers.cli.terminal import quiet_start
from keras_bert_layers.cli.text_rows import batches, check_file, rows_of_file
from keras_bert_layers.cli.written_models import check_destination, write_model
from keras_bert_layers.preprocessing.tokenizer import Tokenizer

OWNER = "vocabulary"
# The longest text that BERT's own tokenizers take.
MAX_LENGTH = 512
_BATCH_SIZE = 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the three sub-commands."""
    verbs = parser.add_subparsers(required=True, metavar="VERB", dest="verb")
    train = verbs.add_parser("train", help="train a WordPiece vocabulary on texts")
    train.add_argument("file", metavar="CORPUS", type=Path, help="the texts")
    train.add_argument("--size", type=int, default=30522, metavar="N", help="the most tokens (default: 30522)")
    train.add_argument("--cased", action="store_true", help="keep capitals and accents")
    extend = verbs.add_parser("extend", help="add words to a model, as tokens of their own")
    extend.add_argument("source", metavar="MODEL", help="the model to extend")
    extend.add_argument("file", metavar="WORDS", type=Path, help="the new words")
    prune = verbs.add_parser("prune", help="leave out of a model the tokens that texts do not use")
    prune.add_argument("source", metavar="MODEL", help="the model to prune")
    prune.add_argument("file", metavar="CORPUS", type=Path, help="the texts")
    prune.add_argument("--tokens", type=int, metavar="N", help="the most tokens to keep (default: all that are used)")
    for verb, function in ((train, _train), (extend, _change), (prune, _change)):
        verb.add_argument("--to", required=True, type=Path, metavar="DIR", help="where to write: a new path")
        verb.add_argument("--force", action="store_true", help="replace the model at DIR")
        verb.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        verb.set_defaults(function=function)


def run(arguments: argparse.Namespace) -> int:
    """Runs the sub-command, and returns 0."""
    check_destination(arguments.to, replace=arguments.force, owner=OWNER, argument="DIR")
    check_file(arguments.file, owner=OWNER)
    with quiet_start():
        import keras_bert_layers.checkpoints.task_loader  # noqa: F401  and the backend
    arguments.function(arguments)
    return 0


def _train(arguments: argparse.Namespace) -> None:
    from keras_bert_layers.checkpoints.huggingface.tokenizer.writer import write_word_piece_tokenizer
    from keras_bert_layers.preprocessing import BertTokenizer, train_vocabulary

    options: dict[str, Any] = {"lowercase": not arguments.cased, "reference": "huggingface"}
    tokens = train_vocabulary(_lines(arguments.file), arguments.size, **options)
    tokenizer = BertTokenizer(tokens, **options)
    pieces = _pieces_per_word(tokenizer, arguments.file)
    with atomic_write(arguments.to, owner=OWNER, argument="DIR", replace=arguments.force) as folder:
        folder.mkdir()
        write_word_piece_tokenizer(folder, tokenizer, max_length=MAX_LENGTH)
    sys.stdout.write(f"{arguments.to}: {len(tokens):,} tokens, {pieces:.3f} pieces per word\n")


def _change(arguments: argparse.Namespace) -> None:
    from keras_bert_layers.tasks import extend_vocabulary, prune_vocabulary

    loaded, layout = _loaded(arguments)
    if arguments.verb == "extend":
        words = [word for line in _lines(arguments.file) if (word := line.strip())]
        changed = extend_vocabulary(loaded.model, words, preprocessor=loaded.preprocessor)
    else:
        options = {"num_tokens": arguments.tokens, "preprocessor": loaded.preprocessor}
        changed = prune_vocabulary(loaded.model, _lines(arguments.file), **options)
    _write(loaded, LoadedModel(*changed, loaded.task), layout, arguments)


def _loaded(arguments: argparse.Namespace) -> tuple[LoadedModel, str]:
    """The model, and the name of its layout for `convert`."""
    from keras_bert_layers.checkpoints.hub import resolve
    from keras_bert_layers.checkpoints.open_checkpoint import open_checkpoint

    source = source_of(arguments.source)
    if keras_file(source):
        if arguments.to.suffix != ".keras":
            rule = "end in .keras, as MODEL does"
            raise ValueError(checks.message(OWNER, "DIR", rule, str(arguments.to)))
        return load_model(source, None, owner=OWNER), "keras"
    directory = str(resolve(source, owner=OWNER))  # once, as it compares every file's hash
    return load_model(directory, None, owner=OWNER), open_checkpoint(directory, owner=OWNER).layout.value


def _write(old: LoadedModel, new: LoadedModel, layout: str, arguments: argparse.Namespace) -> None:
    """Writes the new model, and what has changed to stdout."""
    tokenizers = [loaded.preprocessor.tokenizer for loaded in (old, new)]
    tokens = [f"{tokenizer.vocabulary_size():,}" for tokenizer in tokenizers]
    pieces = [f"{_pieces_per_word(tokenizer, arguments.file):.3f}" for tokenizer in tokenizers]
    sizes = [f"{loaded.model.count_params() * FLOAT_BYTES / 1e6:,.1f}" for loaded in (old, new)]
    with atomic_write(arguments.to, owner=OWNER, argument="DIR", replace=arguments.force) as path:
        write_model(new, path, layout)
    sys.stdout.write(
        f"tokens: {' -> '.join(tokens)}\n"
        f"pieces per word of {arguments.file.name}: {' -> '.join(pieces)}\n"
        f"size: {' -> '.join(sizes)} MB as float32\n"
        f"{arguments.to}: {type(new.model).__name__}, {new.model.count_params():,} parameters\n"
    )


def _lines(path: Path) -> Iterator[str]:
    for row in rows_of_file(path, {"text": 1}, form="lines", owner=OWNER):
        yield row.texts[0]


def _pieces_per_word(tokenizer: Tokenizer, path: Path) -> float:
    """The average number of tokens per word of a file."""
    import numpy as np

    continues = np.array(tokenizer.continues_word())
    num_tokens = num_words = 0
    for batch in batches(rows_of_file(path, {"text": 1}, form="lines", owner=OWNER), _BATCH_SIZE):
        ids = tokenizer.tokenize([row.texts[0] for row in batch]).values.numpy()
        num_tokens += ids.size
        num_words += int((~continues[ids]).sum())
    return num_tokens / max(num_words, 1)
