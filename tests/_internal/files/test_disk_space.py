"""An HDF5 file is not started on a full disk."""

import errno
import os
import shutil
from types import SimpleNamespace

import pytest

from keras_bert_layers._internal.files.disk_space import check_room

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
