"""Fixtures of the tests that run programs in other processes."""

import importlib.util
import os

import pytest

from tests.tasks.training.processes import Programs, devices


@pytest.fixture(scope="session")
def on_jax(tmp_path_factory):
    """`Programs.run` of programs on JAX, on one device if they are not given `devices` of their own."""
    if importlib.util.find_spec("jax") is None:  # importing it here would make it warn of every fork
        pytest.skip("needs the extra `jax`")
    if os.name == "nt":
        pytest.skip("Windows has no fork")
    modules = ("tensorflow", "tensorflow_text", "keras", "jax", "keras_bert_layers")
    programs = Programs(tmp_path_factory.mktemp("programs"), modules, devices(1))
    yield programs.run
    programs.end()
