"""Every example in a docstring of the package, run as it stands: one test for each folder of the package."""

import doctest
import importlib
import pkgutil

import pytest

import keras_bert_layers

TOP = "keras_bert_layers"
PATH = keras_bert_layers.__path__
MODULES = [TOP, *sorted(module.name for module in pkgutil.walk_packages(PATH, f"{TOP}."))]
FOLDERS = [TOP, *sorted(module.name for module in pkgutil.iter_modules(PATH, f"{TOP}.") if module.ispkg)]


def folder_of(module):
    """The top folder of the package that a module is in."""
    folder = ".".join(module.split(".")[:2])
    return folder if folder in FOLDERS else TOP


def examples(name):
    module = importlib.import_module(name)
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize("folder", FOLDERS)
def test_examples_in_docstrings(folder, tmp_path, monkeypatch):
    output, num_failures = [], 0
    for name in filter(lambda name: folder_of(name) == folder, MODULES):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
        for test in examples(name):
            runner.run(test, out=output.append)
        num_failures += runner.failures
    assert num_failures == 0, "".join(output)


def test_examples_are_found():
    assert len(MODULES) > 30
    assert len(FOLDERS) > 10
    assert examples("keras_bert_layers.tasks.classifier")
