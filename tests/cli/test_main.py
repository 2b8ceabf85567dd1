"""The program: help, arguments, errors, exit codes and signals."""

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from keras_bert_layers import cli

COMMANDS = [
    *("convert", "inspect", "predict", "compare", "suggest", "train", "evaluate", "extract"),
    *("similar", "cluster", "summarize", "vocabulary", "shards", "serve", "demo"),
]


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_has_examples(run, command, capsys):
    with pytest.raises(SystemExit) as end:
        run(*command, "--help")
    assert end.value.code == 0
    shown = capsys.readouterr().out
    assert ("\n\nExamples:\n  keras-bert-layers " in shown) or ("exit codes:\n" in shown)


@pytest.mark.parametrize("words", [[], ["transform"], ["convert", "a", "b"], ["convert", "a", "b", "--to", "litert"]])
def test_arguments_that_do_not_parse(run, error_line, words):
    with pytest.raises(SystemExit) as end:
        run(*words)
    assert end.value.code == 2
    assert error_line().startswith("keras-bert-layers: error: ")


def test_debug_shows_the_traceback(run, tmp_path, capsys):
    assert run("inspect", tmp_path / "absent", "--debug") == 2
    assert "Traceback" in capsys.readouterr().err


def test_program_in_a_process_of_its_own(encoder):
    """It is installed, writes UTF-8, and inspects a checkpoint without Keras and TensorFlow."""
    program = Path(sys.executable).with_name("keras-bert-layers")
    if not program.is_file():
        pytest.skip("the package is not installed with its program")
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    shown = subprocess.run(
        [program, "inspect", encoder], capture_output=True, text=True, encoding="utf-8", check=False, env=environment
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    code = (
        "import sys; from keras_bert_layers import cli; code = cli.main(sys.argv[1:]);"
        "sys.exit(code or any(name in sys.modules for name in ('keras', 'tensorflow', 'torch')))"
    )
    subprocess.run([sys.executable, "-c", code, "inspect", encoder], capture_output=True, check=True)


@pytest.mark.slow
def test_terminated_process_leaves_nothing(encoder, tmp_path):
    """Nor does it show the messages of TensorFlow's start."""
    code = (
        "import os, signal, sys; from keras_bert_layers import cli\n"
        "import keras_bert_layers.cli.commands.convert as convert\n"
        "convert.write_model = lambda *words: os.kill(os.getpid(), signal.SIGTERM)\n"
        "cli.run()"
    )
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    words = ["convert", encoder, tmp_path / "b", "--to", "huggingface"]
    shown = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, env=environment
    )
    assert (shown.returncode, shown.stderr) == (128 + signal.SIGTERM, "")
    assert list(tmp_path.iterdir()) == []


def test_imports_on_windows(monkeypatch):
    """There `signal` has no SIGPIPE."""
    monkeypatch.delattr(signal, "SIGPIPE", raising=False)
    assert importlib.reload(cli).BROKEN_PIPE == 141
