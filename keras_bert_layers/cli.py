"""`keras-bert-layers`: convert, inspect, ask and compare BERTs from a shell.

Thin: it reads arguments, calls the command, and turns what goes wrong into one line and an exit code. Nothing that
takes long is imported before it is clear that it is needed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

from keras_bert_layers import __version__
from keras_bert_layers._cli import compare, convert, inspect, predict
from keras_bert_layers._cli.terminal import PROGRAM, tell, warnings_in_one_line

DONE, DIFFERENT, ERROR = 0, 1, 2
# As shells call the end by a signal: 128 + its number.
INTERRUPTED, BROKEN_PIPE, TERMINATED = (128 + number for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM))

_COMMANDS = {"convert": convert, "inspect": inspect, "predict": predict, "compare": compare}
_EPILOG = """\
exit codes:
  0    done; for compare: the two agree
  1    compare only: they do not agree
  2    an error, told in one line on stderr; nothing half-written is left
  130  interrupted
  141  nobody reads the output any more

keras-bert-layers COMMAND --help has examples."""
# What the package and those below it raise on purpose. CheckpointError is a ValueError.
_TOLD = (ValueError, TypeError, OSError, RuntimeError, ImportError, MemoryError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        arguments: the words behind the program's name; those of this process if None.

    Returns:
        The exit code: 0 done, 1 two checkpoints differ, 2 an error, 130 interrupted, 141 a closed pipe.

    Raises:
        SystemExit: after `--help` and `--version`, and for arguments that do not parse (code 2).

    Examples:
        >>> main(["inspect", "no/such/directory"])
        2
    """
    parsed = _parser().parse_args(arguments)
    try:
        with warnings_in_one_line():
            code = parsed.run(parsed)
            sys.stdout.flush()  # here, where a closed pipe is caught
            return code
    except BrokenPipeError:
        _forget_stdout()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        tell("interrupted", "nothing half-written is left.")
        return INTERRUPTED
    except Exception as error:
        if parsed.debug or not isinstance(error, _TOLD):
            traceback.print_exc()
        tell("error", str(error) or type(error).__name__)
        return ERROR


def run() -> NoReturn:
    """Runs a command as a process: the program `keras-bert-layers`."""
    signal.signal(signal.SIGTERM, _terminate)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    code = main()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)  # to take TensorFlow apart in Python takes most of a second; the system does it at once


def _terminate(number: int, frame: Any) -> NoReturn:
    """Ends as after an error, so that what is half-written is removed."""
    raise SystemExit(TERMINATED)


def _forget_stdout() -> None:
    """Lets Python throw away what is still to be written, without a second error at its end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors take one line."""

    def error(self, message: str) -> NoReturn:
        tell("error", f"{message}. See `{self.prog} --help`.")
        raise SystemExit(ERROR)


def _parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = _Parser(
        prog=PROGRAM,
        description="Any BERT in, any BERT out: convert, inspect, ask and compare BERT checkpoints.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, module in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=module.HELP,
            description=module.DESCRIPTION,
            epilog=module.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
        command.set_defaults(run=module.run)
    return parser
