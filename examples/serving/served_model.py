"""A folder of versions: the newest is loaded, tried and asked, and replaced when the next one comes."""

from __future__ import annotations

import gc
import logging
import threading
from pathlib import Path
from typing import Any

from exported_model import ExportedModel

logger = logging.getLogger("served_model")


class ServedModel:
    """The newest version of the SavedModel in a folder of versions, `folder/1`, `folder/2` and so on.

    A new number is loaded and tried beside the old version, which answers until the new one can. A version that does
    not load is told to the log, and the one before stays. Who keeps `current` while a request lasts asks one version.

    Args:
        folder: the folder of versions.
        poll_seconds: how often `watch` looks for a new one.
    """

    def __init__(self, folder: str | Path, *, poll_seconds: float = 1.0):
        self.folder = Path(folder)
        self.poll_seconds = poll_seconds
        self._current: ExportedModel | None = None
        self._refused: dict[int, tuple[Any, ...]] = {}
        self._loading: int | None = None
        self._stopped = threading.Event()

    @property
    def current(self) -> ExportedModel | None:
        """The version that answers; None before the first is loaded."""
        return self._current

    def load_newest(self) -> bool:
        """Loads the version of the highest number that can be loaded, if it is not the one that answers already.

        Returns:
            Whether another version answers now.
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
                self._current = ExportedModel(path, number)
            except Exception as error:  # whatever a broken model raises, the server goes on
                self._refused[number] = state
                logger.error("%s: version %d is not served: %s", self.folder, number, ExportedModel.reason(error))
                continue
            finally:
                self._loading = None
            logger.info("%s: version %d answers from now on", self.folder, number)
            gc.collect()  # a loaded model holds itself in cycles, and is large
            return True
        return False

    def versions(self) -> dict[int, str]:
        """The state of every version in the folder, in TensorFlow Serving's words."""
        states = dict.fromkeys(self._numbers(), "END")
        if self._loading is not None:
            states[self._loading] = "LOADING"
        if self._current is not None:
            states[self._current.number] = "AVAILABLE"
        return states

    def watch(self) -> threading.Thread:
        """Starts to look for new versions, until `stop`."""
        thread = threading.Thread(target=self._watch, name="versions", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """Looks for no more versions."""
        self._stopped.set()

    def _numbers(self) -> list[int]:
        """The versions that are there; one that is being copied under its number lacks its graph or fails to load."""
        names = [path.parent.name for path in self.folder.glob("*/saved_model.pb")] if self.folder.is_dir() else []
        return [int(name) for name in names if name.isdecimal() and name.isascii()]

    def _watch(self) -> None:
        while not self._stopped.wait(self.poll_seconds):
            try:
                self.load_newest()
            except OSError as error:  # a folder that goes away while it is read
                logger.error("%s: %s", self.folder, error)


def _state(path: Path) -> tuple[Any, ...]:
    """What changes when somebody changes the files of a version."""
    files = [file for file in path.rglob("*") if file.is_file()]
    return tuple(sorted((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files))
