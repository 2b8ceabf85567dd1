"""`index`: new and changed rows, an interruption, a full disk, and other models. CI installs lancedb for slow tests."""

import json
import os
import random
import shutil
import signal
import string
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers.cli.commands import index

pytestmark = pytest.mark.usefixtures("traces_nothing")

ROWS = [
    {"id": "o'neil", "text": "a good film", "year": 2001},
    {"id": "2", "text": "bad\0 night", "year": 1999},
    {"id": "3", "text": "", "year": 1},
    {"id": "4", "text": "unhappy", "year": None},
    {"id": "5", "text": "unhappy", "year": 2020},
]
# The same float32 sums in batches of another make-up.
ROUNDING = 2e-6


def write(path, rows=ROWS):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def stored(folder):
    """The passages of an index by their ids, and their vectors."""
    rows = pytest.importorskip("lancedb").connect(folder).open_table("passages").search().to_list()
    assert len({row["id"] for row in rows}) == len(rows), "a passage is there twice"
    return {row.pop("id"): (row.pop("vector"), row) for row in rows}


@pytest.fixture
def encoded(monkeypatch):
    """The ids of the passages that are encoded, in lists of a command's steps."""
    found, put = [], index._put
    monkeypatch.setattr(index, "_put", lambda rows, *rest: found.append([row.id for row in rows]) or put(rows, *rest))
    return found


def test_lancedb_is_not_installed(run, error_line, encoder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lancedb", None)
    cure = "Install it with `pip install keras-bert-layers[search]`."
    assert run("index", write(tmp_path / "a.jsonl"), "--model", encoder, "--to", tmp_path / "index") == 2
    assert f"`index`: a search index needs lancedb. {cure}" in error_line()
    assert run("search", tmp_path / "index", "a") == 2
    assert f"`search`: a search index needs lancedb. {cure}" in error_line()
    assert not (tmp_path / "index").exists()


@pytest.mark.slow
def test_changed_rows_are_updated(run, capsys, encoder, encoded, tmp_path):
    pytest.importorskip("lancedb")
    command = ["index", write(tmp_path / "a.jsonl"), "--model", encoder, "--to", tmp_path / "index"]
    assert run(*command) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'index'}: 4 passages; 4 encoded, 0 removed\n"
    first = stored(tmp_path / "index")
    assert {name: row["year"] for name, (_, row) in first.items()} == {"o'neil": 2001, "2": 1999, "4": None, "5": 2020}
    assert first["2"][1]["text"] == "bad\0 night"
    np.testing.assert_allclose(first["4"][0], first["5"][0], atol=ROUNDING)
    assert run(*command) == 0, "nothing has changed"
    changed = [{**ROWS[1], "text": "good night"}, {**ROWS[3], "year": 7}, ROWS[4], {"id": "new", "text": "É"}]
    write(tmp_path / "a.jsonl", changed)
    assert run(*command) == 0
    assert encoded == [["o'neil", "2", "4", "5"], ["2", "new"]]
    second = stored(tmp_path / "index")
    assert second.keys() == {"o'neil", "2", "4", "5", "new"}
    assert second["4"][1]["year"] == 7
    assert all(second[name][0] == first[name][0] for name in ("4", "5", "o'neil"))
    assert second["2"][0] != first["2"][0]
    capsys.readouterr()
    assert run(*command, "--sync") == 0
    assert capsys.readouterr().out.endswith("4 passages; 0 encoded, 1 removed\n")
    assert stored(tmp_path / "index") == {name: second[name] for name in ("2", "4", "5", "new")}


KILLED = """
import os, signal, sys
from keras_bert_layers import cli
from keras_bert_layers.cli.commands import index

put = index.PassageTable.put

def put_then_die(table, passages, *words, **options):
    put(table, passages, *words, **options)
    if passages[0].id == "4":
        os.kill(os.getpid(), signal.SIGKILL)

index.PassageTable.put = put_then_die
index.ROWS = 2
cli.main(sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_killed_and_run_again(run, error_line, encoder, encoded, tmp_path):
    pytest.importorskip("lancedb")
    rows = write(tmp_path / "a.jsonl", [*ROWS, {"id": "6", "text": "night"}])
    command = ["index", rows, "--model", encoder, "--to", tmp_path / "index"]
    root = Path(__file__).parents[3]
    killed = subprocess.run([sys.executable, "-c", KILLED, *command], cwd=root, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert stored(tmp_path / "index").keys() == {"o'neil", "2", "4", "5"}
    assert run("search", tmp_path / "index", "night", "--hybrid") == 0
    assert f"{tmp_path / 'index'} is not complete. Run `index` again with the same arguments." in error_line()
    assert run(*command) == 0
    assert run(*command[:-1], tmp_path / "whole") == 0
    assert encoded == [["6"], ["o'neil", "2", "4", "5", "6"]]
    resumed, whole = stored(tmp_path / "index"), stored(tmp_path / "whole")
    assert resumed.keys() == whole.keys()
    for name, (vector, row) in whole.items():
        assert resumed[name][1] == row
        np.testing.assert_allclose(resumed[name][0], vector, atol=ROUNDING)
    assert run("search", tmp_path / "index", "night", "--hybrid") == 0


@pytest.mark.slow
def test_other_models_are_refused(run, error_line, huggingface, keras_file, encoder, tmp_path):
    pytest.importorskip("lancedb")
    mine = shutil.copytree(encoder, tmp_path / "mine")
    command = ["index", write(tmp_path / "a.jsonl"), "--to", tmp_path / "index", "--model"]
    assert run(*command, keras_file) == 2
    assert "`--model` must be an encoder of sentences, or of queries and documents" in error_line()
    assert not (tmp_path / "index").exists()
    assert run(*command, mine) == 0
    shutil.move(mine, tmp_path / "moved")
    assert run("search", tmp_path / "index", "a") == 2
    assert str(mine) in error_line()
    assert run("search", tmp_path / "index", "a", "--model", tmp_path / "moved") == 0
    huggingface.write(mine, tensors=huggingface.random_tensors(seed=6))
    for words in ([*command, mine], ["search", tmp_path / "index", "a"]):
        assert run(*words) == 2
        message = error_line()
        assert f"`{words[0]}`: `--model` must be the model of the index {tmp_path / 'index'}, with the same" in message
        assert f"It came from {mine}. For another model, make another index." in message


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit on the size of files")
def test_a_full_disk(run, error_line, encoder, tmp_path):
    """The limit has the effect of a full disk; LanceDB raises a RuntimeError for both."""
    pytest.importorskip("lancedb")
    import resource

    long = "good " * 30 + "".join(random.Random(0).choices(string.ascii_letters, k=200_000))  # cannot be compressed
    rows = write(tmp_path / "a.jsonl", [*ROWS, {"id": "6", "text": long}])
    command = ["index", rows, "--model", encoder, "--to", tmp_path / "index"]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        assert run(*command) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "`index`: `--to` must be on a disk with room for it." in error_line()
    assert not json.loads((tmp_path / "index" / "search_index.json").read_text())["complete"]
    assert run(*command) == 0
    assert "warning: of 1 text only the beginning was read, as they are too long." in error_line()
    assert len(stored(tmp_path / "index")) == 5


@pytest.mark.slow
def test_errors(run, error_line, encoder, tmp_path):
    pytest.importorskip("lancedb")
    command = ["index", write(tmp_path / "a.jsonl"), "--model", encoder, "--to"]
    assert run(*command, tmp_path) == 2
    assert f"`index`: --to must be new, empty or an index. Received: {tmp_path}." in error_line()
    assert run(*command, tmp_path / "index") == 0
    write(tmp_path / "a.jsonl", [{"id": "7", "text": "a", "year": 2.5, "other": "x"}])
    assert run(*command, tmp_path / "index") == 2
    message = error_line()
    assert "`ROWS` must have columns that the index has: {'id': 'string', 'text': 'string', 'year': 'int64'}" in message
    assert "Received: ROWS={'year': 'double', 'other': 'string'}. Make another index." in message
    assert json.loads((tmp_path / "index" / "search_index.json").read_text())["complete"]


@pytest.mark.slow
def test_a_vector_for_each_token(run, error_line, backbone, preprocessor, tmp_path, capsys):
    pytest.importorskip("lancedb")
    prompts = {"query": "bad ", "document": "film "}
    model = kbl.BertMultiVectorEncoder(backbone, 5, query_length=6, prompts=prompts, preprocessor=preprocessor)
    model.save(tmp_path / "tokens.keras")
    texts = {row["id"]: row["text"] for row in ROWS if row["text"]}
    rows = write(tmp_path / "rows.jsonl")
    assert run("index", rows, "--model", tmp_path / "tokens.keras", "--to", tmp_path / "index") == 0
    capsys.readouterr()
    assert run("search", tmp_path / "index", "good film", "--json") == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    scores = dict(zip(texts, model.similarity(["good film"], list(texts.values()))[0].tolist(), strict=True))
    assert {row["id"]: row["score"] for row in found} == pytest.approx(scores, abs=1e-4)
    kbl.BertSparseEncoder(backbone, preprocessor=preprocessor).save(tmp_path / "sparse.keras")
    assert run("index", rows, "--model", tmp_path / "sparse.keras", "--to", tmp_path / "other") == 2
    assert "with a tokenizer and dense vectors" in error_line()
