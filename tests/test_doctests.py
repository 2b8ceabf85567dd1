"""Every example in a docstring of the package, run as it stands."""

import doctest
import importlib
import importlib.util
import pkgutil

import pytest

import keras_bert_layers

SUBMODULES = pkgutil.walk_packages(keras_bert_layers.__path__, "keras_bert_layers.")
MODULES = sorted(["keras_bert_layers", *(module.name for module in SUBMODULES)])


def examples(name):
    module = importlib.import_module(name)
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


@pytest.fixture
def functions_run_eagerly():
    """Examples take one or two steps with each of many tiny models, whose graphs take seconds to trace."""
    if importlib.util.find_spec("tensorflow") is None:
        yield
        return
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.mark.filterwarnings("ignore:Even though the `tf.config.experimental_run_functions_eagerly` option is set")
@pytest.mark.usefixtures("functions_run_eagerly")
@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    output = []
    for test in examples(name):
        runner.run(test, out=output.append)
    assert runner.failures == 0, "".join(output)


def test_examples_are_found():
    assert len(MODULES) > 30
    assert examples("keras_bert_layers.tasks.classifier")
