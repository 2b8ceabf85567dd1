"""transformers on torch: scaled dot-product attention, the fast tokenizer, batches padded to their longest text.

Inference runs under `torch.inference_mode`; in bfloat16 the model is loaded in bfloat16. Training in bfloat16 runs
under autocast. The optimizer is the fused AdamW. `torch.compile` is tried for inference in float32; in bfloat16 and
in training it was tried beforehand, and took as long as without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from comparison.batches import CLIP_NORM, LEARNING_RATE, MAX_LENGTH, WEIGHT_DECAY, over_batches, versions_of
from comparison.machine import num_cores


def start() -> dict[str, str]:
    import torch
    from transformers import AutoModel, AutoTokenizer  # noqa: F401 - transformers imports them when they are named

    torch.set_num_threads(num_cores())
    return versions_of("torch", "transformers", "tokenizers")


def tokenize_with(source: str) -> Callable[[Sequence[str]], Any]:
    """Texts to the tensors of a batch."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(source)
    return lambda texts: tokenizer(
        list(texts), padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt"
    )


def encoder_settings(dtype: str, longest: int) -> list[dict[str, Any]]:
    return [{"compile": False}, {"compile": True}] if dtype == "float32" else [{"compile": False}]


def encoder(folder: Path, dtype: str, *, compile: bool) -> Callable:  # noqa: A002 - its name in the table
    import torch
    from transformers import AutoModel

    source = str(folder / "huggingface")
    tokenize = tokenize_with(source)
    model = AutoModel.from_pretrained(
        source, attn_implementation="sdpa", dtype=getattr(torch, dtype), add_pooling_layer=False
    ).eval()
    model = torch.compile(model, dynamic=True) if compile else model

    @torch.inference_mode()
    def encode_batch(texts: Sequence[str]) -> Any:
        batch = tokenize(texts)
        outputs = model(**batch).last_hidden_state.float()
        weights = batch["attention_mask"][:, :, None].float()
        mean = (outputs * weights).sum(1) / weights.sum(1)
        return torch.nn.functional.normalize(mean, dim=-1).numpy()

    return over_batches(encode_batch)


def trainer(folder: Path, dtype: str) -> Callable:
    import torch
    from transformers import AutoModelForSequenceClassification

    source = str(folder / "huggingface")
    tokenize = tokenize_with(source)
    model = AutoModelForSequenceClassification.from_pretrained(source, num_labels=2, attn_implementation="sdpa").train()
    decayed, plain = [], []
    for name, parameter in model.named_parameters():
        (plain if name.endswith("bias") or "LayerNorm" in name else decayed).append(parameter)
    groups = [{"params": decayed}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True)

    def step(texts: Sequence[str], labels: Sequence[int]) -> float:
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16"):
            loss = model(**tokenize(texts), labels=torch.tensor(labels)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    def train(texts: Sequence[str], labels: Sequence[int], batch_size: int) -> float:
        starts = range(0, len(texts), batch_size)
        losses = [step(texts[start : start + batch_size], labels[start : start + batch_size]) for start in starts]
        return sum(losses) / len(losses)

    return train


def matrix_product(dtype: str, size: int) -> Callable[[], Any]:
    import torch

    generator = torch.Generator().manual_seed(1)
    first, second = (torch.randn(size, size, generator=generator).to(getattr(torch, dtype)) for _ in range(2))
    return torch.inference_mode()(lambda: first @ second)
