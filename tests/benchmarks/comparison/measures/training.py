"""Training steps on SST-2: strings to new weights, batches of 32, AdamW, dropout, the gradients clipped.

Every turn trains on the same sentences in the same order; no contender groups them by length.
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
    """One result, of MiniLM."""
    if "minilm" not in models:
        return []
    pool = read_sst2(session.data, "train")
    rows = draw(list(zip(*pool, strict=True)), session.plan.num_training_texts)
    texts, labels = [text for text, _ in rows], [label for _, label in rows]
    say(f"training: minilm, {len(texts)} sentences a turn")
    session.prepare("minilm")
    session.crew.let_weights_change(True)
    lengths, longest = session.counter.lengths(texts), max(session.counter.lengths(pool[0]))
    ask = {"texts": texts, "labels": labels, "batch_size": BATCH_SIZE}
    trial = {**ask, "texts": texts[:BATCH_SIZE], "labels": labels[:BATCH_SIZE]}
    loaded, skipped = session.load_all(TRAINING, "minilm", "trainer", longest=longest, trial=trial)
    turns = {each.line.label: partial(each.worker.ask, "train", key=each.key, **ask) for each in loaded}
    figures, failed = take_turns(turns, session.plan, session.crew.rest)
    session.crew.let_weights_change(False)
    return [
        {
            "model": "minilm",
            "batch_size": BATCH_SIZE,
            "num_texts": len(texts),
            "num_tokens": sum(lengths),
            "longest": max(lengths),
            "seconds": series(figures, "seconds"),
            "processor_seconds": series(figures, "processor_seconds"),
            "losses": series(figures, "loss"),
            "settings": {each.line.label: each.setting for each in loaded},
            "left_out": {**skipped, **failed},
        }
    ]
