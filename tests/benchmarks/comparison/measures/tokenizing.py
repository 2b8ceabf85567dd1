"""Tokenizing alone: `bench_tokenizer.py`, in its own process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from comparison.session import Session, say

PROGRAM = Path(__file__).parents[2] / "bench_tokenizer.py"


def measure_tokenizing(session: Session, models: tuple[str, ...]) -> list[dict[str, Any]]:
    """One result: seconds per batch of each tokenizer, round by round."""
    say("tokenizing")
    session.crew.rest()
    path = session.folder / "tokenizing.json"
    texts = session.data / "glue/SST-2/train.tsv.gz"
    options = ["--json", str(path), "--rounds", str(session.plan.tokenizer_rounds), "--texts", str(texts)]
    finished = subprocess.run([sys.executable, str(PROGRAM), *options], capture_output=True, text=True, check=False)
    if finished.returncode:
        reason = finished.stderr.strip().splitlines()[-1:] or ["no reason"]
        return [{"seconds": {}, "left_out": {"bench_tokenizer.py": reason[0]}}]
    pairs = json.loads(path.read_text(encoding="utf-8"))["seconds"]
    seconds = {name: [wall for wall, _ in rounds] for name, rounds in pairs.items()}
    processor_seconds = {name: [processor for _, processor in rounds] for name, rounds in pairs.items()}
    return [{"num_texts": 1000, "seconds": seconds, "processor_seconds": processor_seconds, "left_out": {}}]
