"""fastembed, with a model of one's own from a folder: `tokenizers` and ONNX Runtime, and the mean in NumPy."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from comparison.batches import MAX_LENGTH, versions_of
from comparison.machine import num_cores

_NAME, _FILE = "comparison/encoder", "model.onnx"
_TOKENIZER_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def prepare(folder: Path, dtype: str) -> None:
    """Exports the last hidden states, with the tokenizer's files beside them."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = AutoModel.from_pretrained(
                folder / "huggingface", attn_implementation="eager", add_pooling_layer=False
            )

        def forward(self, *inputs: Any) -> Any:
            return self.model(*inputs).last_hidden_state

    made = _made(folder)
    made.mkdir(exist_ok=True)
    # Of the two lengths in the tokenizer's config fastembed takes the smaller.
    lengths = {"model_max_length": MAX_LENGTH, "max_length": MAX_LENGTH}
    tokenizer = AutoTokenizer.from_pretrained(folder / "huggingface", **lengths)
    tokenizer.save_pretrained(made)
    for name in _TOKENIZER_FILES:
        if not (made / name).exists() and (folder / "huggingface" / name).exists():
            shutil.copy(folder / "huggingface" / name, made)
    batch = tokenizer(["one", "two, and longer"], padding=True, return_tensors="pt")
    names = ["input_ids", "attention_mask", "token_type_ids"]
    torch.onnx.export(
        Encoder().eval(),
        tuple(batch[name] for name in names),
        str(made / _FILE),
        input_names=names,
        output_names=["last_hidden_state"],
        dynamic_axes={name: {0: "batch", 1: "sequence"} for name in (*names, "last_hidden_state")},
        opset_version=17,
        dynamo=False,
    )


def _made(folder: Path) -> Path:
    return folder / "fastembed"


def start() -> dict[str, str]:
    import fastembed  # noqa: F401

    return versions_of("fastembed", "onnxruntime")


def encoder(folder: Path, dtype: str) -> Callable:
    import json

    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    width = json.loads((folder / "huggingface/config.json").read_text(encoding="utf-8"))["hidden_size"]
    if all(each["model"] != _NAME for each in TextEmbedding.list_supported_models()):
        TextEmbedding.add_custom_model(
            _NAME, PoolingType.MEAN, True, ModelSource(url="http://localhost"), dim=width, model_file=_FILE
        )
    model = TextEmbedding(_NAME, specific_model_path=str(_made(folder)), threads=num_cores())
    return lambda texts, batch_size: np.array(list(model.embed(texts, batch_size=batch_size)))
