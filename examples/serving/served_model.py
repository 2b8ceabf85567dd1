"""Serves the newest version of a model in a folder of versions: a SavedModel, or an ONNX file named model.onnx."""

from __future__ import annotations

import gc
import logging
import sys
import threading
from pathlib import Path
from typing import Any

from keras_bert_layers.export.json_request import reason

SAVED_MODEL, ONNX = "saved_model.pb", "model.onnx"

logger = logging.getLogger("served_model")


class ServedModel:
    """The newest version of the model in a folder of versions, `folder/1`, `folder/2` and so on.

    A new version is loaded and warmed up while the old one answers. If a version does not load, the error is logged and
    the old one stays. A request that keeps `current` uses one version throughout.

    Args:
        folder: the folder of versions.
        poll_seconds: how often `watch` looks for a new one.
    """

    def __init__(self, folder: str | Path, *, poll_seconds: float = 1.0):
        self.folder = Path(folder)
        self.poll_seconds = poll_seconds
        self._current: Any = None
        self._refused: dict[int, tuple[Any, ...]] = {}
        self._loading: int | None = None
        self._stopped = threading.Event()

    @property
    def current(self) -> Any:
        """The version in use, an `ExportedModel` or an `OnnxModel`; None before the first is loaded."""
        return self._current

    def load_newest(self) -> bool:
        """Loads the highest version that can be loaded, unless it is already in use.

        Returns:
            Whether the version in use has changed.
        """
        for number in sorted(self._numbers(), reverse=True):
            if self._current is not None and number == self._current.number:
                return False
            path = self.folder / str(number)
            state = _state(path)
            if self._refused.get(number) == state:
                continue
            self._loading = number
            try:
                self._current = _loaded(path, number)
            except Exception as error:  # a broken model may raise anything; the server continues
                self._refused[number] = state
                logger.error("%s: version %d is not served: %s", self.folder, number, reason(error))
                continue
            finally:
                self._loading = None
            logger.info("%s: version %d answers from now on", self.folder, number)
            gc.collect()  # a loaded model is large and has reference cycles
            return True
        return False

    def versions(self) -> dict[int, str]:
        """The state of every version in the folder, in TensorFlow Serving's terms."""
        states = dict.fromkeys(self._numbers(), "END")
        if self._loading is not None:
            states[self._loading] = "LOADING"
        if self._current is not None:
            states[self._current.number] = "AVAILABLE"
        return states

    def watch(self) -> threading.Thread:
        """Starts a thread that looks for new versions, until `stop`."""
        thread = threading.Thread(target=self._watch, name="versions", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """Stops looking for new versions."""
        self._stopped.set()

    def _numbers(self) -> list[int]:
        """The versions in the folder; one that is still being copied has no graph yet, or fails to load."""
        files = [file for name in (SAVED_MODEL, ONNX) for file in self.folder.glob(f"*/{name}")]
        names = {file.parent.name for file in files}
        return [int(name) for name in names if name.isdecimal() and name.isascii()]

    def _watch(self) -> None:
        while not self._stopped.wait(self.poll_seconds):
            try:
                self.load_newest()
            except OSError as error:  # the folder may disappear while it is read
                logger.error("%s: %s", self.folder, error)


def _loaded(path: Path, number: int) -> Any:
    """A version; TensorFlow or ONNX Runtime is imported for it, and not the other."""
    if (path / SAVED_MODEL).is_file():
        from exported_model import ExportedModel

        return ExportedModel(path, number)
    # With onnx, onnxruntime-extensions imports torch and transformers too, 230 MB, where they are installed.
    sys.modules.setdefault("onnx", None)  # type: ignore[arg-type]
    from onnx_model import OnnxModel

    return OnnxModel(path / ONNX, number)


def _state(path: Path) -> tuple[Any, ...]:
    """A value that changes with the files of a version."""
    files = [file for file in path.rglob("*") if file.is_file()]
    return tuple(sorted((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files))
