"""What a user sees beside the answers: errors and warnings in one line, progress, and none of TensorFlow's chatter."""

from __future__ import annotations

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


def tell(kind: str, message: object) -> None:
    """Writes one line to stderr: the program's name, what kind of line it is, and the message."""
    text = " ".join(line.strip() for line in str(message).splitlines())
    sys.stderr.write(f"{PROGRAM}: {kind}: {text}\n")


@contextlib.contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Inside, a `UserWarning` is a line on stderr, once; other warnings are as Python was told."""

    def show(message: Warning | str, category: type[Warning], *place: Any, **others: Any) -> None:
        tell("warning", message)

    with warnings.catch_warnings():
        warnings.filterwarnings("default", category=UserWarning)
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def quiet_start() -> Iterator[None]:
    """Keeps off the screen what TensorFlow says of itself while it is imported inside.

    Its C++ parts write to file number 2 before they look at the log level. After an error all of it is shown. A user
    who set `TF_CPP_MIN_LOG_LEVEL` sees everything that this asks for.
    """
    if _LOG_LEVEL in os.environ or "tensorflow" in sys.modules:
        yield
        return
    os.environ[_LOG_LEVEL] = _FATAL_ONLY
    sys.stderr.flush()
    kept = os.dup(_STDERR)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), _STDERR)
        try:
            yield
        except Exception:
            said.seek(0)
            os.write(kept, said.read())
            raise
        finally:
            os.dup2(kept, _STDERR)
            os.close(kept)


@contextlib.contextmanager
def progress(title: str, total: int | None, *, unit: str, shown: bool = True) -> Iterator[Callable[[int], Any]]:
    """A bar on stderr, where that is a terminal.

    Args:
        title: what stands before the bar.
        total: how many units there will be; None if nobody knows.
        unit: `"B"` for bytes, or what is counted.
        shown: False for no bar at all.

    Yields:
        A function that says how many units were done since the last call.
    """
    if not shown or not sys.stderr.isatty():
        yield lambda done: None
        return
    from tqdm import tqdm  # huggingface_hub brings it

    is_bytes = unit == "B"
    unit = unit if is_bytes else f" {unit}"
    with tqdm(desc=title, total=total, unit=unit, unit_scale=is_bytes, leave=False, file=sys.stderr) as bar:
        yield bar.update
