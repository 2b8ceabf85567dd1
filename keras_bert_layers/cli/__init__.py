"""The program `keras-bert-layers`: converts, inspects, runs, compares, trains and serves BERT models.

Each command parses its arguments, calls the package and prints. An error becomes one line and an exit code. Slow
imports wait until a command needs them.
"""

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

from keras_bert_layers.cli.parser import ERROR, make_parser
from keras_bert_layers.cli.terminal import report, warnings_in_one_line

# What shells report after SIGINT, SIGPIPE and SIGTERM: 128 + the signal. Literals, as Windows has no `signal.SIGPIPE`.
INTERRUPTED, BROKEN_PIPE, TERMINATED = 130, 141, 143
# What the package and its dependencies raise on purpose. CheckpointError is a ValueError.
_EXPECTED = (ValueError, TypeError, OSError, RuntimeError, ImportError, MemoryError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        arguments: the words after the program's name; None means those of this process.

    Returns:
        The exit code: 0 success, 1 two checkpoints differ, 2 an error, 130 interrupted, 141 a closed pipe.

    Raises:
        SystemExit: after `--help` and `--version`, and for arguments that do not parse (code 2).

    Examples:
        >>> main(["inspect", "no/such/directory"])
        2
    """
    parsed = make_parser().parse_args(arguments)
    try:
        with warnings_in_one_line():
            code = parsed.run(parsed)
            sys.stdout.flush()  # here, where a closed pipe is caught
            return code
    except BrokenPipeError:
        _discard_stdout()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        report("interrupted", "nothing half-written is left.")
        return INTERRUPTED
    except Exception as error:
        if parsed.debug or not isinstance(error, _EXPECTED):
            traceback.print_exc()
        report("error", str(error) or type(error).__name__)
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
    os._exit(code)  # Python takes most of a second to unload TensorFlow; the system does it at once


def _terminate(number: int, frame: Any) -> NoReturn:
    """Ends as after an error, so that half-written files are removed."""
    raise SystemExit(TERMINATED)


def _discard_stdout() -> None:
    """Discards unwritten output, which would raise a second error when Python exits."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
