"""How time grows with the length of the texts and with the size of the batch, and full batches of the longest texts."""

from __future__ import annotations

from functools import partial
from typing import Any

from comparison.arithmetic import matrix_product_operations
from comparison.batches import MAX_LENGTH
from comparison.lines import GROWTH
from comparison.session import Session, say
from comparison.texts import draw, read_sst2
from comparison.turns import series, take_turns


def measure_growth(session: Session, models: tuple[str, ...]) -> list[dict[str, Any]]:
    """One result for each length, for each batch size, and for each model on full batches."""
    plan, counter, results = session.plan, session.counter, []
    for model in models:
        session.prepare(model)
    if "minilm" in models:
        for length in plan.lengths:
            texts = counter.texts_of_length(length, plan.growth_batch_size)
            results.append(_measure(session, "length", "minilm", texts, length, longest=length))
        pool = read_sst2(session.data, "dev")[0]
        sentences, longest = draw(pool, max(plan.batch_sizes)), max(counter.lengths(pool))
        for batch_size in plan.batch_sizes:
            results.append(_measure(session, "batch", "minilm", sentences[:batch_size], batch_size, longest=longest))
        session.crew.forget()
    if "base" in models:
        texts = counter.texts_of_length(MAX_LENGTH, plan.full_batch_size)
        results.append(_measure(session, "full", "base", texts, MAX_LENGTH, longest=MAX_LENGTH))
        session.crew.forget()
    return results


def _measure(session: Session, axis: str, model: str, texts: list[str], value: int, *, longest: int) -> dict[str, Any]:
    """One batch that holds all texts."""
    say(f"growth: {axis} {value}")
    lengths = session.counter.lengths(texts)
    ask = {"texts": texts, "batch_size": len(texts)}
    loaded, skipped = session.load_all(GROWTH, model, "encoder", longest=longest, trial=ask)
    turns = {each.line.label: partial(each.worker.ask, "encode", key=each.key, **ask) for each in loaded}
    figures, failed = take_turns(turns, session.plan, session.crew.rest)
    for each in loaded:
        if "sequence_length" in each.setting:  # a program for every length, and its own copy of the weights
            each.worker.ask("forget", key=each.key)
    return {
        "model": model,
        "axis": axis,
        "value": value,
        "num_texts": len(texts),
        "num_tokens": sum(lengths),
        "operations": matrix_product_operations(session.sizes(model), lengths),
        "seconds": series(figures, "seconds"),
        "settings": {each.line.label: each.setting for each in loaded},
        "left_out": {**skipped, **failed},
    }
