"""`tokenizers` and OpenVINO, which reads the model of transformers.

OpenVINO computes a float32 model in bfloat16 where the processor has instructions for it, unless it is told its
precision, as here. Mean and unit length are a part of the model. Ids come from `tokenizers`, not from
openvino-tokenizers, so that every contender has the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from comparison.batches import over_batches, padded, tokenizer_without_padding, versions_of
from comparison.machine import num_cores

_PRECISIONS = {"float32": "f32", "bfloat16": "bf16"}


def prepare(folder: Path, dtype: str) -> None:
    """Converts the model, once for all dtypes."""
    if _converted(folder).exists():
        return
    import openvino
    import torch
    from transformers import AutoModel

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = AutoModel.from_pretrained(folder / "huggingface", add_pooling_layer=False)

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            hidden = self.model(input_ids, attention_mask).last_hidden_state
            weights = attention_mask[:, :, None].to(hidden.dtype)
            return torch.nn.functional.normalize((hidden * weights).sum(1) / weights.sum(1), dim=-1)

    ones = torch.ones(2, 8, dtype=torch.long)
    model = openvino.convert_model(Encoder().eval(), example_input={"input_ids": ones, "attention_mask": ones})
    openvino.save_model(model, _converted(folder), compress_to_fp16=False)


def _converted(folder: Path) -> Path:
    return folder / "openvino.xml"


def start() -> dict[str, str]:
    import openvino  # noqa: F401
    import tokenizers  # noqa: F401

    return versions_of("openvino", "tokenizers")


def encoder(folder: Path, dtype: str) -> Callable:
    import openvino

    tokenizer = tokenizer_without_padding(folder / "huggingface/tokenizer.json")
    options = {
        "INFERENCE_PRECISION_HINT": _PRECISIONS[dtype],
        "INFERENCE_NUM_THREADS": num_cores(),
        "NUM_STREAMS": 1,
    }
    model = openvino.Core().compile_model(_converted(folder), "CPU", options)

    def encode_batch(texts: Sequence[str]) -> Any:
        ids, mask = padded([encoding.ids for encoding in tokenizer.encode_batch_fast(list(texts))])
        return np.array(model({"input_ids": ids, "attention_mask": mask})[0])

    return over_batches(encode_batch)
