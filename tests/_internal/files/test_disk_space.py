"""Full disks: the error that users see, and the check for room before an HDF5 file is written."""

import errno
import os
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from keras_bert_layers._internal.files.disk_space import check_room, check_writable, disk_fault

NEEDED = 5 + 7 + 2 * 4096 + 65536


def test_too_little_room(tmp_path):
    with pytest.raises(OSError, match="No space left|File too large") as caught:
        check_room(tmp_path, [2**60])
    assert caught.value.errno in (errno.ENOSPC, errno.EFBIG)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("free", "is_enough"), [(NEEDED, True), (NEEDED - 1, False)])
@pytest.mark.parametrize("number", [None, errno.EOPNOTSUPP])
def test_a_system_or_a_file_system_that_cannot_take_room(number, free, is_enough, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(number, "")

    if number is None:
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    else:
        monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    if is_enough:
        check_room(tmp_path, [5, 7])
    else:
        with pytest.raises(OSError, match="No space left"):
            check_room(tmp_path, [5, 7])


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the system cannot take room")
def test_all_of_the_file_counts(tmp_path, monkeypatch):
    taken = []
    monkeypatch.setattr(os, "posix_fallocate", lambda *arguments: taken.append(arguments[2]))
    check_room(tmp_path, [5, 7])
    assert taken == [NEEDED]


def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch):
    target = tmp_path / "new" / "model.keras"
    check_writable(target, owner="train", argument="DIR")
    assert os.listdir(tmp_path) == []

    def refuse(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(OSError, match="`train`: `DIR` must be a path that can be written to.*Read-only file system"):
        check_writable(target, owner="train", argument="DIR")


ROOM = "be on a disk with room for it"
WRITABLE = "be a path that can be written to"


def fault(error, target):
    return disk_fault(error, target, owner="BertClassifier", argument="filepath")


@pytest.mark.parametrize(
    ("number", "kind", "rule", "cure"),
    [
        (errno.ENOSPC, OSError, ROOM, "Make room, or write to another disk."),
        (errno.EDQUOT, OSError, ROOM, "Make room, or write to another disk."),
        (errno.EFBIG, OSError, ROOM, "Make room, or write to another disk."),
        (errno.EROFS, OSError, WRITABLE, "Write to another path."),
        (errno.EACCES, PermissionError, WRITABLE, "Write to another path."),
    ],
)
@pytest.mark.parametrize("library", ["Python", "TensorFlow", "ours"])
def test_the_error_is_the_same_whichever_library_met_it(library, number, kind, rule, cure, tmp_path):
    error = {
        "Python": OSError(number, "in other words", "/hidden"),
        "TensorFlow": RuntimeError(f"{{{{node Save}}}} /hidden/variables; {os.strerror(number)} [Op:SaveV2]"),
        "ours": ValueError("not a directory"),
    }[library]
    if library == "ours":
        error.__cause__ = OSError(number, "")
    found = fault(error, tmp_path / "x.keras")
    assert type(found) is kind
    assert found.errno == number
    assert str(found) == (
        f"`BertClassifier`: `filepath` must {rule}. Received: filepath='{tmp_path / 'x.keras'}'. "
        f"{os.strerror(number)}. What was there is unchanged. {cure}"
    )


def test_an_error_without_a_number():
    assert "Received: filepath='x'. The file is damaged. What" in str(fault(OSError("The file is damaged."), Path("x")))


def test_another_cause(tmp_path, monkeypatch):
    assert fault(LookupError("absent"), tmp_path / "missing" / "file") is None
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    assert fault(LookupError("absent"), tmp_path / "missing" / "file").errno == errno.ENOSPC
