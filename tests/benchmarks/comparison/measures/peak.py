"""The machine's own matrix-product peak: the best of TensorFlow and torch on large square matrices."""

from __future__ import annotations

from typing import Any

from comparison.contender_error import ContenderError
from comparison.session import Session, say

LIBRARIES = {"TensorFlow": "ours_saved_model", "torch": "transformers_torch"}
DTYPES = ("float32", "bfloat16")
REPETITIONS = 4


def measure_peak(session: Session) -> list[dict[str, Any]]:
    """GFLOP/s of each product of each library in each dtype."""
    say("the matrix-product peak")
    size, found = session.plan.peak_size, []
    for dtype in DTYPES:
        for library, contender in LIBRARIES.items():
            session.crew.rest()
            try:
                ask = {"dtype": dtype, "size": size, "repetitions": REPETITIONS}
                seconds = session.crew.worker(contender).ask("multiply", **ask)["seconds"]
            except ContenderError as error:
                say(f"  left out: {library}: {error}")
                continue
            speeds = [2 * size**3 / each / 1e9 for each in seconds]
            found.append({"library": library, "dtype": dtype, "size": size, "gigaflops": speeds})
    return found
