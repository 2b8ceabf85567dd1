import errno
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.new_directory import new_directory


def written(path, text="weights"):
    with new_directory(path, owner="save_huggingface") as unfinished:
        (unfinished / "1_Pooling").mkdir()
        (unfinished / "1_Pooling" / "config.json").write_text(text)
        (unfinished / "model.safetensors").write_text(text)
    return path


def names(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def test_appears_when_the_block_ends(tmp_path):
    with new_directory(tmp_path / "bert", owner="save_huggingface") as unfinished:
        (unfinished / "vocab.txt").write_text("[PAD]")
        assert unfinished.name == "bert"
        assert not (tmp_path / "bert").exists()
    assert names(tmp_path) == ["bert", "bert/vocab.txt"]


def test_parents_are_made(tmp_path):
    written(tmp_path / "models" / "2024" / "bert")
    assert names(tmp_path / "models" / "2024")[0] == "bert"


def test_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written("bert")
    assert (tmp_path / "bert" / "model.safetensors").read_text() == "weights"


def test_others_may_read_it_as_any_directory(tmp_path):
    (tmp_path / "usual").mkdir()
    written(tmp_path / "bert")
    assert (tmp_path / "bert").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_an_empty_directory_is_filled(tmp_path):
    (tmp_path / "bert").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "bert")
    written(tmp_path / "link")
    assert names(tmp_path / "bert") == ["1_Pooling", "1_Pooling/config.json", "model.safetensors"]


def test_refuses_a_directory_that_holds_something(tmp_path):
    written(tmp_path / "bert")
    with pytest.raises(
        CheckpointError,
        match=r"`save_huggingface`: `directory` must be new, or an empty directory\. Received: directory='.*bert'\. "
        r"It is not empty\. Give another name, or remove it first\.",
    ):
        written(tmp_path / "bert", "others")
    assert (tmp_path / "bert" / "model.safetensors").read_text() == "weights"
    assert names(tmp_path)[0] == "bert"


def test_refuses_a_file(tmp_path):
    (tmp_path / "bert").write_text("thesis")
    with pytest.raises(CheckpointError, match=r"A file of this name is in the way"):
        written(tmp_path / "bert")
    with pytest.raises(CheckpointError, match=r"`directory` must be a path that can be written to.*File exists"):
        written(tmp_path / "bert" / "inside")
    assert names(tmp_path) == ["bert"]


def test_refuses_the_current_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match=r"It is empty, but cannot be replaced\. Give a directory inside it\."):
        written(".")


def test_refuses_other_machines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match=r"be a local directory\. Received: directory='gs://bucket/bert'"):
        written("gs://bucket/bert")
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["a\0b", "n" * 999])
def test_impossible_names(tmp_path, name):
    with pytest.raises(CheckpointError, match=r"must be new, or an empty directory.*It cannot be read"):
        written(tmp_path / name)


def test_no_path():
    with pytest.raises(TypeError, match=r"`directory` must be a path\. Received: directory=3"):
        written(3)


def test_unwritable_parent(tmp_path):
    tmp_path.chmod(0o500)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip("this user may write anywhere")
        with pytest.raises(CheckpointError, match=r"a path that can be written to.*Permission denied"):
            written(tmp_path / "bert")
    finally:
        tmp_path.chmod(0o700)


def test_refusal_of_the_file_system(tmp_path, monkeypatch):
    def refuse(self, *args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(CheckpointError, match=r"can be written to\. .*Permission denied. What was there is unchanged"):
        written(tmp_path / "bert")
    assert names(tmp_path) == []


@pytest.mark.parametrize("exception", [KeyboardInterrupt, SystemExit, LookupError, GeneratorExit])
def test_nothing_is_left_after_an_exception(tmp_path, exception):
    def fail():
        with new_directory(tmp_path / "a" / "b" / "bert", owner="save_google") as unfinished:
            (unfinished / "half").write_text("half")
            raise exception

    with pytest.raises(exception):
        fail()
    assert names(tmp_path) == []


def test_parents_that_were_there_stay(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(KeyboardInterrupt), new_directory(tmp_path / "a" / "b" / "bert", owner="save_google"):
        raise KeyboardInterrupt
    assert names(tmp_path) == ["a"]


def test_a_destination_that_was_filled_meanwhile(tmp_path):
    with (
        pytest.raises(CheckpointError, match="File exists"),
        new_directory(tmp_path / "bert", owner="save_google"),
    ):
        written(tmp_path / "bert")
    assert names(tmp_path)[0] == "bert"
    assert (tmp_path / "bert" / "model.safetensors").read_text() == "weights"


FULL = r"`directory` must be on a disk with room for it\. .*What was there is unchanged\. Make room"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk(tmp_path, number):
    with pytest.raises(CheckpointError, match=FULL) as caught, new_directory(tmp_path / "bert", owner="save_google"):
        raise OSError(number, os.strerror(number))
    assert os.strerror(number) in str(caught.value)
    assert names(tmp_path) == []


def test_full_disk_in_other_words(tmp_path, monkeypatch):
    """HDF5, TensorFlow and NumPy raise errors without a number."""
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 4096}))
    with pytest.raises(CheckpointError, match=FULL), new_directory(tmp_path / "bert", owner="save_google"):
        raise RuntimeError("unable to flush file")
    assert names(tmp_path) == []


def test_full_disk_for_real(tmp_path):
    """The operating system stops the writer, at its limit on the size of a file."""
    program = """
        import resource, signal, sys
        from keras_bert_layers.checkpoints.files.new_directory import new_directory
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            with new_directory(sys.argv[1], owner="save_huggingface") as unfinished:
                (unfinished / "model.safetensors").write_bytes(bytes(9999))
        except ValueError as error:
            sys.stdout.write(str(error))
    """
    pytest.importorskip("resource")
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "bert")]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "File too large. What was there is unchanged. Make room, or write to another disk." in output
    assert names(tmp_path) == []


def test_interrupt_from_the_keyboard(tmp_path):
    program = """
        import os, signal, sys
        from keras_bert_layers.checkpoints.files.new_directory import new_directory
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin without it
        with new_directory(sys.argv[1], owner="save_huggingface") as unfinished:
            (unfinished / "model.safetensors").write_bytes(bytes(9999))
            os.kill(os.getpid(), signal.SIGINT)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "bert")]
    finished = subprocess.run(command, check=False, capture_output=True)
    assert finished.returncode in (1, -signal.SIGINT)
    assert b"KeyboardInterrupt" in finished.stderr
    assert names(tmp_path) == []
