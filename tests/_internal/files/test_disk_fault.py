"""One error for a disk that is full, read-only or refuses."""

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from keras_bert_layers._internal.files.disk_space import disk_fault

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
