"""sentence-transformers: `encode` of a list of strings, which sorts them by length itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from comparison.batches import MAX_LENGTH, versions_of
from comparison.machine import num_cores


def start() -> dict[str, str]:
    import sentence_transformers  # noqa: F401
    import torch

    torch.set_num_threads(num_cores())
    return versions_of("sentence-transformers", "transformers", "torch")


def encoder(folder: Path, dtype: str) -> Callable:
    from sentence_transformers import SentenceTransformer

    options = {"dtype": dtype, "attn_implementation": "sdpa"}
    model = SentenceTransformer(str(folder / "huggingface"), device="cpu", model_kwargs=options)
    model.max_seq_length = MAX_LENGTH

    def encode(texts: list[str], batch_size: int):
        vectors = model.encode(
            texts,
            batch_size=batch_size,
            normalize_embeddings=True,
            convert_to_numpy=False,
            convert_to_tensor=True,
            show_progress_bar=False,
        )
        return vectors.float().numpy()

    return encode
