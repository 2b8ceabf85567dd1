"""Start-up in fresh processes: import, load and first answer, peak memory, sizes on disk, and bare imports."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from itertools import pairwise
from typing import Any

from comparison.contender_error import ContenderError
from comparison.lines import START_UP, Line
from comparison.machine import folder_bytes
from comparison.session import Session, say
from comparison.texts import SHORT_SENTENCE, draw, read_squad, read_sst2
from comparison.turns import series, take_turns

BATCH_SIZE = 32
STAGES = ("import", "load", "first_answer", "total")
MEMORY = ("memory_imported", "memory_loaded", "peak_memory")
# The cost of importing this package, beyond that of Keras.
IMPORT = """
import time
start = time.perf_counter()
import keras
middle = time.perf_counter()
import keras_bert_layers
print(middle - start, time.perf_counter() - middle)
"""


def measure_start_up(session: Session, models: tuple[str, ...]) -> list[dict[str, Any]]:
    """One result for each model, and one of the imports."""
    results = []
    for model in (each for each in models if each in session.plan.fresh_models):
        say(f"fresh processes: {model}")
        session.prepare(model)
        turns, skipped = {}, {}
        for line in START_UP[model]:
            try:
                session.check_prepared(line, model)
                turns[line.label] = partial(_start, session, model, line)
            except ContenderError as error:
                skipped[line.label] = str(error)
        figures, failed = take_turns(
            turns, session.plan.with_rounds(session.plan.num_starts), session.crew.rest, num_untimed=0
        )
        results.append(
            {
                "model": model,
                "seconds": {stage: series(figures, stage) for stage in STAGES},
                **{name: series(figures, name) for name in MEMORY},
                "sizes": _sizes(session, model),
                "left_out": {**skipped, **failed},
            }
        )
    results.append({"imports": [_imports(session) for _ in range(session.plan.num_imports)]})
    return results


def _start(session: Session, model: str, line: Line) -> dict[str, float]:
    """One process: its seconds from its start to its first answer, and its memory when it has served both texts."""
    count = session.plan.num_texts[model, "squad"]
    served = draw(read_squad(session.data), count) + draw(read_sst2(session.data, "dev")[0], count)
    longest = max(session.counter.lengths(served))
    ticks = [time.perf_counter()]
    worker = session.crew.fresh(line.contender)
    try:
        worker.ask("start")
        memory = {"memory_imported": worker.ask("peak_memory")}
        ticks.append(time.perf_counter())
        setting = session.chosen_setting(worker, line, model, "encoder", longest)
        worker.ask(
            "load", key="", kind="encoder", folder=str(session.folder / model), dtype=line.dtype, setting=setting
        )
        ticks.append(time.perf_counter())
        worker.ask("answer_one_by_one", key="", text=SHORT_SENTENCE, repetitions=0)
        ticks.append(time.perf_counter())
        memory["memory_loaded"] = worker.ask("peak_memory")
        worker.ask("encode", key="", texts=served, batch_size=BATCH_SIZE)
        memory["peak_memory"] = worker.ask("peak_memory")
    finally:
        worker.close()
    stages = [end - begin for begin, end in pairwise(ticks)]
    return {**dict(zip(STAGES, [*stages, sum(stages)], strict=True)), **memory}


def _sizes(session: Session, model: str) -> dict[str, float]:
    """MB on disk: of the weights in float32, of the SavedModel, and of the rest of the SavedModel."""
    folder = session.folder / model
    variables = folder / "saved_model_float32/variables/variables.data-00000-of-00001"
    if not variables.is_file():
        return {}
    whole = folder_bytes(folder / "saved_model_float32")
    sizes = {"weights": variables.stat().st_size, "saved_model": whole, "beside": whole - variables.stat().st_size}
    return {name: size / 1e6 for name, size in sizes.items()}


def _imports(session: Session) -> dict[str, float]:
    """Seconds of `import keras`, and of `import keras_bert_layers` after it."""
    session.crew.rest()
    told = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True).stdout.split()
    return {"keras": float(told[-2]), "keras_bert_layers": float(told[-1])}
