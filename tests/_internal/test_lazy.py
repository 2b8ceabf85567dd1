"""Packages that are read without being imported."""

import importlib.util
import subprocess
import sys

import pytest

from keras_bert_layers._internal.lazy import LazyModule, extensions_library

PROGRAM = """
import sys
from keras_bert_layers._internal.lazy import extensions_library
path = extensions_library()
assert "onnxruntime_extensions" not in sys.modules
import onnxruntime_extensions
assert path == onnxruntime_extensions.get_library_path()
"""


@pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_extensions") is None, reason="needs the package onnxruntime_extensions"
)
def test_the_library_of_extensions_without_its_package():
    """The package imports transformers and torch, where they are. In a process without TensorFlow."""
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)


def test_extensions_that_are_not_installed(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="onnxruntime_extensions"):
        extensions_library()


@pytest.mark.parametrize(
    ("version", "cure"), [((3, 13), "`pip install its-package`"), ((3, 14), "use Python 3.13 or older")]
)
def test_a_module_that_is_not_installed(version, cure, monkeypatch):
    monkeypatch.setattr(sys, "version_info", version)
    with pytest.raises(ModuleNotFoundError, match=f"needs its-package, which is not installed here.*{cure}") as raised:
        _ = LazyModule("not_installed", "its-package").name
    assert raised.value.name == "not_installed"


def test_a_substitute_for_a_module_that_is_not_installed():
    assert LazyModule("not_installed", "its-package", "json").loads("1") == 1
