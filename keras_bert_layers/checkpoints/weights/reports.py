"""`LoadReport`: which tensors of a checkpoint were loaded, newly initialized or ignored; and progress of loading."""

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.checkpoint_error import first_names

if TYPE_CHECKING:
    import keras

_NAMES_IN_A_LINE = 3

UNKNOWN = "unknown"
"""The reason of keys and tensors about which nothing is known."""

# Not attributes of the models: a report is about one loading, not part of what a model saves.
_reports: weakref.WeakKeyDictionary[Any, LoadReport] = weakref.WeakKeyDictionary()

_watcher: ContextVar[Callable[[int], object] | None] = ContextVar("watcher", default=None)


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """Report of loading a checkpoint: the tensors that were loaded or ignored, and the weights without a tensor.

    `str(report)` is a readable summary, with one line for each reason to ignore tensors. Every loader logs it at level
    INFO through the logger `keras_bert_layers.checkpoints`, and `load_report(model)` returns it.

    Args:
        source: the directory that was read.
        loaded: names of the tensors that were read, as the checkpoint has them.
        newly_initialized: paths of the model's weights that the checkpoint does not hold; their values are random.
        ignored: names of the tensors that were not read, each with the reason.
        ignored_keys: the config's keys that were not read, each with the reason; without those that every checkpoint
            of the layout has.
        notes: what was assumed where the files do not state it, such as the task, and what was changed, such as a
            prefix that was removed from the names.

    Examples:
        >>> new = ("pooler/dense/bias",)
        >>> print(LoadReport(source="bert", loaded=("a", "b"), newly_initialized=new, ignored={"c": "a head"}))
        bert: 2 tensors loaded, 1 weight newly initialized, 1 tensor ignored
          newly initialized: pooler/dense/bias
          ignored: c (a head)
    """

    source: str
    loaded: tuple[str, ...] = ()
    newly_initialized: tuple[str, ...] = ()
    ignored: dict[str, str] = dataclasses.field(default_factory=dict)
    ignored_keys: dict[str, str] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def fresh(self) -> tuple[str, ...]:
        """The older name of `newly_initialized`."""
        return self.newly_initialized

    @property
    def unknown(self) -> tuple[str, ...]:
        """The keys of the config and the tensors about which nothing is known."""
        return tuple(name for name, why in {**self.ignored_keys, **self.ignored}.items() if why == UNKNOWN)

    def __str__(self) -> str:
        loaded, ignored = (_count(len(names), "tensor") for names in (self.loaded, self.ignored))
        new = _count(len(self.newly_initialized), "weight")
        lines = [f"{self.source}: {loaded} loaded, {new} newly initialized, {ignored} ignored"]
        lines += [f"  newly initialized: {path}" for path in self.newly_initialized]
        lines += [f"  ignored: {line}" for line in _by_reason(self.ignored)]
        lines += [f"  ignored in the config: {line}" for line in _by_reason(self.ignored_keys)]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def _by_reason(reasons: Mapping[str, str]) -> list[str]:
    """One line per reason, with the first names."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    return [f"{first_names(some, _NAMES_IN_A_LINE)} ({reason})" for reason, some in names.items()]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def remember_report(model: keras.Model, report: LoadReport) -> None:
    """Keeps the report for `load_report`, for as long as the model lives."""
    _reports[model] = report


def load_report(model: keras.Model) -> LoadReport:
    """Returns the report of the checkpoint that a model was loaded from.

    Args:
        model: what `load_backbone` or `load_task` returned.

    Returns:
        The report.

    Raises:
        ValueError: if the model was not loaded from a checkpoint directory in this process.
    """
    if model not in _reports:
        rule = "come from `load_backbone` or `load_task` and a directory"
        raise ValueError(checks.message("load_report", "model", rule, model))
    return _reports[model]


@contextlib.contextmanager
def watched(watcher: Callable[[int], object]) -> Iterator[None]:
    """Calls `watcher` with the size of each weight that is read, or about to be written, inside the block.

    Args:
        watcher: called once for each tensor, with its number of bytes in float32.

    Examples:
        >>> seen = []
        >>> with watched(seen.append):
        ...     _ = moved(np.zeros((2, 3), "float32"))
        >>> seen
        [24]
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def moved(array: np.ndarray) -> np.ndarray:
    """Returns the same array after reporting it to the watcher."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(array.nbytes)
    return array
