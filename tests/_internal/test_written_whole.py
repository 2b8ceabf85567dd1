"""Files and directories are replaced when the new ones are complete, and not before."""

import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest

from keras_bert_layers._internal.written_whole import full_disk, written_whole


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("old")
    return path


def test_a_file(target):
    with written_whole(target) as unfinished:
        unfinished.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert os.listdir(target.parent) == ["words.txt"]


def test_a_directory(tmp_path):
    target = tmp_path / "made" / "model"
    for content in ("old", "new"):
        with written_whole(target) as unfinished:
            unfinished.mkdir()
            (unfinished / "a").write_text(content)
    assert (target / "a").read_text() == "new"
    assert os.listdir(target.parent) == ["model"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_what_was_there_stays(error, target, tmp_path):
    def fail(path):
        with written_whole(path) as unfinished:
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
    with pytest.raises(FileNotFoundError), written_whole(target):
        pass  # nothing was written
    assert (target / "a").read_text() == "old"


def test_what_another_process_made_is_not_replaced(tmp_path):
    target = tmp_path / "1"

    def write():
        with written_whole(target, replace=False) as unfinished:
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
        "from keras_bert_layers._internal.written_whole import written_whole\n"
        "with written_whole(pathlib.Path(sys.argv[1])) as unfinished:\n"
        "    unfinished.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(target)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert target.read_text() == "old"
    assert len(os.listdir(target.parent)) == 2
    mine = target.parent / f".words.txt-{socket.gethostname()}-{os.getpid()}-other"
    mine.mkdir()
    with written_whole(target) as unfinished:
        unfinished.write_text("new")
    assert sorted(os.listdir(target.parent)) == [mine.name, "words.txt"], "that of a running process stays"


def test_full_disk(tmp_path, monkeypatch):
    assert full_disk(OSError(errno.EFBIG, ""), tmp_path) == os.strerror(errno.EFBIG)
    assert full_disk(OSError(errno.EACCES, ""), tmp_path) is None
    assert full_disk(RuntimeError(), tmp_path / "missing" / "file") is None
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    assert full_disk(RuntimeError(), tmp_path) == os.strerror(errno.ENOSPC)
