"""Any BERT in, any BERT out: convert, inspect, run, compare, train and serve BERT models.

exit codes:
  0    success; for compare: the checkpoints agree
  1    compare only: the checkpoints differ
  2    an error, reported in one line on stderr; nothing half-written is left
  130  interrupted
  141  the reader of the output has closed it
  143  terminated

keras-bert-layers COMMAND --help shows examples.
"""

import argparse
from types import ModuleType
from typing import Any, NoReturn

from keras_bert_layers import __version__
from keras_bert_layers.cli.commands import (
    cluster,
    compare,
    convert,
    demo,
    evaluate,
    extract,
    index,
    inspect,
    predict,
    search,
    serve,
    shards,
    similar,
    suggest,
    summarize,
    train,
    vocabulary,
)
from keras_bert_layers.cli.terminal import PROGRAM, report

ERROR = 2
_OF_MODELS = (convert, inspect, predict, compare, suggest, train, evaluate, extract)
_COMMANDS = (*_OF_MODELS, similar, cluster, summarize, index, search, vocabulary, shards, serve, demo)


class _Parser(argparse.ArgumentParser):
    """A parser that shows help texts as written, and reports errors in one line."""

    def __init__(self, **options: Any):
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    #: The positional argument that words after options belong to, which argparse takes for unknown.
    words_after_options: str | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Parses as argparse does, and lets options stand between the words of an argument."""
        namespace, words = super().parse_known_args(args, namespace)
        known, dashes, rest = words, [], []
        if "--" in words:
            known, dashes, rest = words[: words.index("--")], ["--"], words[words.index("--") + 1 :]
        if self.words_after_options is None or any(word.startswith("-") and word != "-" for word in known):
            return namespace, [*known, *dashes, *rest]
        setattr(namespace, self.words_after_options, [*getattr(namespace, self.words_after_options), *known, *rest])
        return namespace, []

    def error(self, message: str) -> NoReturn:
        report("error", f"{message}. See `{self.prog} --help`.")
        raise SystemExit(ERROR)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the program's command line; a command's help is its module's docstring."""
    description, _, epilog = (__doc__ or "").partition("\n\n")
    parser = _Parser(prog=PROGRAM, description=description, epilog=epilog)
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in _COMMANDS:
        command = commands.add_parser(module.__name__.rpartition(".")[2], **_help(module))
        module.add_arguments(command)
        command.words_after_options = getattr(module, "WORDS", None)
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
        command.set_defaults(run=module.run)
    return parser


def _help(module: ModuleType) -> dict[str, Any]:
    """The help texts in a module's docstring: one line, the description, and examples after the options."""
    description, heading, examples = (module.__doc__ or "").partition("Examples:\n")
    summary = description.partition("\n")[0]
    return {
        "help": summary[:1].lower() + summary[1:].rstrip("."),
        "description": description,
        "epilog": heading + examples,
    }
