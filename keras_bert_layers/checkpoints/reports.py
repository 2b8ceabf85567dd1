"""`LoadReport`: what became of every weight when a checkpoint was read."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Sequence
from typing import Any

from keras_bert_layers._internal import checks

_NAMES_IN_A_LINE = 3


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """What became of every tensor of a checkpoint and of every weight of the model that it was read into.

    `str(report)` is a readable summary, with one line for each reason to ignore tensors. Every reader logs it at level
    INFO through the logger `keras_bert_layers.checkpoints`, and `load_report(model)` gives it again.

    Args:
        source: the directory that was read.
        loaded: names of the tensors that were read, as the checkpoint has them.
        fresh: paths of the model's weights that the checkpoint does not hold and that keep their random values.
        ignored: names of the tensors that were not read, each with the reason.

    Examples:
        >>> report = LoadReport(source="bert", loaded=("a", "b"), fresh=("pooler/dense/bias",), ignored={"c": "a head"})
        >>> print(report)
        bert: 2 tensors loaded, 1 weight fresh, 1 tensor ignored
          fresh: pooler/dense/bias
          ignored: c (a head)
    """

    source: str
    loaded: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    ignored: dict[str, str] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        counts = [
            f"{_count(len(self.loaded), 'tensor')} loaded",
            f"{_count(len(self.fresh), 'weight')} fresh",
            f"{_count(len(self.ignored), 'tensor')} ignored",
        ]
        lines = [f"{self.source}: {', '.join(counts)}"]
        lines += [f"  fresh: {path}" for path in self.fresh]
        names: dict[str, list[str]] = {}
        for name, reason in self.ignored.items():
            names.setdefault(reason, []).append(name)
        lines += [f"  ignored: {first_names(some, _NAMES_IN_A_LINE)} ({reason})" for reason, some in names.items()]
        return "\n".join(lines)


def first_names(names: Sequence[str], most: int) -> str:
    """The first names, at most `most` of them, and how many more: an optimizer alone has two for every weight."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# Beside the models, not on them: a report is about a reading, not part of what a model saves.
_reports: weakref.WeakKeyDictionary[Any, LoadReport] = weakref.WeakKeyDictionary()


def remember_report(model: Any, report: LoadReport) -> None:
    """Keeps the report for `load_report`, for as long as the model lives."""
    _reports[model] = report


def load_report(model: Any) -> LoadReport:
    """What became of every weight when this model was read from a checkpoint.

    Args:
        model: what `load_backbone` or `load_task` returned.

    Returns:
        The report.

    Raises:
        ValueError: if the model was not read from a checkpoint directory in this process.
    """
    if model not in _reports:
        rule = "come from `load_backbone` or `load_task` and a directory"
        raise ValueError(checks.message("load_report", "model", rule, model))
    return _reports[model]
