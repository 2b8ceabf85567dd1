"""transformers on torch: scaled dot-product attention, `torch.compile`, bfloat16, fused AdamW.

Inference has bfloat16 weights; training has float32 weights under autocast. Rows without padding get no attention mask,
so that torch can choose its quickest kernel. Masked tokens are selected before the head of pretraining.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from typing import Any

import torch
from acceleration.works import FINE_TUNING, INFERENCE, MIXED, Batch, Case, Scale, batches
from torch.nn.functional import cross_entropy, normalize
from transformers import BertConfig, BertForPreTraining, BertForSequenceClassification, BertModel

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
LEARNING_RATE, WEIGHT_DECAY, CLIP_NORM = 5e-5, 0.01, 1.0


def start() -> dict[str, Any]:
    """The device, and the versions of what computes."""
    torch.set_float32_matmul_precision("high")
    torch._dynamo.config.recompile_limit = 64  # one program for each bucket
    versions = {name: importlib.metadata.version(name) for name in ("torch", "transformers")}
    return {"device": torch.cuda.get_device_name() if CUDA else "cpu", "versions": versions, "backend": "torch"}


def layouts(case: Case) -> list[str]:
    """The layouts of rows to measure."""
    return ["sorted", "buckets"] if case.length == MIXED else ["full"]


def runner(case: Case, scale: Scale, layout: str, *, smoke: bool) -> Callable[[], Any]:
    """A function that runs over all texts of a case once, and waits until the device is done."""
    config = BertConfig(
        vocab_size=scale.model["vocabulary_size"],
        hidden_size=scale.model["hidden_dim"],
        num_hidden_layers=scale.model["num_layers"],
        num_attention_heads=scale.model["num_heads"],
        intermediate_size=scale.model["intermediate_dim"],
        attention_probs_dropout_prob=case.attention_dropout,
        attn_implementation="sdpa",
        num_labels=2,
    )
    # TorchInductor takes longer to compile for a CPU than a smoke test may take in all.
    options = {"dynamic": layout == "sorted", "backend": "aot_eager" if smoke else "inductor"}
    steps = [_on_host(step, has_padding=layout != "full") for step in batches(case, scale, layout)]
    if case.work == INFERENCE:
        return _encoder(config, steps, options)
    return _trainer(config, steps, options, _classifier_loss if case.work == FINE_TUNING else _pretraining_loss)


def _encoder(config: BertConfig, steps: list[dict[str, Any]], options: dict[str, Any]) -> Callable[[], Any]:
    model = BertModel(config, add_pooling_layer=False).to(DEVICE, torch.bfloat16).eval()

    def encode(inputs: dict[str, Any], weights: Any) -> Any:
        hidden = model(**inputs).last_hidden_state.float()
        return normalize((hidden * weights).sum(1) / weights.sum(1).clamp(min=1), dim=-1)

    compiled = torch.compile(encode, **options)

    @torch.inference_mode()
    def run() -> Any:
        found = [compiled(step["inputs"], step["mask"][:, :, None].float()) for step in _on_device(steps)]
        return [vectors.cpu() for vectors in found]

    return run


def _trainer(config: BertConfig, steps: list[dict[str, Any]], options: dict[str, Any], loss: Any) -> Callable[[], Any]:
    kind = BertForSequenceClassification if loss is _classifier_loss else BertForPreTraining
    model = kind(config).to(DEVICE).train()
    decayed, plain = [], []
    for name, parameter in model.named_parameters():
        (plain if name.endswith("bias") or "LayerNorm" in name else decayed).append(parameter)
    groups = [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LEARNING_RATE, fused=True)
    compiled = torch.compile(lambda step: loss(model, step), **options)

    def run() -> float:
        total = torch.zeros((), device=DEVICE)
        for step in _on_device(steps):
            with torch.autocast(DEVICE, torch.bfloat16):
                value = compiled(step)
            value.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            total += value.detach()
        return total.item()  # waits for the device

    return run


def _classifier_loss(model: Any, step: dict[str, Any]) -> Any:
    return cross_entropy(model(**step["inputs"]).logits.float(), step["labels"])


def _pretraining_loss(model: Any, step: dict[str, Any]) -> Any:
    encoded = model.bert(**step["inputs"])
    hidden = encoded.last_hidden_state
    picked = hidden.flatten(0, 1)[step["flat_positions"]]  # [B, M, H]
    logits = model.cls.predictions(picked).float()
    losses = cross_entropy(logits.flatten(0, 1), step["masked_ids"].flatten(), reduction="none")
    weights = step["is_masked"].flatten()
    pairs = cross_entropy(model.cls.seq_relationship(encoded.pooler_output).float(), step["labels"])
    return (losses * weights).sum() / weights.sum().clamp(min=1) + pairs


def _on_host(step: Batch, *, has_padding: bool) -> dict[str, Any]:
    tensors = {name: torch.from_numpy(values) for name, values in step.ids.items()}
    num_rows, width = tensors["token_ids"].shape
    positions = torch.from_numpy(step.positions).long() + width * torch.arange(num_rows)[:, None]
    inputs = {"input_ids": tensors["token_ids"].long(), "token_type_ids": tensors["segment_ids"].long()}
    if has_padding:
        inputs["attention_mask"] = tensors["padding_mask"].long()
    found = {
        "inputs": inputs,
        "mask": tensors["padding_mask"],
        "flat_positions": positions,
        "masked_ids": torch.from_numpy(step.masked_ids).long(),
        "is_masked": torch.from_numpy(step.is_masked),
        "labels": torch.from_numpy(step.labels).long(),
    }
    return torch.utils._pytree.tree_map(lambda tensor: tensor.pin_memory() if CUDA else tensor, found)


def _on_device(steps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for step in steps:
        yield torch.utils._pytree.tree_map(lambda tensor: tensor.to(DEVICE, non_blocking=True), step)


def matrix_product(size: int) -> Callable[[int], None]:
    """A function that multiplies two square bfloat16 matrices a number of times, and waits for the result."""
    first, second = (torch.randn(size, size, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))

    @torch.inference_mode()
    def run(count: int) -> None:
        for _ in range(count):
            product = first @ second
        product[0, 0].item()

    return run
