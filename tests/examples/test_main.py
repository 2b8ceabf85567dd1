"""`examples/_main.py`: where an example writes, and how it ends."""

import argparse
import sys

import pytest


@pytest.fixture
def main(import_example):
    return import_example("_main").main


def test_smoke_writes_into_a_folder_that_is_deleted(main):
    arguments = argparse.Namespace(smoke=True, epochs=3)
    folders = []

    def run(arguments, folder):
        assert arguments.epochs == 1
        assert folder.is_dir()
        folders.append(folder)

    main(arguments, run)
    assert not folders[0].exists()


def test_output_is_made(main, tmp_path):
    arguments = argparse.Namespace(smoke=False, output=tmp_path / "a" / "b")
    main(arguments, lambda arguments, folder: (folder / "model").write_text("x"))
    assert (tmp_path / "a" / "b" / "model").is_file()


@pytest.mark.parametrize("error", [ValueError("bad row"), FileNotFoundError("bad row"), ModuleNotFoundError("bad row")])
def test_errors_take_one_line(main, tmp_path, monkeypatch, error):
    def run(arguments, folder):
        raise error

    monkeypatch.setattr(sys, "argv", ["examples/classify.py"])
    with pytest.raises(SystemExit, match="^classify: bad row$"):
        main(argparse.Namespace(smoke=False, output=tmp_path), run)
