"""A signature of a SavedModel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Signature:
    """A signature of a SavedModel: a function that clients can call by name.

    Args:
        name: what clients call it by, e.g. `"serving_default"`.
        function: takes the tensors of `inputs` in order, and returns a dictionary of tensors, batch first.
        inputs: name -> `(shape, dtype)`, e.g. `{"text": ((None,), "string")}`.
    """

    name: str
    function: Callable[..., dict[str, Any]]
    inputs: dict[str, tuple[tuple[int | None, ...], str]]
