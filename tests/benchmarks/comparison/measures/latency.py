"""Latency of one text at a time: the seconds from a short SST-2 sentence to its vector."""

from __future__ import annotations

from functools import partial
from typing import Any

from comparison.arithmetic import quantile
from comparison.lines import LATENCY
from comparison.session import Session, say
from comparison.texts import SHORT_SENTENCE, read_sst2
from comparison.turns import take_turns


def measure_latency(session: Session, models: tuple[str, ...]) -> list[dict[str, Any]]:
    """One result for each model."""
    results = []
    longest = max(session.counter.lengths(read_sst2(session.data, "dev")[0]))
    for model in models:
        say(f"one text at a time: {model}")
        session.prepare(model)
        lengths = session.counter.lengths([SHORT_SENTENCE])
        trial = {"texts": [SHORT_SENTENCE], "batch_size": 1}
        loaded, skipped = session.load_all(LATENCY, model, "encoder", longest=longest, trial=trial)
        ask = {"text": SHORT_SENTENCE, "repetitions": session.plan.num_answers}
        turns = {each.line.label: partial(each.worker.ask, "answer_one_by_one", key=each.key, **ask) for each in loaded}
        figures, failed = take_turns(turns, session.plan, session.crew.rest)
        results.append(
            {
                "model": model,
                "num_tokens": lengths[0],
                # The p50 of each turn, for ratios round by round; p50 and p99 over all answers.
                "seconds": {
                    name: [quantile(turn["seconds"], 0.5) for turn in rounds] for name, rounds in figures.items()
                },
                "quantiles": {name: _quantiles(rounds) for name, rounds in figures.items()},
                "settings": {each.line.label: each.setting for each in loaded},
                "left_out": {**skipped, **failed},
            }
        )
        session.crew.forget()
    return results


def _quantiles(rounds: list[dict[str, Any]]) -> dict[str, float]:
    every = [seconds for turn in rounds for seconds in turn["seconds"]]
    return {"p50": quantile(every, 0.5), "p99": quantile(every, 0.99), "answers": len(every)}
