"""Terminal output: errors and warnings in one line, progress bars, and no start-up messages of TensorFlow."""

import contextlib
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any

PROGRAM = "keras-bert-layers"
_LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_FATAL_ONLY = "3"
_STDERR = 2


def report(kind: str, message: object) -> None:
    """Writes one line to stderr: the program's name, the kind of message, and the message."""
    text = " ".join(line.strip() for line in str(message).splitlines())
    sys.stderr.write(f"{PROGRAM}: {kind}: {text}\n")


def counted(number: int, unit: str) -> str:
    """A number and what it counts.

    Examples:
        >>> counted(1, "epoch"), counted(1200, "row")
        ('1 epoch', '1,200 rows')
    """
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


@contextlib.contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Inside, each `UserWarning` is one line on stderr; other warnings follow Python's own settings."""
    with warnings.catch_warnings():
        warnings.filterwarnings("default", category=UserWarning)
        warnings.showwarning = lambda message, *_, **__: report("warning", message)
        yield


@contextlib.contextmanager
def quiet_start() -> Iterator[None]:
    """Hides the messages that TensorFlow prints while it is imported inside.

    Its C++ code writes to file descriptor 2 before it reads the log level. After an error all messages are shown. If
    the user has set `TF_CPP_MIN_LOG_LEVEL`, nothing is hidden.
    """
    if _LOG_LEVEL in os.environ or "tensorflow" in sys.modules:
        yield
        return
    os.environ[_LOG_LEVEL] = _FATAL_ONLY
    sys.stderr.flush()
    stderr = os.dup(_STDERR)
    with tempfile.TemporaryFile() as hidden:
        os.dup2(hidden.fileno(), _STDERR)
        try:
            yield
        except Exception:
            hidden.seek(0)
            os.write(stderr, hidden.read())
            raise
        finally:
            os.dup2(stderr, _STDERR)
            os.close(stderr)


@contextlib.contextmanager
def progress(title: str, total: int | None, *, unit: str, shown: bool = True) -> Iterator[Callable[[int], Any]]:
    """A progress bar on stderr, if that is a terminal.

    Args:
        title: the text before the bar.
        total: the number of units; None if unknown.
        unit: `"B"` for bytes, or what is counted.
        shown: False for no bar at all.

    Yields:
        A function that takes the number of units done since its last call.
    """
    from tqdm import tqdm

    style = {"unit": "B", "unit_scale": True} if unit == "B" else {"unit": f" {unit}"}
    disable = None if shown else True  # None: no bar if stderr is not a terminal
    with tqdm(desc=title, total=total, leave=False, file=sys.stderr, disable=disable, **style) as bar:
        yield bar.update
