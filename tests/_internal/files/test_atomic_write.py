"""Files and directories are replaced when the new ones are complete, and not before."""

import errno
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from keras_bert_layers._internal.files.atomic_write import _swap, atomic_write

CALLER = {"owner": "save", "argument": "path"}


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("old")
    return path


def test_a_file(target):
    with atomic_write(target, **CALLER) as unfinished:
        unfinished.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert os.listdir(target.parent) == ["words.txt"]


def test_a_directory(tmp_path):
    target = tmp_path / "made" / "model"
    for content in ("old", "new"):
        with atomic_write(target, **CALLER) as unfinished:
            unfinished.mkdir()
            (unfinished / "a").write_text(content)
    assert (target / "a").read_text() == "new"
    assert os.listdir(target.parent) == ["model"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_what_was_there_stays(error, target, tmp_path):
    def fail(path):
        with atomic_write(path, **CALLER) as unfinished:
            unfinished.write_text("half")
            raise error

    for path in (target, tmp_path / "new" / "deep" / "x"):
        with pytest.raises(type(error)):
            fail(path)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["words.txt"]


def test_a_directory_comes_back_if_the_new_one_cannot_be_moved(tmp_path):
    target = tmp_path / "model"
    target.mkdir()
    (target / "a").write_text("old")
    with (
        pytest.raises(FileNotFoundError, match="`save`: `path` must be a path that can be written to"),
        atomic_write(target, **CALLER),
    ):
        pass  # nothing was written
    assert (target / "a").read_text() == "old"


def make_directory(target, content):
    with atomic_write(target, **CALLER) as unfinished:
        unfinished.mkdir()
        (unfinished / "a").write_text(content)


@pytest.mark.parametrize("can_swap", [True, False])
def test_directories_are_swapped_in_one_step_where_the_system_can(can_swap, tmp_path, monkeypatch):
    renamed = []
    rename = Path.rename
    monkeypatch.setattr(Path, "rename", lambda self, other: renamed.append(self.name) or rename(self, other))
    if not can_swap:
        monkeypatch.setattr("keras_bert_layers._internal.files.atomic_write._swap", lambda *_: False)
    elif not _swap(*(Path(tempfile.mkdtemp(dir=tmp_path)) for _ in range(2))):
        pytest.skip("this file system cannot")
    for content in ("old", "new"):
        make_directory(tmp_path / "model", content)
    assert (tmp_path / "model" / "a").read_text() == "new"
    assert renamed == ([] if can_swap else ["model"])
    assert [name for name in os.listdir(tmp_path) if name.startswith(".")] == []


@pytest.mark.skipif(os.name == "nt", reason="Windows does not show whether a process runs")
def test_a_directory_that_a_killed_process_moved_away_comes_back(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    hidden = tmp_path / f".model-{socket.gethostname()}-{process.pid}-x"
    make_directory(hidden / "replaced", "old")

    def fail():
        with atomic_write(tmp_path / "model", **CALLER):
            assert (tmp_path / "model" / "a").read_text() == "old"
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert (tmp_path / "model" / "a").read_text() == "old"
    make_directory(tmp_path / "model", "new")
    assert os.listdir(tmp_path) == ["model"]


def test_what_another_process_made_is_not_replaced(tmp_path):
    target = tmp_path / "1"

    def write():
        with atomic_write(target, **CALLER, replace=False) as unfinished:
            unfinished.mkdir()
            target.mkdir()
            (target / "other").write_text("")

    with pytest.raises(FileExistsError, match="1"):
        write()
    assert os.listdir(target) == ["other"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_the_rest_of_a_killed_process_is_swept_by_the_next(target):
    program = (
        "import os, pathlib, signal, sys\n"
        "from keras_bert_layers._internal.files.atomic_write import atomic_write\n"
        "with atomic_write(pathlib.Path(sys.argv[1]), owner='save', argument='path') as unfinished:\n"
        "    unfinished.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(target)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert target.read_text() == "old"
    assert len(os.listdir(target.parent)) == 2
    mine = target.parent / f".words.txt-{socket.gethostname()}-{os.getpid()}-other"
    mine.mkdir()
    with atomic_write(target, **CALLER) as unfinished:
        unfinished.write_text("new")
    assert sorted(os.listdir(target.parent)) == [mine.name, "words.txt"], "that of a running process stays"
