"""Every example in a docstring of the package, run as it stands."""

import doctest
import importlib
import pkgutil

import pytest

import keras_bert_layers

MODULES = sorted(
    [
        "keras_bert_layers",
        *(module.name for module in pkgutil.walk_packages(keras_bert_layers.__path__, "keras_bert_layers.")),
    ]
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name, request, tmp_path, monkeypatch):
    module = importlib.import_module(name)
    tests = [test for test in doctest.DocTestFinder(exclude_empty=True).find(module) if test.examples]
    # Examples of readers say `minilm` for the directory of all-MiniLM-L6-v2.
    if any("minilm" in example.source for test in tests for example in test.examples):
        for test in tests:
            test.globs["minilm"] = request.getfixturevalue("minilm")
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    output = []
    for test in tests:
        runner.run(test, out=output.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(output)


def test_there_are_examples_to_run():
    assert len(MODULES) > 30
    module = importlib.import_module("keras_bert_layers.tasks.classifier")
    assert any(test.examples for test in doctest.DocTestFinder().find(module))
