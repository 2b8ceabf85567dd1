"""Compares a server's answers with Keras's, and returns the largest difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from c_api.notes import note

Tensors = Mapping[str, np.ndarray]

# The same float32 operations in two processes: threads sum in another order, and TensorFlow rewrites the graph that it
# serves. Logits of large random weights are near 10, so the bound is relative as well. Measured: 6e-6.
TOLERANCE = 1e-5


def assert_same(found: Tensors, expected: Tensors, *, tolerance: float, hint: str = "") -> float | None:
    """Asserts that strings and integers are equal, and floats within a tolerance.

    Returns:
        The largest difference of two floats; None if there are none.
    """
    assert set(found) == set(expected), hint
    largest = None
    for name, values in expected.items():
        assert found[name].shape == values.shape, f"{name} {hint}"
        if values.dtype.kind != "f":
            np.testing.assert_array_equal(found[name], values, err_msg=f"{name} {hint}")
            continue
        np.testing.assert_allclose(found[name], values, rtol=tolerance, atol=tolerance, err_msg=f"{name} {hint}")
        difference = float(np.abs(found[name].astype(np.float64) - values).max(initial=0))
        largest = max(largest or 0.0, difference)
    return largest


def assert_equals_keras(
    served: Any, ask: Callable[[str, dict[str, np.ndarray]], Tensors], texts: np.ndarray, *, runtime: str
) -> None:
    """Queries every signature of a task with texts, and compares with Keras.

    Args:
        served: a `ServedTask`.
        ask: takes a signature's name and its inputs, and returns its outputs.
        texts: a column of texts.
        runtime: the name of the runtime, for the table.
    """
    for signature in served.signatures:
        inputs = served.inputs(signature, texts)
        found = served.meaningful(signature, inputs, ask(signature, inputs))
        expected = served.meaningful(signature, inputs, served.ask_keras(signature, texts))
        largest = assert_same(found, expected, tolerance=TOLERANCE, hint=f"of {signature}")
        note("difference", task=served.name, signature=signature, runtime=runtime, difference=largest)
