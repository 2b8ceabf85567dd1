"""Fixtures of the tests that run programs in other processes."""

import importlib.util
import os

import pytest

from tests.tasks.training.processes import Programs, devices

MODULES = ("tensorflow", "tensorflow_text", "keras", "keras_bert_layers")


def programs(folder, modules, variables):
    """`Programs.run` until the tests of the module have ended."""
    if os.name == "nt":
        pytest.skip("Windows has no fork")
    programs = Programs(folder, modules, variables)
    yield programs.run
    programs.end()


# Of a module: when they end, the seconds of all their programs fall to the file that has run them.
@pytest.fixture(scope="module")
def on_jax(tmp_path_factory):
    """`Programs.run` of programs on JAX, on one device if they are not given `devices` of their own."""
    if importlib.util.find_spec("jax") is None:  # importing it here would make it warn of every fork
        pytest.skip("needs the extra `jax`")
    yield from programs(tmp_path_factory.mktemp("on_jax"), ("jax", *MODULES), devices(1))


@pytest.fixture(scope="module")
def on_tensorflow(tmp_path_factory):
    """`Programs.run` of programs on TensorFlow."""
    modules = MODULES if importlib.util.find_spec("tensorflow_text") else ("tensorflow", "keras", "keras_bert_layers")
    yield from programs(tmp_path_factory.mktemp("on_tensorflow"), modules, {"TF_CPP_MIN_LOG_LEVEL": "3"})
