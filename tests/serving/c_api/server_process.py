"""A process that answers requests to a SavedModel over a pipe."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from c_api import tensors

# Codes of tensorflow/c/tf_status.h.
OK = 0
INVALID_ARGUMENT = 3
NOT_FOUND = 5


class ServerDiedError(RuntimeError):
    """The process has ended where it should have answered; the text states how."""


@dataclass(frozen=True)
class Answer:
    """The result of a request.

    Args:
        code: TensorFlow's code, 0 if all is well.
        message: TensorFlow's message.
        outputs: name -> array, strings as bytes in an array of objects; empty unless all is well.
        seconds: of each run.
        resident_bytes: the memory that the process has after the request; 0 where the system does not report it.
        peak_bytes: the most that it had since it began.
    """

    code: int
    message: str
    outputs: dict[str, np.ndarray]
    seconds: list[float]
    resident_bytes: int
    peak_bytes: int


class ServerProcess:
    """A server that has loaded a model; close it, or use it in `with`.

    Args:
        command: the program, of `Installation.compile_server` or `Installation.stand_in`.
        model: the SavedModel.
        libraries: operations to load first.
        config: a serialized `ConfigProto`.
        allow_xla: False refuses to compile by XLA, as TensorFlow Serving does by default.
        environment: variables beside those of this process.

    Raises:
        ServerDiedError: the model cannot be loaded.
    """

    def __init__(
        self,
        command: Sequence[str],
        model: Path,
        *,
        libraries: Sequence[Path] = (),
        config: bytes | None = None,
        allow_xla: bool = False,
        environment: Mapping[str, str] | None = None,
    ):
        options = [part for library in libraries for part in ("--ops", str(library))]
        if not allow_xla:
            options.append("--no-xla")
        self._folder = tempfile.TemporaryDirectory()
        self._errors = open(Path(self._folder.name) / "errors", "w+b")  # noqa: SIM115 - closed by `close`
        if config is not None:
            path = Path(self._folder.name) / "config"
            path.write_bytes(config)
            options += ["--config", str(path)]
        start = time.monotonic()
        self._process = subprocess.Popen(
            [*command, str(model), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **(environment or {})},
        )
        self.version = self._await(lambda stream: tensors.read_string(stream).decode())
        self.load_seconds = self._await(lambda stream: tensors.read_numbers(stream, "d")[0])
        self.start_seconds = time.monotonic() - start

    @property
    def process_id(self) -> int:
        """Of the server."""
        return self._process.pid

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close(check=kind is None)

    def ask(self, signature: str, inputs: Mapping[str, np.ndarray], *, repeats: int = 1) -> Answer:
        """The answer to one request, which is run `repeats` times."""
        head = tensors.string(signature.encode()) + tensors.numbers("II", repeats, len(inputs))
        parts = [tensors.string(name.encode()) + tensors.tensor(values) for name, values in inputs.items()]
        try:
            self._process.stdin.write(head + b"".join(parts))
            self._process.stdin.flush()
        except BrokenPipeError:
            self._raise_dead()
        return self._await(_read_answer)

    def close(self, *, check: bool = True) -> None:
        """Ends the process by the end of its input.

        Raises:
            ServerDiedError: it did not end well, and `check`.
        """
        if self._process.stdin.closed:
            return
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            check = False
        code = self._process.wait(timeout=60)
        self._process.stdout.close()
        errors = self.errors()
        self._errors.close()
        self._folder.cleanup()
        if check and code:
            raise ServerDiedError(f"The server ended with {code}: {errors[-2000:]}")

    def errors(self) -> str:
        """What it wrote to its standard error."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def _await(self, read):
        try:
            return read(self._process.stdout)
        except EOFError:
            self._raise_dead()

    def _raise_dead(self) -> None:
        code = self._process.wait(timeout=60)
        message = f"The server ended with {code}: {self.errors()[-2000:]}"
        self.close(check=False)
        raise ServerDiedError(message) from None


def _read_answer(stream) -> Answer:
    (code,) = tensors.read_numbers(stream, "I")
    message = tensors.read_string(stream).decode(errors="replace")
    (repeats,) = tensors.read_numbers(stream, "I")
    seconds = list(tensors.read_numbers(stream, f"{repeats}d"))
    resident, peak, count = tensors.read_numbers(stream, "QQI")
    outputs = {}
    for _ in range(count):
        name = tensors.read_string(stream).decode()
        outputs[name] = tensors.read_tensor(stream)
    return Answer(code, message, outputs, seconds, resident, peak)
