"""`Session`: what all works of a run share, such as the workers, the models, the texts and the chosen settings."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comparison.arithmetic import Sizes
from comparison.contender_error import ContenderError
from comparison.lines import BFLOAT16, FLOAT32, INT8, Line
from comparison.plan import Plan
from comparison.texts import TokenCounter
from comparison.workers import Crew, WorkerProcess

MODELS = ("minilm", "base")
PREPARED = {
    "ours_saved_model": (FLOAT32, BFLOAT16),
    "ours_onnx": (FLOAT32, INT8),
    "onnx_runtime": (FLOAT32, INT8),
    "openvino_model": (FLOAT32, BFLOAT16),
    "ctranslate2_encoder": (FLOAT32, INT8),
    "fastembed_model": (FLOAT32,),
}


@dataclass
class Loaded:
    """A line that is ready for its turns."""

    line: Line
    worker: WorkerProcess
    key: str
    setting: dict[str, Any]


@dataclass
class Session:
    """A run.

    Args:
        crew: the workers.
        plan: the amounts.
        data: the folder of the texts.
        folder: where the models of the run lie.
        minilm: the HuggingFace directory of all-MiniLM-L6-v2.
    """

    crew: Crew
    plan: Plan
    data: Path
    folder: Path
    minilm: Path
    unprepared: dict[str, str] = field(default_factory=dict)
    _chosen: dict[tuple[str, ...], int] = field(default_factory=dict)
    _trials: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self):
        self.counter = TokenCounter(self.minilm / "tokenizer.json")

    @property
    def trials(self) -> list[dict[str, Any]]:
        """The seconds of each setting that was tried."""
        return self._trials

    def prepare(self, model: str) -> None:
        """Makes the files that the contenders load, once; what fails is the contender's reason to be left out."""
        folder = self.folder / model
        folder.mkdir(parents=True, exist_ok=True)
        source = folder / "huggingface"
        if not source.exists():
            say(f"writing the weights of {model}")
            if model == "minilm":
                source.symlink_to(self.minilm, target_is_directory=True)
            else:
                self._prepare_one(folder, "ours_keras", (FLOAT32,))
        if not source.exists():
            raise ContenderError(self.unprepared[f"{model}/ours_keras/{FLOAT32}"])
        for contender, dtypes in PREPARED.items():
            self._prepare_one(folder, contender, dtypes)

    def _prepare_one(self, folder: Path, contender: str, dtypes: tuple[str, ...]) -> None:
        """Runs one command of a contender, in a process that ends with it."""
        done = {dtype: folder / f".{contender}_{dtype}" for dtype in dtypes}
        wanted = [dtype for dtype in dtypes if not done[dtype].exists()]
        worker = self.crew.fresh(contender) if wanted else None
        for dtype in wanted:
            label = f"{folder.name}/{contender}/{dtype}"
            say(f"preparing {label}")
            try:
                worker.ask("prepare", folder=str(folder), dtype=dtype)
                done[dtype].touch()
            except ContenderError as error:
                self.unprepared[label] = f"cannot make its files: {error}"
        if worker is not None:
            worker.close()

    def sizes(self, model: str) -> Sizes:
        """The model's sizes."""
        config = json.loads((self.folder / model / "huggingface/config.json").read_text(encoding="utf-8"))
        return Sizes(config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"])

    def check_prepared(self, line: Line, model: str) -> None:
        """Raises where the line's files could not be made."""
        label = f"{model}/{line.contender}/{line.dtype}"
        if label in self.unprepared:
            raise ContenderError(self.unprepared[label])

    def load_all(
        self, lines: Iterable[Line], model: str, kind: str, *, longest: int, trial: dict[str, Any]
    ) -> tuple[list[Loaded], dict[str, str]]:
        """The lines that can take part, loaded with their best settings, and why the others cannot.

        Args:
            lines: the candidates.
            model: one of `MODELS`.
            kind: `"encoder"` or `"trainer"`.
            longest: the tokens of the longest text that they must be ready for.
            trial: the arguments of the command by which settings are compared.
        """
        loaded, skipped = [], {}
        for line in lines:
            if 0 < line.least_length <= longest:
                continue
            try:
                loaded.append(self._load(line, model, kind, longest, trial))
            except ContenderError as error:
                skipped[line.label] = str(error)
                say(f"  left out: {line.label}: {error}")
        return loaded, skipped

    def _load(self, line: Line, model: str, kind: str, longest: int, trial: dict[str, Any]) -> Loaded:
        self.check_prepared(line, model)
        worker = self.crew.worker(line.contender)
        settings = worker.ask("settings", kind=kind, dtype=line.dtype, longest=max(longest, line.least_length))
        choice = (line.contender, line.dtype, model, kind)
        if choice not in self._chosen:
            tries = self.plan.tries_settings and len(settings) > 1
            self._chosen[choice] = self._try(line, model, kind, settings, trial) if tries else 0
        setting = settings[self._chosen[choice]]
        key = self._load_setting(worker, line, model, kind, setting)
        return Loaded(line, worker, key, setting)

    def chosen_setting(self, worker: WorkerProcess, line: Line, model: str, kind: str, longest: int) -> dict[str, Any]:
        """The setting that was chosen before, with this work's length; the first where none was."""
        settings = worker.ask("settings", kind=kind, dtype=line.dtype, longest=longest)
        return settings[self._chosen.get((line.contender, line.dtype, model, kind), 0)]

    def _load_setting(self, worker: WorkerProcess, line: Line, model: str, kind: str, setting: dict[str, Any]) -> str:
        key = json.dumps([model, line.dtype, kind, setting])
        folder = str(self.folder / model)
        worker.ask("load", key=key, kind=kind, folder=folder, dtype=line.dtype, setting=setting)
        return key

    def _try(self, line: Line, model: str, kind: str, settings: list[dict], trial: dict[str, Any]) -> int:
        """The number of the fastest setting; each runs twice, and the second time counts."""
        worker = self.crew.worker(line.contender)
        command, seconds = {"encoder": "encode", "trainer": "train"}[kind], []
        say(f"  trying {len(settings)} settings of {line.label}")
        for setting in settings:
            try:
                key = self._load_setting(worker, line, model, kind, setting)
                worker.ask(command, key=key, **trial)
                seconds.append(worker.ask(command, key=key, **trial)["seconds"])
                worker.ask("forget", key=key)
            except ContenderError as error:
                seconds.append(None)
                say(f"  {setting}: {error}")
        self._trials.append(
            {"line": line.label, "model": model, "kind": kind, "settings": settings, "seconds": seconds}
        )
        ran = [number for number, each in enumerate(seconds) if each is not None]
        if not ran:
            raise ContenderError(f"none of its {len(settings)} settings runs")
        return min(ran, key=seconds.__getitem__)


def say(text: str) -> None:
    """Prints the progress of the run, apart from the table."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stderr.flush()
