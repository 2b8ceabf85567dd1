"""`tokenizers` and ONNX Runtime, with ONNX Runtime's own optimizer for BERT, on shapes found at run time.

The model is exported by torch, pooling included, and fused by `onnxruntime.transformers.optimizer`; the session runs
with all graph optimizations on all cores. `int8` is the dynamic quantization of `onnxruntime.quantization`. There is no
bfloat16 for processors of this kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from comparison.batches import MAX_LENGTH, over_batches, versions_of
from comparison.machine import num_cores

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def prepare(folder: Path, dtype: str) -> None:
    """Exports and optimizes; quantizes what was made for float32."""
    if dtype == "int8":
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantize_dynamic(
            onnx_file(folder, "float32"),
            onnx_file(folder, dtype),
            weight_type=QuantType.QInt8,
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},  # of what the fused operators give
        )
        return
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model

    exported = folder / "exported.onnx"
    _export(folder / "huggingface", exported)
    config = json.loads((folder / "huggingface/config.json").read_text(encoding="utf-8"))
    model = optimize_model(
        str(exported),
        model_type="bert",
        num_heads=config["num_attention_heads"],
        hidden_size=config["hidden_size"],
        optimization_options=FusionOptions("bert"),
        use_gpu=False,
    )
    fused = model.get_fused_operator_statistics()
    if fused["Attention"] != config["num_hidden_layers"]:
        raise ValueError(f"ONNX Runtime's optimizer did not fuse the attention of every layer. Received: {fused}.")
    model.save_model_to_file(str(onnx_file(folder, dtype)))
    exported.unlink()


def onnx_file(folder: Path, dtype: str) -> Path:
    """Where the model lies."""
    return folder / f"{dtype}.onnx"


def _export(source: Path, path: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            # The optimizer knows the plain form of attention.
            self.model = AutoModel.from_pretrained(source, attn_implementation="eager", add_pooling_layer=False)

        def forward(self, input_ids, attention_mask, token_type_ids):
            outputs = self.model(input_ids, attention_mask, token_type_ids).last_hidden_state
            weights = attention_mask[:, :, None].to(outputs.dtype)
            return torch.nn.functional.normalize((outputs * weights).sum(1) / weights.sum(1), dim=-1)

    batch = AutoTokenizer.from_pretrained(source)(["one", "two, and longer"], padding=True, return_tensors="pt")
    torch.onnx.export(
        Encoder().eval(),
        tuple(batch[name] for name in INPUTS),
        str(path),
        input_names=list(INPUTS),
        output_names=["embedding"],
        dynamic_axes={**{name: {0: "batch", 1: "sequence"} for name in INPUTS}, "embedding": {0: "batch"}},
        opset_version=17,
        dynamo=False,
    )


def start() -> dict[str, str]:
    import onnxruntime  # noqa: F401
    import tokenizers  # noqa: F401

    return versions_of("onnxruntime", "tokenizers")


def encoder(folder: Path, dtype: str) -> Callable:
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "huggingface/tokenizer.json"))
    tokenizer.enable_padding(pad_id=tokenizer.token_to_id("[PAD]"), pad_token="[PAD]")
    tokenizer.enable_truncation(MAX_LENGTH)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = num_cores()
    session = onnxruntime.InferenceSession(onnx_file(folder, dtype), options, providers=["CPUExecutionProvider"])

    def encode_batch(texts: Sequence[str]) -> Any:
        encodings = tokenizer.encode_batch_fast(list(texts))
        rows = ([each.ids, each.attention_mask, each.type_ids] for each in encodings)
        ids, mask, types = np.array(list(rows), np.int64).transpose(1, 0, 2)
        return session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": types})[0]

    return over_batches(encode_batch)
