"""Training steps: strings to new weights, AdamW, dropout, the gradients clipped.

The texts are sentences of SST-2 in batches of 32, and rows without padding. Every turn trains on the same texts in the
same order; no contender groups them by length.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from comparison.lines import TRAINING
from comparison.session import Session, say
from comparison.texts import draw, read_sst2
from comparison.turns import series, take_turns

BATCH_SIZE = 32


def measure_training(session: Session, models: tuple[str, ...]) -> list[dict[str, Any]]:
    """One result for the sentences and one for each size of full rows, all of MiniLM."""
    if "minilm" not in models:
        return []
    pool = read_sst2(session.data, "train")
    texts, labels = map(list, zip(*draw(list(zip(*pool, strict=True)), session.plan.num_training_texts), strict=True))
    longest = max(session.counter.lengths(pool[0]))
    session.prepare("minilm")
    session.crew.let_weights_change(True)
    results = [_measure(session, "SST-2 sentences", texts, labels, BATCH_SIZE, longest=longest)]
    for batch_size, length in session.plan.full_rows:
        texts = session.counter.texts_of_length(length, 4 * batch_size)
        labels = [number % 2 for number in range(len(texts))]
        name = f"rows of {length} tokens, without padding"
        results.append(_measure(session, name, texts, labels, batch_size, longest=length))
    session.crew.let_weights_change(False)
    return results


def _measure(
    session: Session, name: str, texts: list[str], labels: list[int], batch_size: int, *, longest: int
) -> dict[str, Any]:
    """Some texts of a file whose longest text is known."""
    say(f"training: minilm, {len(texts)} {name} a turn")
    lengths = session.counter.lengths(texts)
    ask = {"texts": texts, "labels": labels, "batch_size": batch_size}
    trial = {**ask, "texts": texts[:batch_size], "labels": labels[:batch_size]}
    loaded, skipped = session.load_all(TRAINING, "minilm", "trainer", longest=longest, trial=trial)
    turns = {each.line.label: partial(each.worker.ask, "train", key=each.key, **ask) for each in loaded}
    figures, failed = take_turns(turns, session.plan, session.crew.rest)
    return {
        "model": "minilm",
        "texts": name,
        "batch_size": batch_size,
        "num_texts": len(texts),
        "num_tokens": sum(lengths),
        "longest": max(lengths),
        "seconds": series(figures, "seconds"),
        "processor_seconds": series(figures, "processor_seconds"),
        "losses": series(figures, "loss"),
        "settings": {each.line.label: each.setting for each in loaded},
        "left_out": {**skipped, **failed},
    }
