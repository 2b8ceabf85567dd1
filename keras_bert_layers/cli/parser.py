"""Any BERT in, any BERT out: convert, inspect, run and compare BERT checkpoints.

exit codes:
  0    success; for compare: the checkpoints agree
  1    compare only: the checkpoints differ
  2    an error, reported in one line on stderr; nothing half-written is left
  130  interrupted
  141  the reader of the output has closed it
  143  terminated

keras-bert-layers COMMAND --help shows examples.
"""

from __future__ import annotations

import argparse
from types import ModuleType
from typing import Any, NoReturn

from keras_bert_layers import __version__
from keras_bert_layers.cli import compare, convert, inspect, predict
from keras_bert_layers.cli.terminal import PROGRAM, report

ERROR = 2
_COMMANDS = {"convert": convert, "inspect": inspect, "predict": predict, "compare": compare}


class _Parser(argparse.ArgumentParser):
    """A parser that shows help texts as written, and reports errors in one line."""

    def __init__(self, **options: Any):
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        report("error", f"{message}. See `{self.prog} --help`.")
        raise SystemExit(ERROR)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line; a command's help is its module's docstring."""
    description, _, epilog = (__doc__ or "").partition("\n\n")
    parser = _Parser(prog=PROGRAM, description=description, epilog=epilog)
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, module in _COMMANDS.items():
        command = commands.add_parser(name, **_help(module))
        module.add_arguments(command)
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
