"""What the routes for vectors share."""

from __future__ import annotations

from typing import Any

import numpy as np

ENCODERS_ONLY = "the model must be a sentence encoder or a dual encoder; this one gives no embedding of a text"

# A vector of zeros stays one.
SMALLEST_NORM = 1e-12


def is_encoder(version: Any, signature: str = "serving_default") -> bool:
    """Whether a signature turns texts into vectors."""
    return version.inputs_of(signature) == ["text"] and "embedding" in version.outputs_of(signature)


def normalized(vectors: Any) -> np.ndarray:
    """Vectors of length 1, float32 `(rows, vector_dim)`."""
    vectors = np.asarray(vectors, np.float32)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), SMALLEST_NORM)
