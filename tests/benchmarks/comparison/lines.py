"""The lines of the table: each is a contender in a dtype."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """A line of the table.

    Args:
        name: its name in the table.
        contender: a module of `contenders`.
        dtype: `"float32"`, `"bfloat16"` or `"int8"`.
        least_length: what a contender that pads to a constant pads to, if no text is longer; such a line takes part
            only where that is more than the longest text needs.
    """

    name: str
    contender: str
    dtype: str
    least_length: int = 0

    @property
    def label(self) -> str:
        """Name and dtype; no two lines have the same."""
        return f"{self.name}, {self.dtype}"

    @property
    def is_ours(self) -> bool:
        """Whether the line is this package's."""
        return self.contender.startswith("ours")


SAVED_MODEL, PREDICT = ("ours, SavedModel", "ours_saved_model"), ("ours, Keras", "ours_keras")
OURS_ONNX = ("ours, ONNX file", "ours_onnx")
UNPACKED = ("ours, SavedModel, weights not packed", "ours_saved_model_unpacked")
KERAS_HUB = ("KerasHub", "kerashub")
KERAS_HUB_128 = ("KerasHub at 128", "kerashub")
TORCH = ("transformers + torch", "transformers_torch")
ONNX = ("tokenizers + ONNX Runtime", "onnx_runtime")
SENTENCE_TRANSFORMERS = ("sentence-transformers", "sentence_transformers_encode")
GARDEN = ("tf.text + Model Garden", "model_garden")
OPENVINO = ("tokenizers + OpenVINO", "openvino_model")
CTRANSLATE2 = ("tokenizers + CTranslate2", "ctranslate2_encoder")
FASTEMBED = ("fastembed", "fastembed_model")

FLOAT32, BFLOAT16, INT8 = "float32", "bfloat16", "int8"

REFERENCE = Line(*TORCH, FLOAT32)
CUSTOMARY = Line(*KERAS_HUB_128, FLOAT32, least_length=128)  # the constant of google-research/bert for GLUE
VECTORS = (
    *(Line(*who, FLOAT32) for who in (SAVED_MODEL, UNPACKED, PREDICT, KERAS_HUB)),
    CUSTOMARY,
    REFERENCE,
    *(Line(*who, FLOAT32) for who in (OURS_ONNX, ONNX, SENTENCE_TRANSFORMERS, GARDEN)),
    *(Line(*who, FLOAT32) for who in (OPENVINO, CTRANSLATE2, FASTEMBED)),
    *(Line(*who, BFLOAT16) for who in (SAVED_MODEL, PREDICT, KERAS_HUB, TORCH, SENTENCE_TRANSFORMERS, GARDEN)),
    Line(*OPENVINO, BFLOAT16),
    *(Line(*who, INT8) for who in (OURS_ONNX, ONNX, CTRANSLATE2)),
)
LATENCY = tuple(line for line in VECTORS if line.contender != "ours_keras" and line != CUSTOMARY)
TRAINING = (
    *(Line(*who, FLOAT32) for who in (PREDICT, KERAS_HUB)),
    CUSTOMARY,
    REFERENCE,
    *(Line(*who, BFLOAT16) for who in (PREDICT, TORCH)),
)
START_UP = {
    "minilm": (
        *(line for line in VECTORS if line.dtype == FLOAT32 and line != CUSTOMARY),
        Line(*SAVED_MODEL, BFLOAT16),
    ),
    # The memory of a large model; the small one gives the seconds.
    "base": (Line(*SAVED_MODEL, FLOAT32), Line(*UNPACKED, FLOAT32), Line(*ONNX, FLOAT32), Line(*SAVED_MODEL, BFLOAT16)),
}
GROWTH = (
    *(Line(*who, FLOAT32) for who in (SAVED_MODEL, KERAS_HUB, TORCH, ONNX)),
    *(Line(*who, BFLOAT16) for who in (SAVED_MODEL, TORCH)),
)
