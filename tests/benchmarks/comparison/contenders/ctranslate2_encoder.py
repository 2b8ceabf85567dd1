"""`tokenizers` and CTranslate2, which skips padding too; `int8` is its own conversion of weights and activations.

The mean over tokens and the unit length are NumPy's. A batch is given in its order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from comparison.batches import over_batches, tokenizer_without_padding, unit_means, versions_of
from comparison.machine import num_cores


def prepare(folder: Path, dtype: str) -> None:
    """Converts the model, once for all dtypes."""
    from ctranslate2.converters import TransformersConverter

    if not _converted(folder).exists():
        TransformersConverter(str(folder / "huggingface")).convert(str(_converted(folder)))


def _converted(folder: Path) -> Path:
    return folder / "ctranslate2"


def start() -> dict[str, str]:
    import ctranslate2  # noqa: F401
    import tokenizers  # noqa: F401

    return versions_of("ctranslate2", "tokenizers")


def encoder(folder: Path, dtype: str) -> Callable:
    import ctranslate2

    tokenizer = tokenizer_without_padding(folder / "huggingface/tokenizer.json")
    model = ctranslate2.Encoder(str(_converted(folder)), "cpu", compute_type=dtype, intra_threads=num_cores())

    def encode_batch(texts: Sequence[str]) -> Any:
        rows = [encoding.ids for encoding in tokenizer.encode_batch_fast(list(texts))]
        hidden = np.array(model.forward_batch(rows).last_hidden_state)
        lengths = np.array([len(row) for row in rows])
        return unit_means(hidden, np.arange(hidden.shape[1]) < lengths[:, None])

    return over_batches(encode_batch)
