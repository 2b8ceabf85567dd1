"""Taking turns: every line runs once per round, one at a time, with the processors at rest in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from comparison.contender_error import ContenderError
from comparison.plan import Plan

Turn = Callable[[], dict[str, Any]]


def take_turns(
    turns: Mapping[str, Turn], plan: Plan, rest: Callable[[], None], *, num_untimed: int = 1
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, str]]:
    """Runs the rounds.

    Every round begins with another line. A line that fails leaves the comparison.

    Args:
        turns: name -> what the line does in its turn, which returns its figures.
        plan: how many rounds, and for how long.
        rest: waits until the processors are idle.
        num_untimed: rounds at the beginning whose figures are not kept.

    Returns:
        Name -> its figures, one dictionary per round; and name -> reason, for those that failed.
    """
    names, failed = list(turns), {}
    kept: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    deadline = time.perf_counter() + plan.longest_work
    for number in range(-num_untimed, plan.num_rounds):
        if number >= plan.least_rounds and time.perf_counter() > deadline:
            break
        for name in _rotated(names, number):
            if name in failed:
                continue
            rest()
            try:
                figures = turns[name]()
            except ContenderError as error:
                failed[name] = str(error)
                continue
            if number >= 0:
                kept[name].append(figures)
    return {name: figures for name, figures in kept.items() if name not in failed}, failed


def series(figures: dict[str, list[dict[str, Any]]], key: str) -> dict[str, list[float]]:
    """Name -> one of its figures, round by round."""
    return {name: [each[key] for each in rounds] for name, rounds in figures.items()}


def _rotated(names: list[str], number: int) -> list[str]:
    first = number % len(names) if names else 0
    return names[first:] + names[:first]
