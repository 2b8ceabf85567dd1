"""This package on Keras, on the backend that KERAS_BACKEND names: the tasks' own `predict` and `fit`, on ids."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from acceleration.works import FINE_TUNING, INFERENCE, MIXED, Batch, Case, Scale, batches
from keras import ops

import keras_bert_layers as kbl


def start() -> dict[str, Any]:
    """Makes everything compute in bfloat16; the device, and the versions of what computes."""
    keras.config.set_dtype_policy("mixed_bfloat16")
    backend = keras.backend.backend()
    names = {"jax": ("jax", "jaxlib"), "torch": ("torch",)}[backend]
    versions = {name: importlib.metadata.version(name) for name in ("keras", *names, "numpy")}
    return {"device": _device(), "versions": versions, "backend": backend}


def layouts(case: Case) -> list[str]:
    """The layouts of rows to measure; there is one class per row, so texts that share a row cannot be classified."""
    if case.length != MIXED:
        return ["full"]
    return ["buckets"] if case.work == FINE_TUNING else ["packed", "buckets"]


def runner(case: Case, scale: Scale, layout: str, *, smoke: bool) -> Callable[[], None]:
    """A function that runs over all texts of a case once, and waits until the device is done."""
    dropout = case.attention_dropout if case.is_training else 0.0
    config = kbl.BertConfig(**scale.model, activation="gelu_erf", attention_dropout=dropout)
    backbone = kbl.BertBackbone(config)
    backbone.packed_rows = layout == "packed"
    steps = batches(case, scale, layout)
    if case.work == INFERENCE:
        most = max(int(step.ids["padding_mask"].max()) for step in steps)
        encoder = _mean_of_each_text(backbone, most) if layout == "packed" else kbl.BertSentenceEncoder(backbone)
        data = Steps([(step.ids,) for step in steps])
        return lambda: encoder.predict(data, verbose=0)
    task = kbl.BertClassifier(backbone, 2) if case.work == FINE_TUNING else kbl.BertPretrainer(backbone)
    data = Steps([_trained_on(step, case) for step in steps])
    return lambda: task.fit(data, shuffle=False, verbose=0).history["loss"]


class Steps(keras.utils.PyDataset):
    """Batches that are in memory."""

    def __init__(self, steps: Sequence[tuple[Any, ...]]):
        super().__init__()
        self._steps = steps

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return self._steps[index]


def _trained_on(step: Batch, case: Case) -> tuple[Any, ...]:
    if case.work == FINE_TUNING:
        return step.ids, step.labels
    x = {**step.ids, "mask_positions": step.positions}
    weights = {"masked_lm": step.is_masked, "next_sentence": np.ones(len(step.labels), "float32")}
    return x, {"masked_lm": step.masked_ids, "next_sentence": step.labels}, weights


def _mean_of_each_text(backbone: kbl.BertBackbone, most_texts: int) -> keras.Model:
    """Packed rows to the mean vector of each of their texts, `(rows, texts, hidden)`."""
    hidden = backbone(backbone.input)["sequence_output"]
    return keras.Model(backbone.input, _TextMeans(most_texts)(hidden, backbone.input["padding_mask"]))


class _TextMeans(keras.layers.Layer):
    def __init__(self, most_texts: int):
        super().__init__()
        self._most_texts = most_texts

    def call(self, hidden: Any, text_numbers: Any) -> Any:
        is_in = ops.one_hot(text_numbers - 1, self._most_texts, dtype=hidden.dtype)  # [B, S, T]; padding is in none
        sums = ops.einsum("bst,bsh->bth", is_in, hidden)
        return ops.cast(sums, "float32") / ops.maximum(1.0, ops.sum(ops.cast(is_in, "float32"), axis=1)[..., None])


def matrix_product(size: int) -> Callable[[int], None]:
    """A function that multiplies two square bfloat16 matrices a number of times, and waits for the result."""
    first, second = (ops.cast(keras.random.normal((size, size)), "bfloat16") for _ in range(2))
    multiply = ops.matmul
    if keras.backend.backend() == "jax":
        import jax

        multiply = jax.jit(ops.matmul)

    def run(count: int) -> None:
        for _ in range(count):
            product = multiply(first, second)
        ops.convert_to_numpy(product[:1, :1])

    return run


def _device() -> str:
    if keras.backend.backend() == "jax":
        import jax

        return jax.devices()[0].device_kind
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
