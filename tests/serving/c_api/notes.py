"""Records figures of the serving tests, for docs/benchmarks/serving.md (see `tests/benchmarks/draw_serving.py`)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

# Names the file to which every note is added, a line of JSON each.
VARIABLE = "KERAS_BERT_LAYERS_SERVING_NOTES"


def note(kind: str, **values: Any) -> None:
    """Prints what was found, and adds it to the file that the environment names, if it names one."""
    line = json.dumps({"kind": kind, **values})
    print(line)
    if os.environ.get(VARIABLE):
        with Path(os.environ[VARIABLE]).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
