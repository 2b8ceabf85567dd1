"""The accelerator benchmark: operation counts, the layout of texts in rows, and a smoke run."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from acceleration.works import (
    BASE,
    FINE_TUNING,
    INFERENCE,
    MIXED,
    PRETRAINING,
    SMOKE,
    Case,
    batches,
    cases,
    operations,
    packed,
    text_lengths,
)

# Each work, length, layout and dropout once: the program compiles for each of a case's layouts.
SOME = (
    *(Case(work, MIXED) for work in (INFERENCE, PRETRAINING)),
    Case(FINE_TUNING, SMOKE.lengths[-1], attention_dropout=0.1),
)
PROGRAM = Path(__file__).with_name("accelerator.py")
HAS_PEER = all(importlib.util.find_spec(name) for name in ("torch", "transformers"))


@pytest.mark.parametrize("layout", ["sorted", "buckets", "packed"])
@pytest.mark.parametrize("work", [INFERENCE, PRETRAINING])
def test_every_text_is_in_one_row_once(work, layout):
    case = Case(work, MIXED)
    steps = batches(case, SMOKE, layout)
    lengths = []
    for step in steps:
        mask = step.ids["padding_mask"]
        for row in mask:
            counts = np.bincount(row)
            lengths += counts[1:].tolist()
            assert (np.diff(np.flatnonzero(row)) == 1).all()  # texts stand side by side, from the first column on
        masked = np.take_along_axis(mask, step.positions, axis=1)
        assert (masked[step.is_masked > 0] > 0).all()
        assert (step.masked_ids == np.take_along_axis(step.ids["token_ids"], step.positions, axis=1)).all()
    assert sorted(lengths) == sorted(text_lengths(case, SMOKE))
    if layout != "sorted":
        assert len({step.ids["token_ids"].shape for step in steps}) <= len(SMOKE.buckets)


def test_a_row_takes_the_first_text_that_fits():
    assert packed(np.array([3, 6, 2, 7, 1]), 8) == [[3, 4], [1, 2], [0]]


def test_operations_of_bert_base():
    """Six operations a parameter and token for training, as is usual, and what attention and vocabulary add."""
    lengths = text_lengths(Case(INFERENCE, 512), BASE)
    tokens = lengths.sum()
    layers = 12 * 12 * 768**2
    attention = 12 * 4 * 512 * 768
    assert operations(Case(INFERENCE, 512), BASE) == pytest.approx((2 * layers + attention) * tokens)
    case = Case(PRETRAINING, 512)
    tokens, rows = text_lengths(case, BASE).sum(), len(text_lengths(case, BASE))
    heads = rows * (77 * 2 * 768 * (768 + 30522) + 2 * 768**2)
    assert operations(case, BASE) == pytest.approx(3 * ((2 * layers + attention) * tokens + heads))
    # All layers but the last, whose queries, output and feed-forward products are of one token per row.
    part = operations(Case(FINE_TUNING, 512), BASE) / (3 * (2 * layers + attention) * tokens)
    assert 11 / 12 < part < 11 / 12 + 2 * 2 / 12 / 12 + 0.001


@pytest.mark.parametrize("backend", ["jax", pytest.param("torch", marks=[pytest.mark.exhaustive, pytest.mark.peers])])
def test_smoke(backend, tmp_path):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"the backend {backend} is not installed here")
    path = tmp_path / "figures.json"
    assert set(SOME) < set(cases(SMOKE))
    names = [case.name for case in SOME]
    command = [sys.executable, str(PROGRAM), "--smoke", "--backend", backend, "--json", str(path), "--only", *names]
    process = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    figures = json.loads(path.read_text())
    assert "torch" in (figures["sides"] if HAS_PEER else figures["missing"])
    assert list(figures["cases"]) == [case.name for case in cases(SMOKE) if case in SOME]
    layouts = [line.rpartition(", ")[2] for case in figures["cases"].values() for line in case["lines"]]
    assert {"full", "buckets", "packed"} <= set(layouts)
    log = path.with_suffix(".log").read_text()
    for name, case in figures["cases"].items():
        lines = case["lines"]
        assert all("error" not in line for line in lines.values()), (name, lines, log)
        assert {line.partition(",")[0] for line in lines} == {"ours", "torch"} if HAS_PEER else {"ours"}
        assert all(len(line["seconds"]) == SMOKE.num_rounds for line in lines.values())
        assert ("times_torch" in case) == HAS_PEER


def test_what_is_left_out_is_reported(tmp_path):
    """No time is left for any case: each is in the file, with the reason."""
    path = tmp_path / "figures.json"
    command = [sys.executable, str(PROGRAM), "--smoke", "--minutes", "0", "--json", str(path)]
    nothing = tmp_path / "no_python"
    nothing.write_text("#!/bin/sh\nexit 3\n")
    nothing.chmod(0o755)
    pythons = ["--python", f"ours={nothing}", f"torch={nothing}"]
    process = subprocess.run([*command, *pythons], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    figures = json.loads(path.read_text())
    assert list(figures["cases"]) == [case.name for case in cases(SMOKE)]
    assert figures["missing"] == dict.fromkeys(("ours", "torch"), "its process ended with code 3")
    assert {case["left_out"] for case in figures["cases"].values()} == {"no time was left"}
