"""The page on serving is drawn from its raw figures, and a figure that was not recorded is not made up."""

import argparse
import json

import draw_serving
import pytest

DIFFERENCES = [
    {"task": "classifier", "signature": "serving_default", "runtime": "C", "difference": 2e-7},
    {"task": "classifier", "signature": "serving_default", "runtime": "C", "difference": 1e-7},
    {"task": "classifier", "signature": "serving_default", "runtime": "HTTP", "difference": 0.0},
    {"task": "classifier", "signature": "tokenize", "runtime": "C", "difference": None},
]


def test_the_page_is_drawn_from_its_figures(tmp_path):
    raw = draw_serving.FOLDER / "serving.json"
    (tmp_path / "serving.json").write_bytes(raw.read_bytes())
    draw_serving.write(tmp_path)
    assert (tmp_path / "serving.md").read_text() == (draw_serving.FOLDER / "serving.md").read_text()


def test_differences():
    other = {"task": "a_task", "signature": "serving_default", "runtime": "Python", "difference": 1e-7}
    rows = draw_serving.differences([*DIFFERENCES, other]).splitlines()[2:]
    assert rows == [
        "| `a_task` | `serving_default` | 1.0e-07 | not run | not run | not run | not run |",
        "| `classifier` | `serving_default` | not run | 2.0e-07 | not run | not run | equal |",
        "| `classifier` | `tokenize` | not run | equal | not run | not run | not run |",
        "",
        "The largest difference is 2.0e-07.",
    ]


@pytest.fixture
def options(tmp_path):
    notes = [{"kind": "difference", **line} for line in DIFFERENCES]
    notes += [{"kind": "drain", "requests": requests, "texts": 1024, "seconds": 2.5, "code": 0} for requests in (3, 4)]
    (tmp_path / "notes").write_text("".join(f"{json.dumps(line)}\n" for line in notes))
    line = {"p50": 0.0101, "p99": 0.02, "batches of 1": 90.4, "batches of 8": 200.0, "batches of 32": 300.0}
    measured = {
        "machine": {"processor": "P", "cores": 2, "memory_gb": 23.6, "started": "2026-11-21T15:00:00Z"},
        "figures": {"base": {"float32": {**line, "start": 2.0, "first": 0.51, "peak": 762e6}}},
    }
    (tmp_path / "c").write_text(json.dumps(measured))
    return argparse.Namespace(notes=[tmp_path / "notes"], c=[tmp_path / "c"], http=[])


def test_new_figures_replace_those_of_their_kind(options, tmp_path):
    old = {"notes": {"difference": [{}], "fuzz": [{"task": "t"}]}, "c": {"minilm": 1, "base": 2}, "http": {"base": 3}}
    raw = draw_serving.updated(old, options)
    assert raw["notes"]["difference"] == DIFFERENCES
    assert raw["notes"]["fuzz"] == [{"task": "t"}]
    assert (raw["c"]["minilm"], list(raw["c"]["base"]), raw["http"]) == (1, ["float32"], {"base": 3})


def test_a_page(options, tmp_path):
    draw_serving.write(tmp_path, options)
    page = (tmp_path / "serving.md").read_text()
    assert "Measured on 2026-11-21: 2 cores of a virtual machine, P, 24 GB." in page
    assert "| BERT-base, random weights | C API, float32 | 10.1 | 20.0 | 90 | 200 | 300 | 2.5 | 762 |" in page
    assert "4 requests of 1,024 texts each: all answered, within 2.5 s; exit code 0" in page
    assert "Hostile texts" not in page
    assert "over HTTP" not in page


def test_faults():
    soak = {"minutes": 10.0, "requests": 23140, "concurrency": 4, "failures": 0}
    soak |= {"mebibytes": [931.2, 948.0], "warm_up": [870.1, 930.0]}
    assert draw_serving.load({"soak": soak}).splitlines()[2] == (
        "| a long load | 23,140 requests in 10 minutes from 4 clients, 0 failed; "
        "memory of the server in MiB, tenth by tenth: 931, 948 (before, while it met new lengths: 870, 930) |"
    )
    fuzz = [{"task": "classifier", "texts": 1000, "refused": 0, "growth_mb": 74.4}]
    assert draw_serving.fuzz(fuzz).splitlines()[2] == "| `classifier` | 1,000 | 0 | 74 |"


def test_memory():
    line = {"setting": "float32", "same": False, "batches": 1000, "mebibytes": [900, 950]}
    assert draw_serving.memory([line]).splitlines()[2] == "| float32 | always new ones | 1,000 | 900, 950 |"


def test_http():
    line = {"server of": "SavedModel", "request": "one text", "concurrency": 8, "requests": 700, "failures": 0}
    line |= {"texts_per_second": 140.1, "p50_ms": 56.3, "p99_ms": 74.5, "difference": 2.7e-7, "mebibytes": 812}
    rounded = line | {"server of": "ONNX file, int8", "difference": 7.4e-3}
    lines = draw_serving.speed_over_http({"minilm": [line, rounded]}).splitlines()
    assert lines[2] == "| all-MiniLM-L6-v2 | one text | SavedModel | 8 | 140.1 | 56.3 | 74.5 | 0 | 812 |"
    assert lines[-1] == "The largest differences from exact unit vectors: float32 2.7e-07; ONNX file, int8 7.4e-03."
