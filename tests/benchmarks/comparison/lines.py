"""Who takes part: a line of the table is a contender in a dtype."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """A line of the table.

    Args:
        name: what the table calls it.
        contender: a module of `contenders`.
        dtype: `"float32"`, `"bfloat16"` or `"int8"`.
    """

    name: str
    contender: str
    dtype: str

    @property
    def label(self) -> str:
        """Name and dtype; no two lines have the same."""
        return f"{self.name}, {self.dtype}"

    @property
    def is_ours(self) -> bool:
        """Whether the line is this package's."""
        return self.contender.startswith("ours")


SAVED_MODEL, PREDICT = ("ours, SavedModel", "ours_saved_model"), ("ours, Keras", "ours_keras")
KERAS_HUB = ("KerasHub", "kerashub")
TORCH = ("transformers + torch", "transformers_torch")
ONNX = ("tokenizers + ONNX Runtime", "onnx_runtime")
SENTENCE_TRANSFORMERS = ("sentence-transformers", "sentence_transformers_encode")
GARDEN = ("tf.text + Model Garden", "model_garden")

FLOAT32, BFLOAT16, INT8 = "float32", "bfloat16", "int8"

REFERENCE = Line(*TORCH, FLOAT32)
VECTORS = (
    *(Line(*who, FLOAT32) for who in (SAVED_MODEL, PREDICT, KERAS_HUB)),
    REFERENCE,
    *(Line(*who, FLOAT32) for who in (ONNX, SENTENCE_TRANSFORMERS, GARDEN)),
    *(Line(*who, BFLOAT16) for who in (SAVED_MODEL, PREDICT, KERAS_HUB, TORCH, SENTENCE_TRANSFORMERS, GARDEN)),
    Line(*ONNX, INT8),
)
LATENCY = tuple(line for line in VECTORS if line.contender != "ours_keras")
TRAINING = tuple(Line(*who, dtype) for dtype in (FLOAT32, BFLOAT16) for who in (PREDICT, KERAS_HUB, TORCH))
START_UP = tuple(line for line in VECTORS if line.dtype == FLOAT32 or line.contender == "ours_saved_model")
GROWTH = (
    *(Line(*who, FLOAT32) for who in (SAVED_MODEL, KERAS_HUB, TORCH, ONNX)),
    *(Line(*who, BFLOAT16) for who in (SAVED_MODEL, TORCH)),
)
