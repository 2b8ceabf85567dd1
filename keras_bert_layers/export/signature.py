"""What a served model can be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Signature:
    """One thing that a served model can be asked.

    Args:
        name: how a client names it, e.g. `"serving_default"`.
        function: takes the tensors of `inputs` in their order and returns a dictionary of tensors, batch first.
        inputs: name -> `(shape, dtype)`, e.g. `{"text": ((None,), "string")}`.
    """

    name: str
    function: Callable[..., dict[str, Any]]
    inputs: dict[str, tuple[tuple[int | None, ...], str]]
