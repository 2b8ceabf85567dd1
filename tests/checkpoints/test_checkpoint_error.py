import errno
import os

import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.checkpoint_error import damaged, first_line, first_names, missing, naming


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FileNotFoundError(errno.ENOENT, "x"), "x/config.json: the file is missing. Copy all files of the checkpoint."),
        (PermissionError(errno.EACCES, os.strerror(errno.EACCES)), "x/config.json: cannot be read: Permission denied."),
        (ValueError("`dropout` must be less."), "x/config.json: `dropout` must be less."),
        (TypeError("not a number"), "x/config.json: not a number"),
    ],
)
def test_naming(error, text):
    with pytest.raises(CheckpointError) as caught, naming("x/config.json"):
        raise error
    assert str(caught.value) == text
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("context", [naming("x"), damaged("x", ValueError)])
def test_our_own_errors_are_passed_on(context):
    own = CheckpointError("y")
    with pytest.raises(CheckpointError) as caught, context:
        raise own
    assert caught.value is own


def test_damaged():
    with pytest.raises(CheckpointError, match=r"^x: bad\. Copy it\.$"), damaged("x", ValueError, "Copy it."):
        raise ValueError("bad. \nworse")
    with pytest.raises(OSError, match="disk"), damaged("x", ValueError):
        raise OSError("disk")


def test_lines_and_names():
    assert first_line(ValueError("one. \ntwo")) == "one"
    assert first_line(EOFError()) == "EOFError"
    assert first_names(["a", "b"], 2) == "a, b"
    assert first_names(["a", "b", "c"], 2) == "a, b and 1 more"


def test_missing(tmp_path):
    text = f"`load_backbone`: {tmp_path} must hold vocab.txt. Found: nothing."
    assert str(missing(tmp_path, "vocab.txt", owner="load_backbone")) == text
    for name in ("b", "a"):
        (tmp_path / name).touch()
    assert str(missing(tmp_path, "vocab.txt", "Copy it.", owner="x")).endswith("Found: a, b. Copy it.")
